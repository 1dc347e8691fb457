"""The small pieces of a result's page as HTML: text, badges, and the text in the cells of rows.

They are joined as strings here, not rendered by templates: a page has thousands of them, a template
takes two to four times as long for each, and a parse view is rendered often. Whatever comes from a
result goes through `escaped` or `text_of`.
"""

# ruff: noqa: S704 - every Markup of this file is made of escaped parts and of our own styles

from __future__ import annotations

import math
import re
from html import escape

from markupsafe import Markup

from ..core.types import ParseResult
from ..core.types.tokens import TokenLabel
from ..core.values.printable import counted
from ..core.values.wording import share
from .show import HIDDEN, name_of, shorten, visible
from .style import INVISIBLE, MARKS, VERMILLION, tint

MAX_VALUE = 2_000

_HIDDEN_RUNS = re.compile(f"{HIDDEN.pattern}+")
_MAX_NAMES = 6  # hidden characters named in one tooltip


def escaped(value: object) -> Markup:
    """Return a value as HTML: characters that cannot be seen, or that turn text around, become
    signs, and no other character is markup.
    """
    return Markup(_shown(str(value)))


def text_of(text: str) -> Markup:
    """Return model text as HTML: escaped, hidden characters as signs that say on hover what they
    are.
    """
    return Markup(text_html(text))


# Plain strings are joined: making Markup of every piece would cost as much as escaping it.
def _shown(text: str) -> str:
    return escape(visible(text))


def text_html(text: str) -> str:
    """Return the result of `text_of` as a plain string."""
    if text.isprintable() or not HIDDEN.search(text):
        return escape(text)

    # Between two runs of hidden characters the text is only escaped.
    out: list[str] = []
    last = 0
    for match in _HIDDEN_RUNS.finditer(text):
        out.append(escape(text[last : match.start()]))
        # Their signs are in a frame with their names.
        hidden = match[0]
        names = [name_of(c) for c in hidden[:_MAX_NAMES]]
        if len(hidden) > _MAX_NAMES:
            names.append(f"and {len(hidden) - _MAX_NAMES:,} more")
        title = escape(", ".join(names))
        out.append(
            f'<span class="toolparse-hidden" title="{title}" style="{INVISIBLE}">'
            f"{visible(hidden)}</span>"
        )
        last = match.end()
    out.append(escape(text[last:]))
    return "".join(out)


MAX_TOKENS = 2_000
_MOST_LIKELY = 0.9  # from here on nothing is to be seen
# Kind of token -> the mark whose line it has.
_LINES = {"argument": "argument", "name": "name", "reasoning": "reasoning"}


def tokens_line(result: ParseResult) -> str:
    """Return in one line how many tokens there are, and how likely the least likely one was.

    '' where no tokens were recorded.
    """
    tokens = result.tokens or ()
    known = [token for token in tokens if token.logprob is not None]
    line = counted(len(tokens), "token") if tokens else ""
    if known:
        least = min(known, key=lambda token: token.logprob or 0.0)
        line += f"; the least likely, {visible(repr(least.text))}, had {share_of(least.logprob)}"
    return line


def tokens_html(result: ParseResult) -> Markup:
    """Return the tokens side by side. The less likely one was, the stronger its background; the
    line below it says what it is part of, and its tooltip everything.
    """
    spans = [_span(label) for label in result.token_labels()[:MAX_TOKENS]]
    return Markup("").join(spans)


def _span(label: TokenLabel) -> Markup:
    token = label.token
    facts: list[str] = [label.kind]
    if label.path:
        facts.append(f"{label.path} of call {label.call}")
    if label.repaired:
        facts.append("repaired here")
    if token.logprob is not None:
        facts.append(f"{share_of(token.logprob)} likely")
    if token.entropy is not None:
        facts.append(f"entropy {token.entropy:.2f}")
    if token.id is not None:
        facts.append(f"id {token.id}")
    css = "border-radius:2px"
    if token.logprob is not None and math.exp(token.logprob) < _MOST_LIKELY:
        css += f";background-color:{tint(VERMILLION, 0.6 * (1 - math.exp(token.logprob)))}"
    if line := _LINES.get(label.kind):
        css += f";border-bottom:{MARKS[line].line or '1px dotted'}"
    if label.kind in ("markup", "outside"):
        css += ";opacity:0.75"
    title = escaped(shorten(" · ".join(facts), 300))
    text = text_html(token.text)
    return Markup(f'<span title="{title}" style="{css}">{text}</span>')


def share_of(logprob: float | None) -> str:
    return "" if logprob is None else share(math.exp(logprob))
