"""Success by two columns of a trials frame: protocol × model, or any other two."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ....core import hooks
from ....core.errors import BadOptions
from .cells import cells_frame, check_by, check_trials, clusters_of, policies_of


@dataclass(frozen=True)
class Matrix:
    """Success by two columns.

    `frame`: one row per cell. `table`: rows × columns of the success rate.
    """

    rows: str
    columns: str
    policy: str
    frame: pd.DataFrame

    @property
    def table(self) -> pd.DataFrame:
        """Rows × columns of the success rate, in the order of the frame."""
        # A pivot sorts its names; a report keeps the order of the plan.
        wide = self.frame.pivot(index=self.rows, columns=self.columns, values="success")
        names = [list(dict.fromkeys(self.frame[c])) for c in (self.rows, self.columns)]
        return wide.reindex(index=names[0], columns=names[1])

    def _repr_html_(self) -> str:
        return str(hooks.call("figure_html", self))

    def __repr__(self) -> str:
        return str(hooks.call("figure_text", self))


def matrix(
    trials: pd.DataFrame,
    *,
    rows: str | None = None,
    columns: str | None = None,
    policy: str = "safe",
    level: float = 0.95,
) -> Matrix:
    """Success with intervals by protocol (rows) and model (columns), or any other two columns.

    A cell that pools several trials of other columns says so by its n. Raises BadOptions for a
    frame without the columns of a trials frame, for a column or policy that it does not hold, and
    for one column named twice.
    """
    check_trials(trials)
    rows, columns = rows or "prompt_protocol", columns or "model"
    if rows == columns:
        raise BadOptions("a matrix has two different columns", got=rows)
    check_by(trials, [rows, columns])
    policies = policies_of(trials)
    if policies and policy not in policies:
        raise BadOptions(
            "no trial was read under this policy", got=policy, expected=", ".join(policies)
        )
    trials = trials.reset_index(drop=True)
    clusters = clusters_of(trials, None)
    return Matrix(
        rows, columns, policy, cells_frame(trials, [rows, columns], policy, level, clusters)
    )
