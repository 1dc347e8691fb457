"""A ParseResult for the terminal. Model text can send no escape sequence: it shows instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, TypeAlias, get_args

from ..core.errors import BadOptions
from ..core.types import ParseResult, Problem, ToolCall, Verdict
from ..core.types.result import explain_readings, explain_sources
from ..core.values.printable import counted
from .cells import tokens_line
from .marks import Mark, Run, marks_of, runs_of, without_middle
from .rows import Change, Row, changes_of, place, protocol_words, rows_of, sentence_of
from .show import one_line, shorten, visible
from .style import MARKS, SEVERITIES, VERDICTS

AnsiStyle: TypeAlias = Literal["background", "inverse", "underline", "bold"]

MAX_TEXT = 32 * 1024
MAX_ROWS = 500
RESET = "\x1b[0m"
# For the styles that do not tell kinds apart.
_PLAIN = {"inverse": "7", "underline": "4", "bold": "1"}


def render_ansi(result: ParseResult, style: AnsiStyle = "background", color: bool = True) -> str:
    """Return the raw text with highlights, then one block a call: name, status, arguments, repairs
    and steps by rule id.

    `style` is the way highlights are drawn. Only "background" tells their kinds apart.
    `color=False` writes no escape sequence at all and puts marks in brackets instead: `[a|b]` is
    `b`, read as kind `a`. Raises BadOptions for an unknown style.
    """
    if style not in get_args(AnsiStyle):
        raise BadOptions(
            "unknown highlight style", got=style, expected=", ".join(get_args(AnsiStyle))
        )
    pen = _Pen(style, color)
    header = [
        _verdict(result.verdict, pen),
        # The id of a user's own protocol is their text, not ours.
        visible(protocol_words(result)),
        counted(len(result.calls), "call"),
        counted(len(result.raw), "character"),
        f"policy {result.options.coerce}",
    ]
    lines = ["  ".join(header)]
    if result.blame:
        lines.append(visible(shorten(result.blame, 1_000)))
    lines += ["", _raw(result, pen)]
    if line := tokens_line(result):
        lines += ["", line]

    if result.calls or result.problems:
        lines.append("")
    lines += [_problem(p, pen) for p in result.problems[:MAX_ROWS]]

    for call in result.calls[:MAX_ROWS]:
        lines += _call(call, result, pen)
    if len(result.calls) > MAX_ROWS:
        lines.append(f"… {len(result.calls) - MAX_ROWS:,} more calls")
    return "\n".join(lines)


class _Pen:
    """Writes text in the colours of a style, or without any escape sequence."""

    def __init__(self, style: AnsiStyle, color: bool) -> None:
        self.style = style
        self.color = color

    def write(self, text: str, code: str) -> str:
        """Return text in the colour of an escape code, '' for none.

        text: without control characters, apart from line breaks and tabs.

        >>> _Pen("bold", True).write("a", "1"), _Pen("bold", False).write("a", "1")
        ('\\x1b[1ma\\x1b[0m', 'a')
        """
        if not self.color or not code or not text:
            return text

        # Line by line: a highlight that ran over a line's end would fill the rest of the
        # terminal's line.
        lines = text.split("\n")
        return "\n".join(f"\x1b[{code}m{line}{RESET}" if line else "" for line in lines)

    def mark(self, mark: Mark, text: str) -> str:
        """Return the visible text of a mark, highlighted. An insertion has a sign instead."""
        kind = "coerced" if mark.coerced else mark.kind
        codes = MARKS[kind].terminal
        if not codes:
            return text

        if not text and kind in ("edit", "problem"):
            text = "‸"
        if not text:
            return ""

        if not self.color:
            return f"[{kind}|{text}]"
        if self.style == "background":
            return self.write(text, codes)
        return self.write(text, _PLAIN[self.style])


def _raw(result: ParseResult, pen: _Pen) -> str:
    raw = result.raw
    marks = marks_of(result)
    runs = runs_of([m.span for m in marks], len(raw))
    if len(raw) <= MAX_TEXT:
        return _highlighted(runs, marks, raw, pen)

    first, head, tail, last = without_middle(runs, len(raw), MAX_TEXT)
    parts = [
        _highlighted(first, marks, raw, pen),
        f"… {tail - head:,} characters not shown …",
        _highlighted(last, marks, raw, pen),
    ]
    return "\n".join(parts)


def _highlighted(runs: Iterable[Run], marks: list[Mark], raw: str, pen: _Pen) -> str:
    # Each run in the colour of its innermost mark.
    parts = []
    for run in runs:
        text = visible(raw[run.start : run.end])
        if run.marks:
            text = pen.mark(marks[run.marks[-1]], text)
        parts.append(text)
    return "".join(parts)


def _call(call: ToolCall, result: ParseResult, pen: _Pen) -> Iterator[str]:
    """Yield the lines of one call: its title, arguments, changes and problems."""
    status = _verdict(call.verdict, pen)
    if call.status not in ("ok", call.verdict):
        status += f" ({call.status.replace('_', ' ')})"
    name = pen.write(one_line(call.name, 120) or "no name", "1")
    yield f"call {call.index}  {name}  {status}  {place(call.segment.span)}"

    # One more than fits, to see whether something is left out.
    rows = list(islice(rows_of(call), MAX_ROWS + 1))
    for row in rows[:MAX_ROWS]:
        # The arguments as a whole have a row too, with an empty path.
        if row.path:
            yield _argument(row, pen)
    if len(rows) > MAX_ROWS:
        yield f"  … more than {MAX_ROWS:,} arguments"
    if not call.readable:
        yield "  the body could not be read, so there are no arguments"
    for line in explain_readings(call):
        yield f"  it may be {line}"
    copied = explain_sources(call)
    if copied:
        yield f"  {copied}"

    for change in islice(changes_of(call, result.raw), MAX_ROWS):
        yield _change(change, pen)
    more = len(call.edits) + len(call.steps) - MAX_ROWS
    if more > 0:
        yield f"  … {more:,} more changes"

    for problem in call.problems[:MAX_ROWS]:
        yield _problem(problem, pen)


def _verdict(word: Verdict, pen: _Pen) -> str:
    sign, _, code = VERDICTS[word]
    return pen.write(f"{sign} {word}", code)


def _argument(row: Row, pen: _Pen) -> str:
    # A container has its type and size in place of a value. A place with "~" is the nearest known.
    indent = "  " * min(row.depth, 12)
    if row.leaf:
        value = one_line(row.text, 200)
    else:
        value = pen.write(f"{row.kind}, {row.text}", "2")

    origin = ""
    if row.origin is not None:
        about = "" if row.origin.exact else "~"
        span = row.origin.span
        origin = pen.write(f"  {about}{span.start}–{span.end}", "2")
    return f"{indent}{one_line(row.key, 80)}: {value}{origin}"


def _change(change: Change, pen: _Pen) -> str:
    before = pen.write(one_line(change.before, 80), "31")
    after = pen.write(one_line(change.after, 80), "32")
    what = f"{before} → {after}"
    if change.kind == "repair" and not change.after:
        what = f"{before} dropped"
    elif change.kind == "repair" and not change.before:
        what = f"{after} added"

    # A step has a path, '' for the arguments as a whole, and a repair the place of its characters.
    at = one_line(change.path, 80) or place(change.span) or "arguments"
    loss = "" if change.lossless else " (lossy)"
    rule = pen.write(visible(change.rule) + loss, "36")
    return f"  {change.kind} {at}: {what}  {rule}"


def _problem(problem: Problem, pen: _Pen) -> str:
    sign, _, colour = SEVERITIES[problem.severity]
    severity = pen.write(f"{sign} {problem.severity}", colour)

    text = visible(shorten(problem.message, 400)).replace("\n", "⏎")
    if not text:
        text = sentence_of(problem.code)

    at = f" at {one_line(problem.path, 80)}" if problem.path else ""
    code = pen.write(visible(problem.code), "36")
    return f"  {severity} {text}{at}  {code}"
