"""Blocks of parameter tags exactly as their format writes them: found by one compiled pattern, read by another.

Most blocks are of this kind. Whatever is not answers None, and is left to the scanner and the reader that know every
damage; where both answer, they answer the same.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import NamedTuple

from ..rxml.text import unescape, unescape_offsets
from ..types import Span
from ..values import Value, escape_token
from .base import Decoded
from .parameter_form import TagForm

_SPACE = r"[ \t\r\n]*+"
_NAME = r"[^\s<>\"'=][^\s<>\"']{0,200}+"


class StrictForm(NamedTuple):
    """block: functions and the block's closer, group 1. function: its name, its parameters. parameter: name, value."""

    block: re.Pattern[str]
    function: re.Pattern[str]
    parameter: re.Pattern[str]


@lru_cache(maxsize=64)
def strict_form(form: TagForm) -> StrictForm:
    """The patterns of one format."""
    words = "|".join((*form.functions, *form.parameters))
    own = "".join("|" + re.escape(tag.removeprefix("<")) for tag in (form.opener, form.closer) if tag)
    # No tag of the format stands in such a value, in whatever spelling: so its closer is what it seems to be.
    value = rf"[^<]*+(?:<(?!(?i:/?[ \t]{{0,8}}(?:{words}){own}))[^<]*+)*+"
    function, function_end = re.escape(form.tag(form.function, "\0")).split("\0")
    parameter, parameter_end = re.escape(form.tag(form.parameter, "\0")).split("\0")
    parameters = rf"(?:{_SPACE}{parameter}{_NAME}{parameter_end}{value}</{form.parameter}>)*+"
    closer = re.escape(form.closer) or "(?!)"
    return StrictForm(
        re.compile(
            rf"(?:{_SPACE}{function}{_NAME}{function_end}{parameters}{_SPACE}</{form.function}>)++{_SPACE}({closer})",
            re.ASCII,
        ),
        re.compile(rf"{_SPACE}{function}({_NAME}){function_end}({parameters}){_SPACE}</{form.function}>", re.ASCII),
        re.compile(rf"{parameter}({_NAME}){parameter_end}({value})</{form.parameter}>", re.ASCII),
    )


_END = re.compile(_SPACE + r"\Z")


def read_functions(form: TagForm, body: str) -> tuple[Decoded, ...] | None:
    """The calls of a body of functions; None where anything but the format's own spelling stands in it."""
    if "<value>" in body:  # it may be an element around a value
        return None
    patterns = strict_form(form)
    matches: list[re.Match[str]] = []
    pos = 0
    while (m := patterns.function.match(body, pos)) is not None:
        matches.append(m)
        pos = m.end()
    if not matches or not _END.match(body, pos):
        return None
    found: list[Decoded] = []
    end = len(body)
    for m in reversed(matches):
        values = _values(form, body, m, patterns.parameter)
        if values is None:
            return None
        start = body.rfind("<", 0, m.start(1))
        found.append(
            Decoded(
                m[1], values, name_span=Span(*m.span(1)), untyped=True, unescape=unescape_offsets,
                places=partial(_places, form, body, start, end, m, patterns.parameter),
            )
        )  # fmt: skip
        end = start
    return tuple(reversed(found))


def _values(form: TagForm, body: str, m: re.Match[str], parameter: re.Pattern[str]) -> dict[str, Value] | None:
    """name -> text; None where a name stands twice."""
    pairs: list[tuple[str, str]] = parameter.findall(body, *m.span(2))
    values: dict[str, Value] = {}
    if form.trim:  # as `trimmed`, which is slower on short texts
        for name, text in pairs:
            if text.startswith("\n"):
                text = text[1:]
            elif text.startswith("\r\n"):
                text = text[2:]
            if text.endswith("\n"):
                text = text[: -2 if text.endswith("\r\n") else -1]
            values[name] = unescape(text) if "&" in text else text
    else:
        for name, text in pairs:
            values[name] = unescape(text)
    return values if len(values) == len(pairs) else None


def _places(
    form: TagForm, body: str, start: int, end: int, m: re.Match[str], parameter: re.Pattern[str]
) -> dict[str, tuple[int, int]]:
    places = {"": (start, end)}
    for found in parameter.finditer(body, *m.span(2)):
        a, b = found.span(2)
        places["/" + escape_token(found[1])] = trimmed(body, a, b) if form.trim else (a, b)
    return places


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """[start, end) without one line break at each end.

    >>> trimmed("\\r\\nx\\n", 0, 4)
    (2, 3)
    """
    if text.startswith("\n", start, end):
        start += 1
    elif text.startswith("\r\n", start, end):
        start += 2
    if text.endswith("\n", start, end):
        end -= 2 if text.endswith("\r\n", start, end) else 1
    return start, end
