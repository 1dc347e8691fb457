"""Readings of one text to look at: a table in text, and HTML whose rows unfold to the
parse views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...views import render_result, style
from ...views.html import badge, table_of, text_of
from ...views.show import one_line, shorten
from .reading import ReadCall, Reading

_MOST_CALLS = 8
_MOST_TEXT = 32 * 1024
_TERMINAL = 160  # the columns of a wide one
# Why a call of this status is not run, in the words of the table.
_NOT_RUN = {
    "unknown_tool": "refused: unknown tool",
    "truncated": "truncated",
    "undecodable": "refused: unreadable",
    "draft": "refused: unfinished",
}


def readings_text(readings: Sequence[Reading]) -> str:
    """Return the table as text, one line per reading below a line of heads, cut at the width of a
    wide terminal.
    """
    rows = [("reading", "agrees", "calls")]
    for reading in readings:
        calls = f"{_calls(reading)}{_changes(reading)}"
        rows.append((one_line(reading.name, 40), reading.agrees, calls))

    # The last column has no width of its own: whatever it takes is cut.
    first = max(len(row[0]) for row in rows)
    second = max(len(row[1]) for row in rows)
    lines = []
    for name, letter, calls in rows:
        lines.append(f"{name:{first}}  {letter:{second}}  {one_line(calls, _TERMINAL)}")
    return "\n".join(lines)


def _calls(reading: Reading) -> str:
    if reading.failure is not None:
        return f"failed: {reading.failure}"
    if not reading.calls:
        return "no call"

    words = [_call(call) for call in reading.calls[:_MOST_CALLS]]
    more = len(reading.calls) - _MOST_CALLS
    if more > 0:
        words.append(f"and {more} more")
    return "; ".join(words)


def _call(call: ReadCall) -> str:
    text = f"{call.name or '?'}({call.arguments_json})"
    # A status says more than the schema, which holds for readable calls of a known tool only.
    if call.status in _NOT_RUN:
        return f"{text} [{_NOT_RUN[call.status]}]"
    if not call.valid:
        return f"{text} [invalid]"
    return text


def _changes(reading: Reading) -> str:
    words = ""
    for n, word in ((reading.n_repairs, "repair"), (reading.n_coercions, "coercion")):
        if not n:
            continue  # no change, or a parser that does not say
        plural = "" if n == 1 else "s"
        words += f", {n} {word}{plural}"
    return words


def _problems(reading: Reading) -> str:
    # Notes of severity info are not complaints.
    counts = Counter(problem.code for problem in reading.problems if problem.severity != "info")
    words = []
    for code, n in counts.items():
        words.append(f"{code} × {n}" if n > 1 else code)
    return ", ".join(words)


def readings_html(readings: Sequence[Reading]) -> str:
    """Return the table as HTML: no script, inline styles, every text escaped.

    Our readings unfold to their parse views.
    """
    rows = "".join(map(_row, readings))
    heads = (("reading", 16), ("agrees", 8), ("calls", 46), ("changes", 12), ("problems", 18))
    table = table_of(heads, [rows])
    frame = '<div class="toolparse" style="font-size:13px;line-height:1.5">'
    return f"{frame}<div>{_summary(readings)}</div>{table}</div>"


def _summary(readings: Sequence[Reading]) -> str:
    groups = len({reading.agrees for reading in readings if reading.agrees})
    if groups == 0:
        return "No reading has a call that may be run."
    if groups == 1:
        return "All readings that have executable calls agree."
    return f"{groups} different sets of executable calls: readings with the same letter agree."


def _row(reading: Reading) -> str:
    # The view has a row of its own, because it needs the width of the whole table.
    view = _view(reading)
    cells = _cells(reading)
    # Without a line between the two rows, they look like one.
    css = f"{style.CELL};border-bottom:none" if view else style.CELL
    row = f'<tr style="{style.ROW}">{"".join(_cell(cell, css) for cell in cells)}</tr>'
    if not view:
        return row

    span = f'<td colspan="{len(cells)}" style="{style.CELL}">{view}</td>'
    return f'{row}<tr style="{style.ROW}">{span}</tr>'


def _cells(reading: Reading) -> tuple[str, ...]:
    name = f'<span style="font-weight:600">{text_of(one_line(reading.name, 60))}</span>'
    if reading.kind == "outside":
        name += f'<div style="{style.DIM};font-size:11px">outside</div>'
    # Parsers of others do not say what they changed, which is not the same as nothing.
    absent = "not told" if reading.result is None else "none"
    calls = text_of(shorten(_calls(reading), 600))
    group = badge(reading.agrees, _colour(reading.agrees)) if reading.agrees else "–"
    return (
        name,
        group,
        f'<span style="{style.VALUE}">{calls}</span>',
        _changes(reading).removeprefix(", ") or absent,
        text_of(_problems(reading) or absent),
    )


def _cell(content: str, css: str) -> str:
    # content: HTML, escaped already.
    return f'<td style="{css}">{content}</td>'


def _colour(letters: str) -> str:
    # Distinct for the colour-blind, too; the letter says the same.
    colours = (style.GREEN, style.ORANGE, style.BLUE, style.PURPLE, style.VERMILLION, style.SKY)
    return colours[(ord(letters[0]) - ord("A")) % len(colours)]


def _view(reading: Reading) -> str:
    if reading.result is None:
        return ""
    if not reading.calls and not reading.problems:
        return ""

    # Each view holds the whole text again.
    if len(reading.result.raw) > _MOST_TEXT:
        note = "Too long to be shown for each reading: see its result.debug()."
        return f'<span style="{style.DIM}">{note}</span>'
    return f"<details><summary>parse view</summary>{render_result(reading.result)}</details>"
