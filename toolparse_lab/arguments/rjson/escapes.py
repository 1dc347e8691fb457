"""Readings of a damaged escaped quote in a string of JSON, beside the literal one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...core.types import Edit, Span
from ...core.values import Value
from .nearest import QUOTES
from .positions import apply_edits
from .strict import read_sequence

# How it works. A backslash before a character that JSON does not escape is most often one of a
# pattern or a path, and meant as it is. It may also be what is left of an escaped quote. The quotes
# inside the string tell: in code, markup and prose they come in pairs. So each reading in which one
# character was lost, doubled, wrong or swapped is compared with the literal one. If the literal one
# leaves a quote without its partner, and one other does not, that is the reading; if several do
# not, nobody can tell.
#
# Cost: a few strict readings of the text, each linear, and only behind such an edit of the repair.

ESCAPES = frozenset(("rjson.bad-escape", "rjson.unescaped-quote", "rjson.escaped-apostrophe"))
"""Rules of edits that a damaged escape may be behind."""
_MOST_EDITS = 3
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SIGNS = "{}[],:"
_ESCAPED = "nrtbf"
_LONE = _ESCAPED + "/"


@dataclass(frozen=True, slots=True)
class EscapeReading:
    """One way to put an escape right, with the values of the whole text."""

    edit: Edit
    values: list[Value]


def escape_readings(text: str, edits: Sequence[Edit]) -> list[EscapeReading]:
    """Return the readings of a damaged escape that speak against the literal one."""
    if not 0 < len(edits) <= _MOST_EDITS or any(edit.rule not in ESCAPES for edit in edits):
        return []
    first = edits[0]
    candidates = list(_candidates(text, first.span.start, first.rule))
    if not candidates or edits[-1].span.start - first.span.start > 2:
        return []

    literal_at = first.span.start
    lexeme = _string_at(apply_edits(text, edits), literal_at)
    is_whole = _is_paired(lexeme)
    if is_whole and len(edits) == 1:
        # One edit is less than two. Of two that are as good, the literal one counts, save beside a
        # line break that lost its backslash to a neighbour in a text of several lines.
        has_breaks = "\\n" in lexeme.replace("\\\\", "")
        candidates = [
            edit for edit in candidates
            if (has_breaks and _frees_break(text, edit)) or _takes_escape(edit)
        ]  # fmt: skip

    readings: list[EscapeReading] = []
    for edit in candidates:
        repaired = apply_edits(text, [edit])
        try:
            values = read_sequence(repaired)
        except ValueError:
            continue
        if _is_paired(_string_at(repaired, edit.span.start)):
            readings.append(EscapeReading(edit, values))
    return readings


def is_certain(text: str, readings: Sequence[EscapeReading], rule: str) -> bool:
    """Tell if there is one reading, and nothing speaks for the literal one."""
    # rule: of the repair's edit. An apostrophe between letters may be one, and a line break that
    # would be made of a backslash and a letter may be a pattern.
    if len(readings) != 1:
        return False
    edit = readings[0].edit
    if _frees_break(text, edit) or _takes_escape(edit):
        return False
    start, end = edit.span.start, edit.span.end
    before, behind = text[start - 1 : start], text[end : end + 1]
    return rule != "rjson.escaped-apostrophe" or not (before.isalnum() and behind.isalnum())


def _candidates(text: str, at: int, rule: str) -> Iterator[Edit]:
    if rule == "rjson.unescaped-quote":
        if text[at - 2 : at] == '\\"':
            yield Edit(Span(at, at + 1), "", "rjson.extra-sign")
        elif text[at - 2 : at - 1] == "\\" and text[at - 1] in _LONE:
            yield Edit(Span(at - 1, at + 1), f'"{text[at - 1]}', "rjson.swapped-signs")
        return

    sign, behind = text[at + 1 : at + 2], text[at + 2 : at + 3]
    if sign in QUOTES:
        yield Edit(Span(at, at + 2), '\\"', "rjson.wrong-sign")
        return
    if behind == '"':
        yield Edit(Span(at + 1, at + 3), f'"{sign}', "rjson.swapped-signs")
    else:
        yield Edit(Span(at + 1, at + 1), '"', "rjson.missing-quote")
    if behind == '"' or (sign in _SIGNS and behind in _ESCAPED):
        yield Edit(Span(at, at + 2), f"{sign}\\", "rjson.swapped-signs")


def _frees_break(text: str, edit: Edit) -> bool:
    return edit.text[-1:] == "\\" and text[edit.span.end : edit.span.end + 1] in _ESCAPED


def _takes_escape(edit: Edit) -> bool:
    # Makes a letter of an escape, so that the escape may be right as well.
    return len(edit.text) == 2 and edit.text[0] == '"' and edit.text[1] in _LONE


def _string_at(text: str, at: int) -> str:
    for match in _STRING.finditer(text):
        if match.end() > at:
            return match[0] if match.start() <= at else ""
    return ""


def _is_paired(lexeme: str) -> bool:
    return lexeme.replace("\\\\", "").count('\\"') % 2 == 0
