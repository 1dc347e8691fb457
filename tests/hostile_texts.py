"""Texts that would run, load or hide something where a view does not escape them: every payload in
every context that it might break out of."""

from __future__ import annotations

from tests.render_samples import HOSTILE

_PAYLOADS = (
    "<script>window.pwned=1</script>",
    "<ScRiPt >window.pwned=1</sCrIpT\t>",
    '<script src="https://evil.invalid/s.js"></script>',
    '<img src="https://evil.invalid/i.png" onerror="window.pwned=1">',
    "<img src=x: onerror=window.pwned=1//",
    "<svg><script>window.pwned=1</script></svg>",
    '<svg><use href="https://evil.invalid/u.svg#a"/><animate onbegin="window.pwned=1"/></svg>',
    '<math><mtext><table><mglyph><style><img src onerror="window.pwned=1">',
    '<iframe src="javascript:parent.pwned=1"></iframe>',
    '<object data="https://evil.invalid/o"></object><embed src="https://evil.invalid/e">',
    '<link rel="stylesheet" href="https://evil.invalid/l.css">',
    '<meta http-equiv="refresh" content="0;url=https://evil.invalid/">',
    '<base href="https://evil.invalid/">',
    '<form action="https://evil.invalid/"><input autofocus onfocus="window.pwned=1"></form>',
    '<details open ontoggle="window.pwned=1"><summary>x</summary></details>',
    '<video><source onerror="window.pwned=1"></video><audio src="https://evil.invalid/a">',
    '<style>@import "https://evil.invalid/z.css";*{background:url(//evil.invalid/b)}</style>',
    '<a href="javascript:window.pwned=1" style="position:fixed;inset:0">x</a>',
    "<template shadowrootmode=open><script>window.pwned=1</script></template>",
    "\u2028<!--<script>window.pwned=1//--></script>\u202e",
)
_CONTEXTS = (
    "{}", '"{}', "'>{}", '">{}<"', "</td></tr></table></details></div>{}",
    "</pre></code></mark></span>{}", "</textarea></title></select></button>{}",
    "</style></script></noscript>{}", "--></svg></math>{}<!--", "]]>{}<![CDATA[",
    "&quot;&gt;{}&lt;",
)  # fmt: skip
TEXTS = [
    *HOSTILE.values(),
    *(context.format(payload) for payload in _PAYLOADS for context in _CONTEXTS),
]
"""More than 200 texts."""
