"""The line of a template that is why, and other texts for it to be tried."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ....core.values import Value
from ....core.values.affixes import common_prefix, common_suffix

Events = Sequence[Sequence[Any]]
TESTS = ("test", "choice")

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


def first_difference(events: Events, plain: Events, value: Value, written: str = "") -> int | None:
    """Return the line that is the first to write `value` otherwise than a plain word, or the test
    that leaves it out. None if nothing differs.

    events, plain: of both renderings, as `sandbox.Tracer` has them. written: the whole text of the
    value; a line that writes just that goes first.
    """
    ours, theirs, test = list(map(tuple, events)), list(map(tuple, plain)), None
    while True:
        # What is left of both without their common beginning and end.
        start = common_prefix(ours, theirs)
        ours, theirs = ours[start:], theirs[start:]
        end = common_suffix(ours, theirs)
        ours, theirs = ours[: len(ours) - end], theirs[: len(theirs) - end]
        exact = [e for e in ours if e[0] not in TESTS and e[3] == written and e not in theirs]
        if exact and written:
            return int(exact[0][1])
        if not ours:
            last = test or (theirs[0] if theirs else None)
            return None if last is None else int(last[1])
        step, other = ours[0], theirs[0] if theirs else None
        is_same_place = other is not None and step[:2] == other[:2]
        if step[0] in TESTS:
            test = step if is_same_place else test
        elif step[0] == "set" and step[3] == value:
            pass  # a name for the value as it is
        elif test is None:
            return int(step[1])
        else:
            # A choice is itself inside the write that it chooses for.
            level = int(test[2]) - (test[0] == "choice")
            if step[2] < level:
                # Such as the call of a macro: it differs only by what the test left out.
                return int(test[1])
            # Not what a macro writes, but the line that calls it.
            calls = (e for e in ours if e[2] <= level and e[0] not in TESTS)
            return int(next(calls, step)[1])
        ours, theirs = ours[1:], theirs[1:] if is_same_place else theirs


def patched_lines(text: str, code: str) -> list[str]:
    """Return other texts for a line, most likely first: each place by itself, then all at once."""
    texts: dict[str, None] = {}
    for pattern, replacement in _RULES.get(code, ()):
        places = list(re.finditer(pattern, text))
        for place in places:
            new = place.expand(replacement)
            texts[text[: place.start()] + new + text[place.end() :]] = None
        if len(places) > 1:
            texts[re.sub(pattern, replacement, text)] = None
    return [other for other in texts if other != text]
