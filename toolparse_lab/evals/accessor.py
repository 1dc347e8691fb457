"""`df.toolparse`: reports, comparisons and the parse view of a trials frame, wherever the frame
came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd
from pandas.api.extensions import register_dataframe_accessor

from ..core import hooks
from ..core.errors import BadOptions

if TYPE_CHECKING:
    from ..core.types import ParseResult
    from ..core.types.result import DebugView, Stage
    from .reports.figures.comparison import ArmComparison
    from .reports.figures.report import Report, ReportKeywords


# pandas makes an accessor for each frame it is asked of, so nothing is computed before a method.
@register_dataframe_accessor("toolparse")
class TrialsAccessor:
    """Reports, comparisons and parse views of a trials frame.

    It is checked when something is asked of it, not before.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def report(
        self,
        by: str | Sequence[str] | None = None,
        *,
        policy: str | None = None,
        **options: Unpack[ReportKeywords],
    ) -> Report:
        """Return success and its reasons by any columns.

        Options and errors are those of `evals.reports.figures.report.Report`.

        policy: by default "safe", or the only one that the frame has. With "policy" among `by` each
        has its own rows.
        """
        from .reports.figures.report import report  # late: frames are made without it

        return report(self._frame, by, policy=policy or self._policy(), **options)

    def compare(
        self,
        other: pd.DataFrame,
        *,
        within: str | Sequence[str] | None = None,
        policy: str | None = None,
    ) -> ArmComparison:
        """Return the trials of `other` against these, paired on cases, with the cases that flipped.
        See `Lab.diff`.

        policy: by default the one that both have, or "safe". Two frames that have one policy each,
        not the same, are compared as they are. Raises BadOptions if the two have nothing in common.
        """
        if not isinstance(other, pd.DataFrame):
            raise BadOptions(
                "a trials frame is compared with another",
                got=type(other).__name__,
                expected="a frame",
            )
        from .reports.figures.comparison import compare_runs  # late, as above

        return compare_runs(self._frame, other, within=within, policy=policy)

    def result(self, row: Any) -> ParseResult:
        """Return one row's answer, read again as the row says it was read.

        row: its label in the frame's index, its trial_id, or the row itself. Raises BadOptions for
        a row that is not there or holds no answer, and UnreadableInput for a frame without answers,
        such as the calls frame.
        """
        from .frames.parsing import read_row  # late, as above

        return read_row(self._row(row))

    def debug(self, row: Any, *, stage: Stage = "raw", pinned: str = "") -> DebugView:
        """Return the interactive parse view of one row's answer. row: as for `result`, stage and
        pinned: as for `ParseResult.debug`.
        """
        return self.result(row).debug(stage=stage, pinned=pinned)

    def browse(
        self, rows: str | None = None, columns: str | None = None, *, policy: str | None = None
    ) -> Any:
        """Return the interactive view of these trials: a heatmap of two columns, the trials of a
        cell, and one answer next to them. See `widgets.Browser`.

        policy: by default "safe", or the only one that the frame has. Raises MissingExtra if the
        `jupyter` extra is missing.
        """
        return hooks.call(
            "browse", self._frame, rows=rows, columns=columns, policy=policy or self._policy()
        )

    def _row(self, row: Any) -> pd.Series[Any]:
        if isinstance(row, pd.Series):
            return row
        frame = self._frame
        if isinstance(row, str) and "trial_id" in frame:
            rows = frame[frame["trial_id"] == row]
        else:
            rows = frame[frame.index == row]
        if len(rows) != 1:
            raise BadOptions(
                f"{len(rows)} rows are meant" if len(rows) else "there is no such row",
                got=row,
                expected="a label of the frame's index, a trial_id, or a row such as frame.iloc[0]",
            )
        return rows.iloc[0]

    def _policy(self) -> str:
        if "policy" not in self._frame:
            return "safe"
        policies = set(self._frame["policy"].dropna().astype(str))
        return policies.pop() if len(policies) == 1 else "safe"
