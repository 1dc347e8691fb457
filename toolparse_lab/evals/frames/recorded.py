"""Trials to pandas frames: one row per thing, RangeIndex, tidy, the columns of
`columns.COLUMNS`.
"""

# How it works. Trials and calls are filled column by column from the cells of `rows`. The other
# kinds of frames make plain dicts by the names of the declared columns, and `_frame` makes columns
# of them at the end.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import pandas as pd
from pandas.api.extensions import register_dataframe_accessor

from ...core import hooks
from ...core.errors import BadOptions
from ...core.types import ParseResult
from ...runner.exchange.types import Completion
from ..scoring.trial import Trial
from .columns import columns_of
from .dtypes import EXTRA, build_frame
from .dtypes import conform as conform
from .dtypes import join_frames as join_frames
from .files import read_frame as read_frame
from .files import write_frame as write_frame
from .rows import (
    CALL,
    KEYS,
    TRIAL,
    Cells,
    call_cells,
    call_id,
    keys_of,
    metadata_row,
    problem_row,
    step_row,
    trial_cells,
)

if TYPE_CHECKING:
    from ...core.types import ParseResult
    from ...core.types.result import DebugView, Stage
    from ..reports.figures.comparison import ArmComparison
    from ..reports.figures.report import Report, ReportKeywords


Frame: TypeAlias = pd.DataFrame
"""The type of what every function here returns."""


class _DisplayOnly(type):
    # It differs in nothing but its display: `assert_frame_equal` asks whether a plain frame is one.
    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, pd.DataFrame)


class ShownFrame(pd.DataFrame, metaclass=_DisplayOnly):
    """A frame whose display leaves out columns without a single value, and says which.

    The columns are there all the same, and whatever is made of it is a plain frame.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _shown(self) -> tuple[pd.DataFrame, str]:
        frame = pd.DataFrame(self, copy=False)
        empty = [str(c) for c in frame if frame[c].isna().all()] if len(frame) else []
        named = ", ".join(empty[:12]) + (", …" if len(empty) > 12 else "")
        note = f"not shown, since no row has a value: {named}" if empty else ""
        return frame.drop(columns=empty), note

    def __repr__(self) -> str:
        frame, note = self._shown()
        return f"{frame!r}\n{note}" if note else repr(frame)

    def _repr_html_(self) -> str | None:
        frame, note = self._shown()
        html: str | None = frame._repr_html_()  # type: ignore[operator]
        return html and html + (f"<p>{escape(note)}</p>" if note else "")


def runs_frame(runs: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per run, from mappings with the names of the runs columns. Raises BadOptions
    for a name that no column has.
    """
    names = [column.name for column in columns_of("runs")]
    rows = [dict(run) for run in runs]
    for row in rows:
        if unknown := sorted(set(row) - set(names)):
            raise BadOptions(
                "a run has names that no column has",
                got=", ".join(unknown),
                expected=", ".join(names),
            )
    return _frame("runs", rows)


def trials_frame(trials: Iterable[Trial], *, metadata: Iterable[str] = ()) -> pd.DataFrame:
    """Return one row per completion × parse protocol × policy. `metadata_*` columns come last.

    metadata: keys that have a column even where no trial has them, for frames that are to be alike.
    """
    rows: list[Cells] = []
    own: list[dict[str, str]] = []
    extra: dict[str, str] = {f"{EXTRA}{key}": "string" for key in metadata}
    for trial in trials:
        rows.append(trial_cells(trial))
        own.append(metadata_row(trial.case))
        extra |= dict.fromkeys(own[-1], "string")
    columns = _by_name(TRIAL, rows)
    columns |= {name: [row.get(name) for row in own] for name in extra}
    return build_frame("trials", columns, len(rows), extra)


def calls_frame(source: Iterable[Trial] | Trial | ParseResult) -> pd.DataFrame:
    """Return one row per call, of trials or of a single result (whose run, case and model stay
    missing). A trial without calls has no row.
    """
    rows: list[Cells] = []
    for keys, result in _results(source):
        own = [keys.get(name) for name in KEYS]
        rows += ((*own, call_id(keys, call), *call_cells(call)) for call in result.calls)
    return build_frame("calls", _by_name((*KEYS, "call_id", *CALL), rows), len(rows))


