"""A comparison of readings to look at: a table in text, and HTML whose rows unfold to the parse views."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...render import render_result, style
from ...render.html import badge, table_of, text_of
from ...render.show import one_line, shorten

if TYPE_CHECKING:
    from .compare import Comparison, ReadCall, Reading

_MOST_CALLS = 8
_MOST_TEXT = 32 * 1024
_NOT_RUN = {
    "unknown_tool": "unknown tool",
    "truncated": "cut off",
    "undecodable": "unreadable",
    "draft": "unfinished",
}


def readings_text(comparison: Comparison) -> str:
    """The table as text, one line a reading, cut at the width of a wide terminal."""
    rows = [("reading", "agrees", "calls")]
    rows += [(one_line(r.name, 40), r.agrees, f"{_calls(r)}{_changes(r)}") for r in comparison.readings]
    first, second = (max(len(r[i]) for r in rows) for i in (0, 1))
    return "\n".join(f"{a:{first}}  {b:{second}}  {one_line(c, 160)}" for a, b, c in rows)


def _calls(reading: Reading) -> str:
    if reading.failure is not None:
        return f"failed: {reading.failure}"
    if not reading.calls:
        return "no call"
    shown = [_call(c) for c in reading.calls[:_MOST_CALLS]]
    more = len(reading.calls) - _MOST_CALLS
    return "; ".join([*shown, *([f"and {more} more"] if more > 0 else [])])


def _call(call: ReadCall) -> str:
    why = _NOT_RUN.get(call.status) or ("" if call.valid else "breaks its schema")
    return f"{call.name or '?'}({call.arguments_json})" + (f" [{why}]" if why else "")


def _changes(reading: Reading) -> str:
    said = [
        f"{n} {word}" + ("" if n == 1 else "s")
        for n, word in ((reading.n_repairs, "repair"), (reading.n_coercions, "coercion"))
        if n
    ]
    return "".join(f", {s}" for s in said)


def _problems(reading: Reading) -> str:
    counts = Counter(p.code for p in reading.problems if p.severity != "info")
    return ", ".join(f"{code} × {n}" if n > 1 else code for code, n in counts.items())


def readings_html(comparison: Comparison) -> str:
    """The table as HTML: no script, inline styles, every text escaped; our readings unfold to their parse views."""
    rows = "".join(map(_row, comparison.readings))
    groups = len({r.agrees for r in comparison.readings if r.agrees})
    said = (
        "No reading has a call that may be run."
        if not groups
        else "All readings that have executable calls agree."
        if groups == 1
        else f"{groups} different sets of executable calls: readings with the same letter agree."
    )
    heads = (("reading", 16), ("agrees", 8), ("calls", 46), ("changes", 12), ("problems", 18))
    table = table_of(heads, [rows])
    return f'<div class="toolparse" style="font-size:13px;line-height:1.5"><div>{said}</div>{table}</div>'


def _row(reading: Reading) -> str:
    name = f'<span style="font-weight:600">{text_of(one_line(reading.name, 60))}</span>'
    if reading.kind == "outside":
        name += f'<div style="{style.DIM};font-size:11px">outside</div>'
    letter = badge(reading.agrees, _colour(reading.agrees)) if reading.agrees else "–"
    calls = text_of(shorten(_calls(reading), 600))
    changes = _changes(reading).removeprefix(", ") or ("not told" if reading.result is None else "none")
    problems = _problems(reading) or ("not told" if reading.result is None else "none")
    cells = (name, letter, f'<span style="{style.VALUE}">{calls}</span>', changes, text_of(problems))
    view = _view(reading)
    cell = f"{style.CELL};border-bottom:none" if view else style.CELL
    row = "".join(f'<td style="{cell}">{c}</td>' for c in cells)
    more = f'<tr style="{style.ROW}"><td colspan="{len(cells)}" style="{style.CELL}">{view}</td></tr>' if view else ""
    return f'<tr style="{style.ROW}">{row}</tr>{more}'


def _colour(letters: str) -> str:
    colours = (style.GREEN, style.ORANGE, style.BLUE, style.PURPLE, style.VERMILLION, style.SKY)
    return colours[(ord(letters[0]) - ord("A")) % len(colours)]


def _view(reading: Reading) -> str:
    if reading.result is None or not (reading.calls or reading.problems):
        return ""
    if len(reading.result.raw) > _MOST_TEXT:
        return f'<span style="{style.DIM}">Too long to be shown for each reading: see its result.debug().</span>'
    return f"<details><summary>parse view</summary>{render_result(reading.result)}</details>"
