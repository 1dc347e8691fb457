"""What the HTML of reports and comparisons is made of: tables, trials that unfold, whole pages.

Nothing here refers to anything outside the page, and nothing needs a script. How it looks is in
`templates`. This file gathers their contents, as text that they escape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from ....core.errors import ToolparseError
from ....core.types import ParseResult
from ....views import render_result
from ....views.templating import Markup, macro, render
from ...frames import reread

if TYPE_CHECKING:
    from ..figures.gates import GateCheck, GateResult

Head: TypeAlias = Sequence[tuple[str, str]]
"""(name, classes) of each column; see `tables.Section` for the classes."""
Cell: TypeAlias = str | Markup
"""Text, or HTML that is escaped already."""

TEMPLATES = "evals/reports/pages/templates"
MAX_RAW = 4000  # characters of an answer that no protocol here can read
MAX_TEXT = 400  # characters of a question, a target or an error
LONG = 40  # rows of a table that is folded
PARTS = f"{TEMPLATES}/parts.html"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head, and the classes of its cells."""

    name: str
    kind: str

    @property
    def left(self) -> bool:
        """Left-aligned."""
        return "l" in self.kind.split()

    @property
    def names_row(self) -> bool:
        """Part of the name of the row."""
        return "k" in self.kind.split()

    @property
    def code(self) -> bool:
        """Shown as code."""
        return "c" in self.kind.split()


class Table:  # no dataclass, because `rows` may be used up by one walk
    """A table as its template takes it.

    `under` has HTML to stand below each row, '' for none.
    """

    def __init__(
        self, head: Head, rows: Iterable[Sequence[Cell]], under: Sequence[Cell] = ()
    ) -> None:
        self.columns = [Column(name, kind) for name, kind in head]
        self._rows = list(rows)
        self._under = under

    @property
    def is_long(self) -> bool:
        """Longer than a screen, so that it is folded."""
        return len(self._rows) > LONG

    @property
    def summary(self) -> str:
        """The line that a long table is folded into."""
        return f"{len(self._rows)} rows"

    @property
    def rows_with_under(self) -> list[tuple[list[tuple[Column, Cell]], Cell]]:
        """((column, cell) of each cell, the text below) of each row."""
        below = zip_longest(self._rows, self._under, fillvalue="")
        return [(list(zip(self.columns, row, strict=True)), under) for row, under in below]


# A notebook may hold many fragments, and each brings the style sheet along: an output must stand by
# itself.
@lru_cache(maxsize=1)
def _css() -> Markup:
    sheet = resources.files(__package__).joinpath("templates", "report.css")
    return Markup(sheet.read_text(encoding="utf-8"))


def fragment(body: str) -> str:
    """Return HTML for a notebook's output, with the styles it needs. `body` is HTML."""
    html = Markup(body)
    return render(f"{TEMPLATES}/fragment.html", css=_css(), body=html)


def page(title: str, fragment: str) -> str:
    """Return a whole document around a fragment, light or dark as the reader's system asks."""
    html = Markup(fragment)
    return render(f"{TEMPLATES}/page.html", title=title, fragment=html)


def view_of(result: ParseResult) -> Markup:
    """Return the parse view of a result."""
    return Markup(render_result(result))


@dataclass(frozen=True, slots=True)
class TrialView:
    """A trial as a page shows it: text, '' for anything not known, and the parse view."""

    outcome: str
    detail: str
    question: str
    target: str
    error: str
    raw: str
    view: Markup


def trial_view(row: Mapping[Any, Any]) -> TrialView:
    """Return the view that a row of a trials frame shows: the request, the outcome of it, and how
    the answer was read.
    """

    # A frame from elsewhere may lack the column, and a gap is None, NaN or NA.
    def text(name: str) -> str:
        value = row.get(name)
        return "" if value is None or pd.isna(value) else str(value)

    # Read anew: a frame has the figures of a reading, not the reading itself.
    result = read_row(row)
    codes = (text("outcome") or text("missing_reason"), text("sub_code"))
    return TrialView(
        outcome=" / ".join(filter(None, codes)),
        detail=text("detail"),
        question=_short(text("input")),
        target=_short(text("target")),
        error=_short(text("error_message")),
        raw=text("raw")[:MAX_RAW],
        view=view_of(result) if result else Markup(),
    )


def read_row(row: Mapping[Any, Any]) -> ParseResult | None:
    """Return the answer of a row of a trials frame, read again as it was read.

    None if there is no answer or no tools.
    """
    if not isinstance(row.get("raw"), str) or not isinstance(row.get("tools_json"), str):
        return None
    try:
        return reread.read_row(row)
    except ToolparseError:  # a failed question, or a protocol that is not registered here
        return None


def unfolding_trials(rows: Iterable[Mapping[Any, Any]]) -> Markup:
    """Return trials by name, each of which unfolds into its view."""
    lines = []
    for row in rows:
        trial = macro(PARTS, "trial", trial_view(row))
        lines.append(macro(PARTS, "details", f"{row['case_id']} · {row['trial_id']}", trial))
    return Markup().join(lines)


def _short(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return text[: MAX_TEXT - 1] + "…"


@dataclass(frozen=True, slots=True)
class GateView:
    """A gate as a page shows it: the verdict in words, and its checks."""

    verdict: str
    table: Table


def gate_view(gate: GateResult) -> GateView:
    """Return the checks of a gate, those that fail first."""
    head: Head = (
        ("cell", "l k full"),
        ("metric", "l"),
        ("value", ""),
        ("bound", ""),
        ("n", ""),
        ("", "l w"),
    )
    # Sorting is stable, so that each half keeps the order of cells and thresholds.
    failing_first = sorted(gate.checks, key=lambda check: check.ok)
    verdict = "passed" if gate.ok else f"failed: {len(gate.failures)} of {len(gate.checks)} checks"
    return GateView(verdict, Table(head, map(_gate_row, failing_first)))


def _gate_row(check: GateCheck) -> list[Cell]:
    verdict: Cell = "✓ kept"
    if not check.ok:
        # The first cell of the row names the cell already.
        sentence = check.sentence.removeprefix(f"{check.cell}: ")
        verdict = macro(PARTS, "broken", sentence)
    return [
        check.cell,
        check.metric,
        "–" if math.isnan(check.value) else f"{check.value:.4g}",
        f"{check.bound:.4g}",
        str(check.n),
        verdict,
    ]
