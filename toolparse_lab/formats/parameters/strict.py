"""Blocks of parameter tags exactly as their format writes them: found by one compiled pattern, read
by another.

Most blocks are of this kind. Any other answers None, and is left to the scanner and the reader that
know every damage. If both answer, they answer the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import NamedTuple, TypeAlias

from ...core.types import Span
from ...core.values import Value, escape_token
from ..base import Decoded
from .form import (
    Form,
    decoded_text,
    inner_places,
    section_in,
    typed_value,
    value_offsets,
)

_Parameters: TypeAlias = Callable[[], Iterable[re.Match[str]]]

_SPACE = r"[ \t\r\n]*+"
_MAX_DEPTH = 200  # of a value in JSON
# A backslash is part of a line break that is written as two characters, which the scanner knows.
_NAME = r"[^\s<>\"'=\\,;:|)}\]][^\s<>\"'\\]{0,200}+"
# One that needs no escape in a path, and is not the word for text next to elements.
_PLAIN_NAME = r"[A-Za-z_][\w-]{0,100}+"
# Brackets after a function's name begin its arguments.
_FUNCTION = r"[^\s<>\"'=\\,;:|(){}\[\]][^\s<>\"'\\(){}]{0,200}+"


class StrictForm(NamedTuple):
    """The patterns of one format, for text in its own spelling.

    block: functions and the block's closer, group 1. function: its name, its parameters. parameter:
    its name, its value after the line break that it loses.
    """

    block: re.Pattern[str]
    function: re.Pattern[str]
    parameter: re.Pattern[str]


@lru_cache(maxsize=256)
def strict_form(form: Form) -> StrictForm:
    tags = form.strict_tags()
    own = ""
    for tag in (form.opener, form.closer):
        if tag:
            own += "|" + re.escape(tag.removeprefix("<"))

    # No tag of the format is in such a value, in whatever spelling: so its closer is what it
    # seems to be.
    value = rf"[^<]*+(?:<(?!{tags.signs}{own})[^<]*+)*+"
    function, function_end = tags.function
    parameter, parameter_end = tags.parameter
    value_end = re.escape(form.parameter_closer)
    any_end = re.sub(r"\?P<\w+>", "?:", parameter_end)  # a flag's group counts in one pattern only

    # Possessive throughout: where such a pattern fails it fails at once, and the text goes to the
    # scanner without a second try at it.
    parameters = rf"(?:{_SPACE}{parameter}{_NAME}{any_end}{value}{value_end})*+"
    function_closer = rf"{_SPACE}{re.escape(form.function_closer)}"
    closer = re.escape(form.closer) or "(?!)"

    # A function's pattern has matched already, so that a value's first closer is its own.
    inner = rf"[^<]*+(?:<(?!{value_end[1:]})[^<]*+)*+"
    line = r"(?:\r?+\n)?+" if form.trim else ""
    return StrictForm(
        re.compile(
            rf"(?:{_SPACE}{function}{_FUNCTION}{function_end}{parameters}{function_closer})++"
            rf"{_SPACE}({closer})",
            re.ASCII,
        ),
        re.compile(
            rf"{_SPACE}{function}({_FUNCTION}){function_end}({parameters}){function_closer}",
            re.ASCII,
        ),
        re.compile(
            rf"{parameter}({_NAME}){parameter_end}{line}(?P<value>{inner}){value_end}",
            re.ASCII,
        ),
    )


_END = re.compile(_SPACE + r"\Z")


def read_functions(form: Form, body: str) -> tuple[Decoded, ...] | None:
    """Return the calls of a body of functions, None if anything but the format's own spelling is in
    it.
    """
    # It may be an element around a value; from the end the search is several times as fast.
    if body.rfind("<value>") >= 0:
        return None

    # Each match is one function; nothing but white space may be left over between and after them.
    patterns = strict_form(form)
    functions: list[re.Match[str]] = []
    pos = 0
    while (match := patterns.function.match(body, pos)) is not None:
        functions.append(match)
        pos = match.end()
    if not functions or not _END.match(body, pos):
        return None

    # From the last to the first, since a function's place ends where the next one begins.
    calls: list[Decoded] = []
    end = len(body)
    for function in reversed(functions):
        parameters = partial(patterns.parameter.finditer, body, *function.span(2))
        values: dict[str, Value] = {}
        if form.flags:
            matches = list(parameters())
            count = len(matches)
            for match in matches:
                text = decoded_text(form, body[slice(*_span(form, body, match))])
                values[match[1]] = typed_value(text, match["flag"] or "", _MAX_DEPTH)
        else:
            pairs = patterns.parameter.findall(body, *function.span(2))
            count, trim = len(pairs), form.trim
            for name, text in pairs:
                if trim and text[-1:] == "\n":
                    text = text[: -2 if text[-2:-1] == "\r" else -1]
                values[name] = decoded_text(form, text) if "&" in text or text[:2] == "<!" else text
        if len(values) < count:  # a name is there twice
            return None

        name_start, name_end = function.span(1)
        start = body.rfind("<", 0, name_start)
        call = Decoded(
            function[1],
            values,
            name_span=Span(name_start, name_end),
            untyped=not form.flags
            or (form.flags_may_miss and all(isinstance(value, str) for value in values.values())),
            unescape=value_offsets,
            places=partial(_places, form, body, (start, end), parameters, values),
        )
        calls.append(call)
        end = start

    calls.reverse()
    return tuple(calls)


def _span(form: Form, body: str, parameter: re.Match[str]) -> tuple[int, int]:
    # Without the line break at its end.
    start, end = parameter.span("value")
    if form.trim and start < end and body[end - 1] == "\n":
        end -= 2 if body.endswith("\r\n", start, end) else 1
    return start, end


def _places(
    form: Form,
    body: str,
    whole: tuple[int, int],
    parameters: _Parameters,
    values: dict[str, Value],
) -> dict[str, tuple[int, int]]:
    if not form.flags and "<!" not in body:  # nearly every body: a value is all between its tags
        spans = {"/" + escape_token(match[1]): _span(form, body, match) for match in parameters()}
        return {"": whole, **spans}

    places = {"": whole}
    for match in parameters():
        place = _span(form, body, match)
        section = False
        if form.sections and body.startswith("<!", place[0]):
            start, end = section_in(body[slice(*place)])
            section = start > 0
            place = place[0] + start, place[0] + end
        path = "/" + escape_token(match[1])
        places[path] = place
        if form.flags:
            entities = form.entities and not section
            raw, value = body[slice(*place)], values[match[1]]
            for inner, at in inner_places(raw, place[0], value, entities=entities).items():
                places[path + inner] = at

    return places


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return [start, end) without one line break at each end."""
    # A look at one character first, since most values are asked for their places.
    if start < end and text[start] in "\r\n":
        if text[start] == "\n":
            start += 1
        elif text.startswith("\r\n", start, end):
            start += 2

    if start < end and text[end - 1] == "\n":
        end -= 2 if text.endswith("\r\n", start, end) else 1
    return start, end
