"""`df.toolparse`: reports, comparisons and the parse view of a trials frame, wherever the frame came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from pandas.api.extensions import register_dataframe_accessor

from ..errors import BadOptions

if TYPE_CHECKING:
    from ..types import ParseResult
    from .reports.comparison import ArmComparison
    from .reports.report import Report


@register_dataframe_accessor("toolparse")
class TrialsAccessor:
    """What can be done with a trials frame; it is checked when something is asked of it, not before."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def report(self, by: str | Sequence[str] | None = None, *, policy: str | None = None, **options: Any) -> Report:
        """Success and its reasons by any columns, with the options and errors of `evals.reports.report.Report`.

        policy: by default "safe", or the only one that the frame has; with "policy" among `by` each has its own rows.
        """
        from .reports.report import Report

        return Report(self._frame, by, policy=policy or self._policy(), **options)

    def compare(
        self, other: pd.DataFrame, *, within: str | Sequence[str] | None = None, policy: str | None = None
    ) -> ArmComparison:
        """The trials of `other` against these, paired on cases, with what flipped; see `Lab.diff`.

        policy: by default the one that both have, or "safe"; two frames that have one policy each, not the same, are
        compared as they are. Raises BadOptions where the two have nothing in common.
        """
        from .reports.run_diff import compare_runs

        if not isinstance(other, pd.DataFrame):
            raise BadOptions("a trials frame is compared with another", got=type(other).__name__, expected="a frame")
        return compare_runs(self._frame, other, within=within, policy=policy)

    def result(self, row: Any) -> ParseResult:
        """What one row's answer says, read again as the row says it was read.

        row: its label in the frame's index, its trial_id, or the row itself. Raises BadOptions for a row that is not
        there or holds no answer, and UnreadableInput for a frame without answers, such as the calls frame.
        """
        from .frames.reread import check_columns, read_row

        check_columns(self._frame.columns)
        return read_row(self._row(row))

    def debug(self, row: Any, **options: Any) -> Any:
        """The interactive parse view of one row's answer; row: as for `result`, options: as for `ParseView`."""
        return self.result(row).debug(**options)

    def _row(self, row: Any) -> pd.Series[Any]:
        if isinstance(row, pd.Series):
            return row
        frame = self._frame
        if isinstance(row, str) and "trial_id" in frame:
            found = frame[frame["trial_id"] == row]
        else:
            found = frame[frame.index == row]
        if len(found) != 1:
            raise BadOptions(
                "there is no such row" if not len(found) else f"{len(found)} rows are meant",
                got=row, expected="a label of the frame's index, a trial_id, or a row such as frame.iloc[0]",
            )  # fmt: skip
        return found.iloc[0]

    def _policy(self) -> str:
        held = set(self._frame["policy"].dropna().astype(str)) if "policy" in self._frame else set()
        return held.pop() if len(held) == 1 else "safe"
