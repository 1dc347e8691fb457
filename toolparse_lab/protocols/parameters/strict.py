"""Blocks of parameter tags exactly as their format writes them: found by one compiled pattern, read
by another.

Most blocks are of this kind. Any other answers None, and is left to the scanner and the reader that
know every damage; where both answer, they answer the same.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import NamedTuple

from ...rxml.text import unescape, unescape_offsets
from ...types import Span
from ...values import Value, escape_token
from ..base import Decoded
from .form import TagForm

_SPACE = r"[ \t\r\n]*+"
_NAME = r"[^\s<>\"'=][^\s<>\"']{0,200}+"


class StrictForm(NamedTuple):
    """The patterns of one format, for text in its own spelling.

    block: functions and the block's closer, group 1. function: its name, its parameters. parameter:
    its name, its value.
    """

    block: re.Pattern[str]
    function: re.Pattern[str]
    parameter: re.Pattern[str]


@lru_cache(maxsize=64)
def strict_form(form: TagForm) -> StrictForm:
    """Return the patterns of one format.

    form: the constants of the format, which may have no block around its functions.
    """
    words = "|".join((*form.functions, *form.parameters))
    own = ""
    for tag in (form.opener, form.closer):
        if tag:
            own += "|" + re.escape(tag.removeprefix("<"))

    # No tag of the format stands in such a value, in whatever spelling: so its closer is what it
    # seems to be.
    value = rf"[^<]*+(?:<(?!(?i:/?[ \t]{{0,8}}(?:{words}){own}))[^<]*+)*+"
    function, function_end = re.escape(form.tag(form.function, "\0")).split("\0")
    parameter, parameter_end = re.escape(form.tag(form.parameter, "\0")).split("\0")

    # Possessive throughout: where such a pattern fails it fails at once, and the text goes to the
    # scanner without a second try at it.
    parameters = rf"(?:{_SPACE}{parameter}{_NAME}{parameter_end}{value}</{form.parameter}>)*+"
    function_closer = rf"{_SPACE}</{form.function}>"
    closer = re.escape(form.closer) or "(?!)"
    return StrictForm(
        re.compile(
            rf"(?:{_SPACE}{function}{_NAME}{function_end}{parameters}{function_closer})++"
            rf"{_SPACE}({closer})",
            re.ASCII,
        ),
        re.compile(
            rf"{_SPACE}{function}({_NAME}){function_end}({parameters}){function_closer}", re.ASCII
        ),
        # Only for what a function's pattern has matched, so that a value's first closer is its own.
        re.compile(
            rf"{parameter}({_NAME}){parameter_end}([^<]*+(?:<(?!/{form.parameter}>)[^<]*+)*+)"
            rf"</{form.parameter}>",
            re.ASCII,
        ),
    )


_END = re.compile(_SPACE + r"\Z")


def read_functions(form: TagForm, body: str) -> tuple[Decoded, ...] | None:
    """Return the calls of a body of functions.

    None where anything but the format's own spelling stands in it.
    """
    # It may be an element around a value; from the end the search is several times as fast.
    if body.rfind("<value>") >= 0:
        return None

    # Each match is one function; nothing but white space may be left over between and behind them.
    patterns = strict_form(form)
    matches: list[re.Match[str]] = []
    pos = 0
    while (match := patterns.function.match(body, pos)) is not None:
        matches.append(match)
        pos = match.end()
    if not matches or not _END.match(body, pos):
        return None

    # From the last to the first, since a function's place ends where the next one begins.
    calls: list[Decoded] = []
    end = len(body)
    for match in reversed(matches):
        values = _values(form, body, match, patterns.parameter)
        if values is None:
            return None

        start = body.rfind("<", 0, match.start(1))
        call = Decoded(
            match[1],
            values,
            name_span=Span(*match.span(1)),
            untyped=True,
            unescape=unescape_offsets,
            places=partial(_places, form, body, start, end, match, patterns.parameter),
        )
        calls.append(call)
        end = start

    return tuple(reversed(calls))


def _values(
    form: TagForm, body: str, function: re.Match[str], parameter: re.Pattern[str]
) -> dict[str, Value] | None:
    """Return name -> text; None where a name stands twice.

    function: the match whose group 2 holds the parameters.

    parameter: the pattern of one parameter, as `strict_form` has it.
    """
    pairs: list[tuple[str, str]] = parameter.findall(body, *function.span(2))
    values: dict[str, Value] = {}
    trim = form.trim
    for name, text in pairs:
        if trim:  # as `trimmed`, which is slower on short texts
            if text.startswith("\n"):
                text = text[1:]
            elif text.startswith("\r\n"):
                text = text[2:]
            if text.endswith("\n"):
                text = text[: -2 if text.endswith("\r\n") else -1]
        values[name] = unescape(text) if "&" in text else text

    return values if len(values) == len(pairs) else None


def _places(
    form: TagForm,
    body: str,
    start: int,
    end: int,
    function: re.Match[str],
    parameter: re.Pattern[str],
) -> dict[str, tuple[int, int]]:
    """Return JSON Pointer -> place in the body, for a function in [start, end) and its values.

    function: the match whose group 2 holds the parameters. parameter: the pattern of one.
    """
    places = {"": (start, end)}
    for match in parameter.finditer(body, *function.span(2)):
        place = match.span(2)
        if form.trim:
            place = trimmed(body, *place)
        places["/" + escape_token(match[1])] = place

    return places


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return [start, end) without one line break at each end.

    >>> trimmed("\\r\\nx\\n", 0, 4)
    (2, 3)
    """
    # A look at one character first, since most values are asked for their places.
    if start < end and text[start] in "\r\n":
        if text[start] == "\n":
            start += 1
        elif text.startswith("\r\n", start, end):
            start += 2

    if start < end and text[end - 1] == "\n":
        end -= 2 if text.endswith("\r\n", start, end) else 1
    return start, end
