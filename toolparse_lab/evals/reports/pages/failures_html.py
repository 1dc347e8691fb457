"""All failures behind each cell of a report: a line for each trial, which unfolds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....views.templating import Markup, macro
from ...scoring.outcomes import OUTCOMES
from ..figures.cells import groups
from .html_parts import PARTS, trial_view

if TYPE_CHECKING:
    from ..figures.report import Report

BEHIND = "The failures behind each cell"
MOST_VIEWS = 100
"""The failures of a page that show how they were read; a view takes a hundred times its text."""
MOST_LINES = 5_000
"""The failures of a page that have a line; beyond it a page is too long to open."""


@dataclass(frozen=True, slots=True)
class FailingCell:
    """The failures of one cell: its values by column, their lines, and how many have none."""

    name: str
    keys: Mapping[str, str]
    anchor: str
    n: int
    lines: Sequence[Markup]

    @property
    def left_out(self) -> int:
        """The failures without a line, because the page has no room for more."""
        return self.n - len(self.lines)


def failing_cells(report: Report) -> list[FailingCell]:
    """Return the cells that have failures, in the report's order.

    Lines and views are shared out evenly, so that no cell takes the room of another.
    """
    outcomes = report.headline["outcome"]
    failed = outcomes.map(lambda o: o in OUTCOMES and OUTCOMES[o].group not in ("success", "none"))
    parts = dict(groups(report.headline[failed.astype(bool)], report.by))
    if not parts:
        return []

    lines, views = MOST_LINES // len(parts), MOST_VIEWS // len(parts)
    cells = []
    for n, cell in enumerate(report.frame.to_dict("records"), 1):
        part = parts.get(tuple(str(cell[c]) for c in report.by))
        if part is None:
            continue
        rows = part.head(max(1, lines)).to_dict("records")
        cells.append(
            FailingCell(
                name=report.cell_name(cell),
                keys={column: str(cell[column]) for column in report.by},
                anchor=f"cell-{n}",
                n=len(part),
                lines=list(_lines(rows, max(1, views), f"cell-{n}")),
            )
        )
    return cells


def _lines(rows: Sequence[Mapping[Any, Any]], views: int, prefix: str) -> Iterator[Markup]:
    # The first `views` unfold into how they were read, the others into the request, wanted and
    # written.
    for n, row in enumerate(rows):
        # Not read again where no view is shown: reading takes longer than all else here.
        trial = trial_view(row if n < views else {**row, "tools_json": None})
        detail = "" if pd.isna(row["detail"]) else str(row["detail"])
        code = " / ".join(str(row[c]) for c in ("outcome", "sub_code") if row[c])
        summary = f"{row['case_id']} · {code}" + (f": {detail[:160]}" if detail else "")
        yield macro(PARTS, "failure", f"{prefix}-{n + 1}", summary, str(row["trial_id"]), trial)
