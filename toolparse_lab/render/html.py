"""A ParseResult as static HTML: no JavaScript, inline styles only, every character of model text escaped.

It reads the same in a trusted and an untrusted notebook, without a kernel, in `nbconvert` and in a saved page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

from ..rules import RULES
from ..types import ParseResult, Problem, Span, ToolCall
from . import style
from .changes import Change, changes_of, place, sentence_of, step_change
from .marks import Mark, Run, clip, marks_of, runs_of
from .show import HIDDEN, name_of, one_line, shorten, visible
from .tree import Row, rows_of

MAX_TEXT = 256 * 1024
MAX_RUNS = 2_000
MAX_ROWS = 500
MAX_CHANGES = 300
MAX_CALLS = 200
MAX_VALUE = 2_000
MAX_TITLES = 12

_HIDDEN_RUNS = re.compile(f"{HIDDEN.pattern}+")


def render_result(result: ParseResult) -> str:
    """The whole result: header, highlighted raw text, and for each call its arguments, repairs and problems.

    What would make the page too heavy is left out with a note that says so: text beyond 256 K characters, arguments
    beyond 500, calls beyond 200, changes beyond 300 a call.
    """
    parts = [
        '<div class="toolparse" style="font-size:13px;line-height:1.5">',
        _header(result),
        _raw(result),
        _why(result),
        _problems(result.problems, "Problems of the text"),
    ]
    room = MAX_ROWS
    for call in result.calls[:MAX_CALLS]:
        block, rows = _call(call, result.raw, room)
        room -= rows
        parts.append(block)
    if len(result.calls) > MAX_CALLS:
        parts.append(_note(f"{len(result.calls) - MAX_CALLS:,} more calls are not shown."))
    parts.append("</div>")
    return "".join(parts)


def render_diff(subject: ParseResult | ToolCall) -> str:
    """The coercion diff alone: each changed argument before and after, with its rule, lossless told from lossy."""
    calls = subject.calls if isinstance(subject, ParseResult) else (subject,)
    parts = ['<div class="toolparse" style="font-size:13px;line-height:1.5">']
    for call in calls[:MAX_CALLS]:
        changes = [step_change(call, s) for s in call.steps]
        parts.append(f'<div style="{style.TITLE}">{_call_title(call)}</div>')
        parts.append(
            _changes(changes[:MAX_CHANGES], "")
            if changes
            else _note("Nothing was coerced: the arguments are as found.")
        )
        if len(changes) > MAX_CHANGES:
            parts.append(_note(f"{len(changes) - MAX_CHANGES:,} more changes are not shown."))
    if not calls:
        parts.append(_note("No calls, so nothing was coerced."))
    if len(calls) > MAX_CALLS:
        parts.append(_note(f"{len(calls) - MAX_CALLS:,} more calls are not shown."))
    parts.append("</div>")
    return "".join(parts)


def text_of(text: str) -> str:
    """Model text as HTML: escaped, hidden characters as signs that say on hover what they are."""
    out: list[str] = []
    last = 0
    for match in _HIDDEN_RUNS.finditer(text):
        out.append(escape(text[last : match.start()]))
        names = [name_of(c) for c in match[0][:6]]
        if len(match[0]) > 6:
            names.append(f"and {len(match[0]) - 6:,} more")
        out.append(
            f'<span class="toolparse-hidden" title="{escape(", ".join(names))}" style="{style.INVISIBLE}">'
            f"{visible(match[0])}</span>"
        )
        last = match.end()
    out.append(escape(text[last:]))
    return "".join(out)


def _header(result: ParseResult) -> str:
    count = len(result.calls)
    executable = sum(c.valid for c in result.calls)
    found = "no calls" if not count else f"{count} call" + ("" if count == 1 else "s")
    repairs = sum(len(c.edits) for c in result.calls)
    coerced = sum(s.stage == "coerce" for c in result.calls for s in c.steps)
    facts = [found, f"{executable} executable"] if count else [found]
    facts += [
        _count(repairs, "repair"),
        _count(coerced, "coercion"),
        f"{len(result.raw):,} characters",
        f"policy {result.options.coerce}",
    ]
    sign, rgb, word = ("✓", style.GREEN, "ok") if result.ok else ("✗", style.VERMILLION, "has errors")
    return (
        f'<div style="margin:2px 0 6px 0">{badge(f"{sign} {word}", rgb)}'
        f"{badge(result.protocol, style.BLUE, title='protocol')}"
        f'<span style="{style.DIM}">{escape(visible(" · ".join(f for f in facts if f)))}</span></div>'
    )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s") if n else ""


def _raw(result: ParseResult) -> str:
    raw = result.raw
    if not raw:
        return _note("The text is empty.")
    marks = marks_of(result)
    runs = runs_of([m.span for m in marks], len(raw))
    notes: list[str] = []
    if len(raw) > MAX_TEXT:
        head, tail = MAX_TEXT * 3 // 4, len(raw) - MAX_TEXT // 4
        notes.append(f"Characters {head:,} to {tail:,} of {len(raw):,} are not shown.")
        gap = (
            f'<span style="{style.BADGE};border:1px solid {style.LINE}">… {tail - head:,} characters not shown …</span>'
        )
        pieces: list[str | list[Run]] = [clip(runs, 0, head), f"\n{gap}\n", clip(runs, tail, len(raw))]
    else:
        pieces = [runs]
    body: list[str] = []
    room = MAX_RUNS
    for piece in pieces:
        if isinstance(piece, str):
            body.append(piece)
            continue
        body += [_run(run, marks, raw) for run in piece[:room]]
        if len(piece) > room:
            rest = piece[room:]
            notes.append(f"From character {rest[0].start:,} on nothing is highlighted: there are too many marks.")
            body.append(text_of(raw[rest[0].start : rest[-1].end]))
        room = max(0, room - len(piece))
    shown = {style.style_of(m) for m in marks}
    legend = "".join(
        f'<span style="{style.KINDS[kind]};padding:0 3px;margin:0 12px 0 0">{word}</span>'
        for kind, word in style.LEGEND
        if style.KINDS[kind] in shown
    )
    return (
        f'<div class="toolparse-raw" style="{style.BOX};{style.RAW}">{"".join(body)}</div>'
        + (f'<div style="font-size:11px;margin:2px 0">{legend}</div>' if legend else "")
        + "".join(_note(n) for n in notes)
    )


def _run(run: Run, marks: Sequence[Mark], raw: str) -> str:
    if not run.marks:
        return text_of(raw[run.start : run.end])
    stack = [marks[i] for i in run.marks]
    inner = stack[-1]
    title = escape("\n".join(m.title for m in stack[: -MAX_TITLES - 1 : -1]))
    if run.start == run.end:
        look = style.INSERTION if inner.kind == "edit" else style.style_of(inner) + ";padding:0 2px"
    else:
        look = style.style_of(inner)
        if inner.kind == "edit" and inner.label.endswith(" is dropped"):
            look += style.DROPPED
    classes = " ".join((f"toolparse-{inner.kind}", *(RULES[r].css for r in inner.rules if r in RULES)))
    # Not <mark>: browsers write it in black, and an untrusted notebook drops the `color: inherit` that undoes that.
    return f'<span class="{classes}" title="{title}" style="{look}">{text_of(raw[run.start : run.end])}</span>'


def _why(result: ParseResult) -> str:
    lines = [line for line in result.why().splitlines() if line.strip()]
    if not lines:
        return ""
    return "".join(f'<div style="margin:2px 0">{text_of(shorten(line, 1_000))}</div>' for line in lines[:MAX_CALLS])


def _call_title(call: ToolCall) -> str:
    sign, rgb = style.STATUS[call.status]
    badges = [badge(f"{sign} {call.status.replace('_', ' ')}", rgb)]
    if call.ok:
        valid = ("✓ valid", style.GREEN) if call.valid else ("✗ breaks its schema", style.VERMILLION)
        badges.append(badge(*valid))
    if call.confidence < 1:
        badges.append(badge(f"confidence {call.confidence:.2f}", style.ORANGE))
    facts = [f"protocol {call.protocol}", place(call.segment.span)]
    if call.wire_id is not None:
        facts.insert(0, f"id {call.wire_id}")
    name = text_of(shorten(call.name, 200)) if call.name else f'<span style="{style.DIM}">no name</span>'
    return (
        f'<span style="{style.DIM}">call {call.index} </span>'
        f'<span style="{style.MONO};font-size:14px;font-weight:700;margin:0 8px 0 0">{name}</span>{"".join(badges)}'
        f'<span style="{style.DIM};font-weight:400;font-size:12px">{text_of(shorten(" · ".join(facts), 200))}</span>'
    )


def _call(call: ToolCall, raw: str, room: int) -> tuple[str, int]:
    rows = list(islice(rows_of(call), max(0, room) + 1))
    cut = len(rows) > room
    rows = rows[: max(0, room)]
    changes = list(islice(changes_of(call, raw), MAX_CHANGES))
    repairs = [c for c in changes if c.kind == "repair"]
    reads = [c for c in changes if c.kind == "read"]
    coercions = [c for c in changes if c.kind == "coerce"]
    parts = [f'<div class="toolparse-call" style="{style.BOX}"><div>{_call_title(call)}</div>']
    if not call.readable:
        parts.append(_note("The body could not be read, so there are no arguments."))
    elif len(rows) == 1 and rows[0].leaf and not cut:
        parts.append(_note("No arguments."))
    else:
        parts.append(_arguments(rows, raw))
    if cut:
        parts.append(_note(f"Arguments beyond the first {MAX_ROWS:,} of the result are not shown."))
    parts.append(_problems(call.problems, "Problems"))
    parts.append(_changes(repairs, "Repairs"))
    parts.append(_changes(reads, "Read as"))
    at_leaf = {r.path for r in rows}
    parts.append(_changes([c for c in coercions if c.path not in at_leaf], "Coerced"))
    if (more := len(call.edits) + len(call.steps) - len(changes)) > 0:
        parts.append(_note(f"{more:,} more changes are not shown."))
    parts.append("</div>")
    return "".join(parts), len(rows)


def _arguments(rows: Sequence[Row], raw: str) -> str:
    body: list[str] = []
    for row in rows:
        if not row.path and not _row_changes(row):
            continue
        indent = min(max(row.depth - 1, 0), 12) * 16
        key = text_of(shorten(row.key, 120)) if row.path else "arguments"
        value = (
            f'<span style="{style.VALUE}">{text_of(shorten(row.text, MAX_VALUE))}</span>'
            if row.leaf
            else f'<span style="{style.DIM}">{row.kind}, {row.text}</span>'
        )
        body.append(
            f'<tr style="{style.ROW}">'
            f'<td style="{style.CELL}" title="{escape(visible(shorten(row.path, 300)))}">'
            f'<span style="{style.MONO};margin:0 0 0 {indent}px">{key}</span></td>'
            f'<td style="{style.CELL}">{value}</td>'
            f'<td style="{style.CELL};white-space:nowrap">{_origin(row, raw)}</td>'
            f'<td style="{style.CELL}">{_row_steps(row)}</td></tr>'
        )
    return table_of((("argument", 20), ("value", 28), ("characters", 12), ("coerced", 40)), body)


def _row_steps(row: Row) -> str:
    changes = _row_changes(row)
    more = len(changes) - MAX_TITLES
    return "".join(_step(c) for c in changes[:MAX_TITLES]) + (_note(f"{more:,} more changes") if more > 0 else "")


def _row_changes(row: Row) -> list[Change]:
    return [
        Change("coerce", 0, s.path, s.rule, s.before_json, s.after_json, s.span)
        for s in row.steps
        if s.stage == "coerce"
    ]


def _origin(row: Row, raw: str) -> str:
    if row.origin is None:
        return ""
    span = row.origin.span
    about = "" if row.origin.exact else "~"
    title = one_line(span.of(raw), 200)
    if about:
        title = f"nearest place, a structural change left it none of its own: {title}"
    return f'<span style="{style.DIM}" title="{escape(title)}">{about}{span.start}–{span.end}</span>'


def _step(change: Change) -> str:
    return (
        f'<div style="margin:0 0 2px 0">{_before_after(change)}</div><div style="font-size:11px">{_rule(change)}</div>'
    )


def _before_after(change: Change) -> str:
    parts: list[str] = []
    if change.before:
        parts.append(f'<del style="{style.BEFORE}">{text_of(shorten(change.before, MAX_VALUE))}</del>')
    if change.after:
        parts.append(f'<ins style="{style.AFTER}">{text_of(shorten(change.after, MAX_VALUE))}</ins>')
    if change.kind == "repair" and not change.after:
        parts.append(f'<span style="{style.DIM}">dropped</span>')
    elif change.kind == "repair" and not change.before:
        parts.insert(0, f'<span style="{style.DIM}">added</span>')
    elif len(parts) == 2:
        parts.insert(1, "→")
    return " ".join(parts)


def _rule(change: Change) -> str:
    loss = badge("lossless", style.GREEN) if change.lossless else badge("lossy", style.VERMILLION)
    return (
        f'<span style="{style.MONO};margin:0 6px 0 0">{escape(visible(change.rule))}</span>{loss}'
        f'<span style="{style.DIM}">{escape(change.sentence)}</span>'
    )


def _changes(changes: Sequence[Change], title: str) -> str:
    if not changes:
        return ""
    body = [
        f'<tr style="{style.ROW}"><td style="{style.CELL}">{_before_after(c)}</td>'
        f'<td style="{style.CELL};font-size:11px">{_rule(c)}</td>'
        f'<td style="{style.CELL}">{_where(c.path, c.span)}</td></tr>'
        for c in changes
    ]
    head = f'<div style="{style.TITLE}">{title}</div>' if title else ""
    return head + table_of((("change", 24), ("rule", 54), ("where", 22)), body)


def _where(path: str, span: Span | None) -> str:
    shown = " · ".join(x for x in (text_of(shorten(path, 120)), place(span)) if x)
    return f'<span style="{style.DIM}">{shown}</span>'


def _problems(problems: Sequence[Problem], title: str) -> str:
    if not problems:
        return ""
    body: list[str] = []
    for p in problems[:MAX_CHANGES]:
        sign, rgb = style.SEVERITY[p.severity]
        body.append(
            f'<tr style="{style.ROW}">'
            f'<td style="{style.CELL};white-space:nowrap">{badge(f"{sign} {p.severity}", rgb)}</td>'
            f'<td style="{style.CELL}">{text_of(shorten(p.message, MAX_VALUE))}'
            f'<div style="font-size:11px"><span style="{style.MONO}">{escape(visible(p.code))}</span> '
            f'<span style="{style.DIM}">{escape(sentence_of(p.code))}</span></div></td>'
            f'<td style="{style.CELL}">{_where(p.path, p.span)}</td></tr>'
        )
    more = len(problems) - MAX_CHANGES
    note = _note(f"{more:,} more problems are not shown.") if more > 0 else ""
    return (
        f'<div style="{style.TITLE}">{title}</div>'
        + table_of((("severity", 12), ("problem", 66), ("where", 22)), body)
        + note
    )


def table_of(heads: Iterable[tuple[str, int]], rows: Iterable[str]) -> str:
    """A table whose heads are (word, width in percent) and whose rows are HTML of whole rows."""
    head = "".join(f'<th style="{style.HEAD};width:{width}%">{word}</th>' for word, width in heads)
    return (
        f'<div style="{style.WIDE}"><table style="{style.TABLE}"><thead><tr style="{style.ROW}">{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def badge(text: str, rgb: str, *, title: str = "") -> str:
    """A word in a coloured frame; `text` and `title` are escaped."""
    tip = f' title="{escape(title)}"' if title else ""
    look = f"{style.BADGE};border:1px solid rgb({rgb});background-color:rgba({rgb},0.16)"
    return f'<span style="{look}"{tip}>{escape(visible(text))}</span>'


def _note(text: str) -> str:
    return f'<div style="{style.DIM};font-style:italic;margin:4px 0">{escape(text)}</div>'
