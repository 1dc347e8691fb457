"""Success by two columns of a trials frame: protocol × model, or any other two."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ...errors import BadOptions
from .cells import cells_frame, check_by, check_trials


@dataclass(frozen=True)
class Matrix:
    """Success by two columns. `frame`: one row a cell; `table`: rows × columns of the success rate."""

    rows: str
    columns: str
    policy: str
    frame: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        wide = self.frame.pivot(index=self.rows, columns=self.columns, values="success")
        names = [list(dict.fromkeys(self.frame[c])) for c in (self.rows, self.columns)]
        return wide.reindex(index=names[0], columns=names[1])

    def _repr_html_(self) -> str:
        from .html import render_matrix

        return render_matrix(self)

    def __repr__(self) -> str:
        from .text import render_matrix_text

        return render_matrix_text(self)


def matrix(
    trials: pd.DataFrame,
    *,
    rows: str | None = None,
    columns: str | None = None,
    policy: str = "safe",
    level: float = 0.95,
) -> Matrix:
    """Success with intervals by protocol (rows) and model (columns), or any other two columns.

    A cell that pools several trials of other columns says so by its n.
    """
    check_trials(trials)
    rows, columns = rows or "prompt_protocol", columns or "model"
    if rows == columns:
        raise BadOptions("a matrix has two different columns", got=rows)
    check_by(trials, [rows, columns])
    held = sorted(set(trials["policy"].dropna().astype(str)))
    if held and policy not in held:
        raise BadOptions("no trial was read under this policy", got=policy, expected=", ".join(held))
    return Matrix(rows, columns, policy, cells_frame(trials.reset_index(drop=True), [rows, columns], policy, level))
