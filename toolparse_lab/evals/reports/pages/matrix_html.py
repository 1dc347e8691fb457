"""The matrix of success by two columns as HTML that stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.values.printable import counted
from ....views.templating import render
from ..figures.cells import UNRECORDED
from .html_parts import TEMPLATES
from .numbers import percent, span

if TYPE_CHECKING:
    from ..figures.matrix import Matrix


@dataclass(frozen=True, slots=True)
class _MatrixCell:
    reason: str = ""
    tint: str = ""
    success: str = ""
    interval: str = ""
    counts: str = ""
    anchor: str = ""

    @classmethod
    def of(cls, cell: Mapping[Any, Any] | None, anchor: str = "") -> _MatrixCell:
        if cell is None:
            return cls(reason=UNRECORDED)
        if pd.isna(cell["success"]):
            return cls(reason=cell["reason"] or UNRECORDED)

        counts = f"n {cell['n']} · {counted(cell['n_cases'], 'case')}"
        if cell["missing"]:
            counts += f" · {cell['missing']} missing"
        return cls(
            # Never more than .44 of the blue, so that the page's own text colour is readable on it
            # in light and dark.
            tint=f"{0.04 + 0.4 * float(cell['success']):.3f}",
            success=percent(cell["success"]),
            interval=span(cell["ci_low"], cell["ci_high"]),
            counts=counts,
            anchor=anchor,
        )


def render_matrix(m: Matrix, anchors: Mapping[tuple[str, str], str] | None = None) -> str:
    """Return a matrix with inline styles only, so that it stands alone anywhere.

    Rows and columns stand best first, by the mean of their rates. Those that are equal, or have no
    rate, in the order of the frame. anchors: by (row, column), the target of a cell's link on its
    page.
    """
    cells = {(c[m.rows], c[m.columns]): c for c in m.frame.to_dict("records")}
    columns = _best_first(m.frame, m.columns)
    links = anchors or {}
    rows = [
        (
            name,
            [
                _MatrixCell.of(cells.get((name, column)), links.get((str(name), str(column)), ""))
                for column in columns
            ],
        )
        for name in _best_first(m.frame, m.rows)
    ]
    return render(
        f"{TEMPLATES}/matrix.html",
        corner=m.rows.replace("_", " "),
        columns=columns,
        rows=rows,
    )


def _best_first(frame: pd.DataFrame, column: str) -> list[Any]:
    means = {
        name: part["success"].mean()
        for name, part in frame.groupby(column, dropna=False, observed=True)
    }
    names = dict.fromkeys(frame[column])
    # Sorting is stable, so that ties stay in the order of the plan.
    return sorted(names, key=lambda name: -_rate(means.get(name)))


def _rate(mean: Any) -> float:
    # An unknown mean is below every other.
    return -1.0 if mean is None or pd.isna(mean) else float(mean)
