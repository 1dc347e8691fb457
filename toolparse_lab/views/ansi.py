"""A ParseResult for the terminal.

Model text can send no escape sequence: every control character appears instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, TypeAlias, get_args

from ..core.errors import BadOptions
from ..core.types import ParseResult, Problem, ToolCall, Verdict
from ..core.types.result import explain_readings, explain_sources
from ..core.values.printable import counted
from .changes import Change, changes_of, place, protocol_words, sentence_of
from .marks import Mark, Run, clip, marks_of, runs_of
from .show import one_line, shorten, visible
from .tree import Row, rows_of

AnsiStyle: TypeAlias = Literal["background", "inverse", "underline", "bold"]

MAX_TEXT = 32 * 1024
MAX_ROWS = 500
RESET = "\x1b[0m"
# Backgrounds of the 256-colour cube with a black or white foreground that reads on each.
_BACKGROUND = {
    "reasoning": "3",
    "markup": "2",
    "opener": "48;5;182;38;5;16",
    "closer": "48;5;182;38;5;16",
    "name": "48;5;25;38;5;231",
    "argument": "48;5;29;38;5;231",
    "coerced": "48;5;214;38;5;16",
    "edit": "48;5;227;38;5;16",
    "problem": "48;5;166;38;5;231",
}
# For the styles that do not tell kinds apart.
_PLAIN = {"inverse": "7", "underline": "4", "bold": "1"}
# What is around all of a call would leave no text without a colour.
_QUIET = ("call", "recovered", "unclosed")
# Verdict -> its sign, and the number of its colour.
_VERDICT = {
    "none": ("·", "2"),
    "clean": ("✓", "32"),
    "repaired (lossless)": ("✓", "32"),
    "repaired (lossy)": ("!", "33"),
    "invalid": ("✗", "31"),
    "refused": ("✗", "31"),
    "truncated": ("…", "33"),
    "echoed": ("»", "31"),
}
_SEVERITY = {"error": ("✗", "31"), "warning": ("!", "33"), "info": ("i", "36")}


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
    lines = [_header(result, pen), *_blame(result), "", _raw(result, pen)]

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
        """Take a known style. Return `color=False` for text without any escape sequence."""
        self.style = style
        self.color = color

    def write(self, text: str, code: str) -> str:
        """Return text in the colour of an escape code, '' for none.

        code: the numbers of a "select graphic rendition" sequence, such as "1" or "38;5;16". text:
        without control characters, apart from line breaks and tabs.

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
        """Return the text of a mark, highlighted.

        An insertion has a sign instead of a text.

        text: visible already. It comes back as it is for a mark around a whole call.
        """
        kind = "coerced" if mark.coerced else mark.kind
        if kind in _QUIET:
            return text

        if not text and kind in ("edit", "problem"):
            text = "‸"
        if not text:
            return ""

        if not self.color:
            return f"[{kind}|{text}]"
        if self.style == "background":
            return self.write(text, _BACKGROUND[kind])
        return self.write(text, _PLAIN[self.style])


def _header(result: ParseResult, pen: _Pen) -> str:
    """Return the line above all: the verdict, and the result in figures."""
    parts = [
        _verdict(result.verdict, pen),
        # The id of a user's own protocol is their text, not ours.
        visible(protocol_words(result)),
        counted(len(result.calls), "call"),
        counted(len(result.raw), "character"),
        f"policy {result.options.coerce}",
    ]
    return "  ".join(parts)


def _blame(result: ParseResult) -> list[str]:
    """Return the line that compares the server's own calls with these.

    None without a response.
    """
    return [visible(shorten(result.blame, 1_000))] if result.blame else []


def _raw(result: ParseResult, pen: _Pen) -> str:
    """Return the raw text with highlights.

    Of one that is too long, its head and its tail.
    """
    raw = result.raw
    marks = marks_of(result)
    runs = runs_of([m.span for m in marks], len(raw))
    if len(raw) <= MAX_TEXT:
        return _highlighted(runs, marks, raw, pen)

    # The head says more than the tail, of which a quarter is enough.
    head = MAX_TEXT * 3 // 4
    tail = len(raw) - MAX_TEXT // 4
    parts = [
        _highlighted(clip(runs, 0, head), marks, raw, pen),
        f"… {tail - head:,} characters not shown …",
        _highlighted(clip(runs, tail, len(raw)), marks, raw, pen),
    ]
    return "\n".join(parts)


def _highlighted(runs: Iterable[Run], marks: list[Mark], raw: str, pen: _Pen) -> str:
    """Return the text of some runs, each in the colour of its innermost mark.

    runs: parts of `raw`, which name their marks by their index in `marks`, the innermost last.
    """
    parts = []
    for run in runs:
        text = visible(raw[run.start : run.end])
        if run.marks:
            innermost = marks[run.marks[-1]]
            text = pen.mark(innermost, text)
        parts.append(text)
    return "".join(parts)


def _call(call: ToolCall, result: ParseResult, pen: _Pen) -> Iterator[str]:
    """Return the lines of one call: its title, arguments, changes and problems.

    At most `MAX_ROWS` of each, with a line that counts the arguments and changes left out.
    """
    yield _title(call, pen)
    yield from _arguments(call, pen)
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


def _title(call: ToolCall, pen: _Pen) -> str:
    """Return the line of a call: its number, name, verdict, status where that says more,
    and place.
    """
    status = _verdict(call.verdict, pen)
    if call.status not in ("ok", call.verdict):
        status += f" ({call.status.replace('_', ' ')})"

    name = pen.write(one_line(call.name, 120) or "no name", "1")
    return f"call {call.index}  {name}  {status}  {place(call.segment.span)}"


def _verdict(word: Verdict, pen: _Pen) -> str:
    """Return a verdict with its sign, in its colour."""
    sign, code = _VERDICT[word]
    return pen.write(f"{sign} {word}", code)


def _arguments(call: ToolCall, pen: _Pen) -> Iterator[str]:
    """Return the lines of a call's arguments, indented as they nest."""
    # One more than fits, to see whether something is left out.
    rows = list(islice(rows_of(call), MAX_ROWS + 1))
    for row in rows[:MAX_ROWS]:
        # The arguments as a whole have a row too, with an empty path.
        if row.path:
            yield _argument(row, pen)
    if len(rows) > MAX_ROWS:
        yield f"  … more than {MAX_ROWS:,} arguments"


def _argument(row: Row, pen: _Pen) -> str:
    """Return the line of one argument: its name, its value, and its place in the text.

    A container has its type and size in place of a value. A place with "~" is the nearest that is
    known.
    """
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
    """Return the line of one change: its place, its before and after, and its rule."""
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
    """Return the line of one problem: severity, message, place and code.

    One without a message has the sentence that describes its code.
    """
    sign, colour = _SEVERITY[problem.severity]
    severity = pen.write(f"{sign} {problem.severity}", colour)

    text = visible(shorten(problem.message, 400)).replace("\n", "⏎")
    if not text:
        text = sentence_of(problem.code)

    at = f" at {one_line(problem.path, 80)}" if problem.path else ""
    code = pen.write(visible(problem.code), "36")
    return f"  {severity} {text}{at}  {code}"
