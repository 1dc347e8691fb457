"""Other texts for a line of a template, to be tried."""

from __future__ import annotations

import re

_NAME = r"[A-Za-z_]\w*(?:\.\w+|\[[^\[\]]+\])*"
_AS_TEXT = r"({0} if {0} is string else {0} | tojson)"

# Code -> (pattern, its replacement) of one place of a line.
_RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "template.unescaped": (
        (rf"[\"']\{{\{{-?\s*({_NAME})\s*-?\}}\}}[\"']", r"{{ \1 | tojson }}"),
        (rf"'\"'\s*[~+]\s*({_NAME})\s*[~+]\s*'\"'", r"\1 | tojson"),
        (rf"\"'\"\s*[~+]\s*({_NAME})\s*[~+]\s*\"'\"", r"\1 | tojson"),
    ),
    "template.changed": (
        (r"\s*\|\s*(?:trim|escape|e|lower|upper|striptags|title)(?:\(\))?(?!\w)", ""),
        (r"\.(?:strip|lower|upper)\(\)", ""),
    ),
    "template.null": (
        (rf"({_NAME})\s*\|\s*string\b", _AS_TEXT.format(r"\1")),
        (rf"\{{\{{(-?)\s*({_NAME})\s*(-?)\}}\}}", r"{{\1 \2 if \2 is string else \2 | tojson \3}}"),
        (rf"(\{{%-?\s*(?:el)?if) {_NAME} is not none\s*(?=-?%\}})", r"\1 true "),
        (rf" and {_NAME} is not none\b", ""),
        (rf" and {_NAME}\s*(?=-?%\}})", " "),
        (rf"(\{{%-?\s*(?:el)?if) ({_NAME})\s*(?=-?%\}})", r"\1 \2 is defined "),
        (r"\belse\s+''", "else 'null'"),
    ),
    "template.encoded-twice": (
        (
            rf"({_NAME})\s*\|\s*tojson\b(\([^()]*\))?",
            r"(\1 if \1 is string else \1 | tojson\2)",
        ),
    ),
    "template.object-arguments": (
        (
            rf"({_NAME}(?:\.arguments|\[['\"]arguments['\"]\]))(?!\s*[|.\[\w])",
            _AS_TEXT.format(r"\1"),
        ),
    ),
}  # fmt: skip
_RULES["template.dropped"] = _RULES["template.null"]
_RULES["template.python"] = _RULES["template.null"]
_RULES["template.value-crash"] = _RULES["template.null"]


def patched_lines(source: str, line: int, code: str) -> list[tuple[int, str]]:
    """Return (line, its new text), most likely first.

    The line of a finding, each place of it by itself and then all at once.
    """
    text = source.split("\n")[line - 1]
    texts: dict[str, None] = {}
    for pattern, replacement in _RULES.get(code, ()):
        places = list(re.finditer(pattern, text))
        for place in places:
            new = place.expand(replacement)
            texts[text[: place.start()] + new + text[place.end() :]] = None
        if len(places) > 1:
            texts[re.sub(pattern, replacement, text)] = None
    return [(line, other) for other in texts if other != text]