def _by_name(names: Sequence[str], rows: Sequence[Cells]) -> dict[str, Any]:
    columns = map(list, zip(*rows, strict=True)) if rows else ([] for _ in names)
    return dict(zip(names, columns, strict=True))


def events_frame(
    source: Iterable[Trial] | Trial | ParseResult, with_retries: set[str] | None = None
) -> pd.DataFrame:
    """Return one row per step, problem or retry, which comes with the completion's first trial.

    with_retries: keys of completions whose retries are in an earlier frame, to which those of this
    one are added.
    """
    if isinstance(source, Trial):
        source = [source]
    elif not isinstance(source, ParseResult):
        source = list(source)  # it is walked twice

    rows: list[dict[str, Any]] = []
    for keys, result in _results(source):
        # The problems of the text come first, then each call's steps, in the order in which they
        # were made and repairs first, and its problems.
        rows += ({**keys, **problem_row(problem)} for problem in result.problems)
        for call in result.calls:
            own = {**keys, "call_id": call_id(keys, call)}
            steps = (*call.repair_steps, *call.steps)
            rows += ({**own, **step_row(step, result.raw)} for step in steps)
            rows += ({**own, **problem_row(problem)} for problem in call.problems)

    # A result alone has not been asked for, so that nothing was tried again. Trials that read one
    # completion share its retries.
    seen = set() if with_retries is None else with_retries
    for trial in () if isinstance(source, ParseResult) else source:
        c = trial.completion
        if c is None or c.attempt < 2 or c.key in seen:
            continue
        seen.add(c.key)
        for n in range(2, c.attempt + 1):
            retry = {"kind": "retry", "code": c.error_kind}
            rows.append({**keys_of(trial), **retry, "message": f"attempt {n} of {c.attempt}"})
    return _frame("events", rows)


def chunks_frame(source: Completion | Trial | Iterable[Completion | Trial]) -> pd.DataFrame:
    """Return one row per chunk of a recorded stream, which come with the completion's first
    trial.
    """
    items: Iterable[Any] = [source] if isinstance(source, (Completion, Trial)) else source
    rows: list[dict[str, Any]] = []
    seen: set[str] = set()
    for item in items:
        trial, completion = (item, item.completion) if isinstance(item, Trial) else (None, item)
        if completion is None or completion.key in seen:
            continue
        seen.add(completion.key)
        keys = {
            "completion_key": completion.key,
            "trial_id": trial.trial_id if trial else None,
            "case_id": trial.case_id if trial else None,
        }
        # Content and reasoning are two texts, each with offsets of its own.
        ends = {"content": 0, "reasoning": 0}
        for i, chunk in enumerate(completion.chunks):
            start = ends[chunk.kind]
            end = ends[chunk.kind] = start + len(chunk.text)
            row = {"index": i, "start": start, "end": end, "at": chunk.at, "kind": chunk.kind}
            rows.append({**keys, **row, "text": chunk.text})
    return _frame("chunks", rows)


def _frame(kind: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    names = [column.name for column in columns_of(kind)]
    return build_frame(kind, {name: [row.get(name) for row in rows] for name in names}, len(rows))


def _results(
    source: Iterable[Trial] | Trial | ParseResult,
) -> Iterator[tuple[dict[str, Any], ParseResult]]:
    if isinstance(source, ParseResult):
        yield {"parse_protocol": source.protocol, "policy": source.options.coerce}, source
        return
    for trial in [source] if isinstance(source, Trial) else source:
        if trial.result is not None:  # as of a trial that was never parsed
            yield keys_of(trial), trial.result


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
        from ..reports.figures.report import report  # late: frames are made without it

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
        from ..reports.figures.comparison import compare_runs  # late, as above

        return compare_runs(self._frame, other, within=within, policy=policy)

    def result(self, row: Any) -> ParseResult:
        """Return one row's answer, read again as the row says it was read.

        row: its label in the frame's index, its trial_id, or the row itself. Raises BadOptions for
        a row that is not there or holds no answer, and UnreadableInput for a frame without answers,
        such as the calls frame.
        """
        from .parsing import read_row  # late, as above

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
