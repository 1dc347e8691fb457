"""A ParseResult for the terminal. Model text can send no escape sequence: every control character is shown instead."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal, TypeAlias, get_args

from ..errors import BadOptions
from ..types import ParseResult, Problem, ToolCall
from .changes import Change, changes_of, place, sentence_of
from .marks import Mark, Run, clip, marks_of, runs_of
from .show import one_line, shorten, visible
from .tree import rows_of

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
_PLAIN = {"inverse": "7", "underline": "4", "bold": "1"}
_QUIET = ("call", "recovered", "unclosed")
_STATUS = {
    "ok": ("✓", "32"),
    "unknown_tool": ("?", "33"),
    "truncated": ("…", "33"),
    "undecodable": ("✗", "31"),
    "draft": ("~", "2"),
}
_SEVERITY = {"error": ("✗", "31"), "warning": ("!", "33"), "info": ("i", "36")}


def render_ansi(result: ParseResult, style: AnsiStyle = "background", color: bool = True) -> str:
    """The raw text with highlights, then one block a call: name, status, arguments, repairs and steps by rule id.

    `color=False` writes no escape sequence at all and puts marks in brackets instead: `[a|b]` is `b`, read as kind
    `a`. Raises BadOptions for an unknown style.
    """
    if style not in get_args(AnsiStyle):
        raise BadOptions("unknown highlight style", got=style, expected=", ".join(get_args(AnsiStyle)))
    pen = _Pen(style, color)
    lines = [_header(result, pen), "", _raw(result, pen)]
    if result.calls or result.problems:
        lines.append("")
    lines += [_problem(p, pen) for p in result.problems[:MAX_ROWS]]
    for call in result.calls[:MAX_ROWS]:
        lines += _call(call, result, pen)
    if len(result.calls) > MAX_ROWS:
        lines.append(f"… {len(result.calls) - MAX_ROWS:,} more calls")
    return "\n".join(lines)


class _Pen:
    def __init__(self, style: AnsiStyle, color: bool) -> None:
        self.style = style
        self.color = color

    def write(self, text: str, code: str) -> str:
        if not self.color or not code or not text:
            return text
        # A highlight that ran over a line's end would fill the rest of the terminal's line.
        return "\n".join(f"\x1b[{code}m{line}{RESET}" if line else line for line in text.split("\n"))

    def mark(self, mark: Mark, text: str) -> str:
        coerced = mark.kind == "argument" and any(r.startswith("coerce.") for r in mark.rules)
        kind = "coerced" if coerced else mark.kind
        if kind in _QUIET:
            return text
        if not text and kind in ("edit", "problem"):
            text = "‸"
        if not self.color:
            return f"[{kind}|{text}]" if text else ""
        return self.write(text, _BACKGROUND[kind] if self.style == "background" else _PLAIN[self.style])


def _header(result: ParseResult, pen: _Pen) -> str:
    sign, code = ("✓ ok", "32") if result.ok else ("✗ has errors", "31")
    count = len(result.calls)
    calls = f"{count} call" + ("" if count == 1 else "s")
    return (
        f"{pen.write(sign, code)}  {visible(result.protocol)}  {calls}  {len(result.raw):,} characters"
        f"  policy {result.options.coerce}"
    )


def _raw(result: ParseResult, pen: _Pen) -> str:
    raw = result.raw
    marks = marks_of(result)
    runs = runs_of([m.span for m in marks], len(raw))
    if len(raw) <= MAX_TEXT:
        return "".join(_run(run, marks, raw, pen) for run in runs)
    head, tail = MAX_TEXT * 3 // 4, len(raw) - MAX_TEXT // 4
    return (
        "".join(_run(run, marks, raw, pen) for run in clip(runs, 0, head))
        + f"\n… {tail - head:,} characters not shown …\n"
        + "".join(_run(run, marks, raw, pen) for run in clip(runs, tail, len(raw)))
    )


def _run(run: Run, marks: list[Mark], raw: str, pen: _Pen) -> str:
    text = visible(raw[run.start : run.end])
    return pen.mark(marks[run.marks[-1]], text) if run.marks else text


def _call(call: ToolCall, result: ParseResult, pen: _Pen) -> Iterator[str]:
    sign, code = _STATUS[call.status]
    name = pen.write(one_line(call.name, 120) or "no name", "1")
    status = f"{sign} {call.status.replace('_', ' ')}"
    if call.ok:
        status += ", valid" if call.valid else ", breaks its schema"
        code = code if call.valid else "31"
    yield f"call {call.index}  {name}  {pen.write(status, code)}  {place(call.segment.span)}"
    rows = list(islice(rows_of(call), MAX_ROWS + 1))
    for row in rows[:MAX_ROWS]:
        if not row.path:
            continue
        indent = "  " * min(row.depth, 12)
        where = ""
        if row.origin is not None:
            about = "" if row.origin.exact else "~"
            where = f"  {about}{row.origin.span.start}–{row.origin.span.end}"
        value = one_line(row.text, 200) if row.leaf else pen.write(f"{row.kind}, {row.text}", "2")
        yield f"{indent}{one_line(row.key, 80)}: {value}{pen.write(where, '2')}"
    if len(rows) > MAX_ROWS:
        yield f"  … more than {MAX_ROWS:,} arguments"
    if not call.readable:
        yield "  the body could not be read, so there are no arguments"
    for change in islice(changes_of(call, result.raw), MAX_ROWS):
        yield _change(change, pen)
    if (more := len(call.edits) + len(call.steps) - MAX_ROWS) > 0:
        yield f"  … {more:,} more changes"
    for problem in call.problems[:MAX_ROWS]:
        yield _problem(problem, pen)


def _change(change: Change, pen: _Pen) -> str:
    before, after = one_line(change.before, 80), one_line(change.after, 80)
    if change.kind == "repair" and not change.after:
        what = f"{pen.write(before, '31')} dropped"
    elif change.kind == "repair" and not change.before:
        what = f"{pen.write(after, '32')} added"
    else:
        what = f"{pen.write(before, '31')} → {pen.write(after, '32')}"
    at = one_line(change.path, 80) or place(change.span) or "arguments"
    loss = "" if change.lossless else " (lossy)"
    return f"  {change.kind} {at}: {what}  {pen.write(visible(change.rule) + loss, '36')}"


def _problem(problem: Problem, pen: _Pen) -> str:
    sign, code = _SEVERITY[problem.severity]
    text = visible(shorten(problem.message, 400)).replace("\n", "⏎") or sentence_of(problem.code)
    at = f" at {one_line(problem.path, 80)}" if problem.path else ""
    return f"  {pen.write(f'{sign} {problem.severity}', code)} {text}{at}  {pen.write(visible(problem.code), '36')}"
