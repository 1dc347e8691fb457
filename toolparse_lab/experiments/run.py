"""A recorded run and the views on it.

A view may read the recording by another protocol or policy than the one of the run. What was read
is kept in the store (`cached_parses`), so that the next view takes it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from ..core import hooks
from ..core.errors import BadOptions, NoSuchItem, UnknownName, near
from ..core.rules import CODES
from ..core.types import Policy
from ..core.values.printable import counted, printable
from ..entry.foreign.protocol import any_protocol
from ..evals.engines import is_count
from ..evals.scoring.outcomes import OUTCOMES, SUB_CODES
from ..evals.scoring.trial import Trial
from ..formats.like import ProtocolLike
from ..middleware.flow import OPEN
from ..runner.exchange.summary import Summary
from ..runner.store.store import Store
from .cached_parses import CachedParses
from .plan import Plan
from .trial_reader import TrialReader, UnreadTrials, in_batches, with_code

if TYPE_CHECKING:
    from ..evals.cases.matchers import Matchers
    from ..evals.frames.files import FrameEngine
    from ..evals.frames.recorded import Frame
    from ..evals.reports.figures.cells import Matrix
    from ..evals.reports.figures.comparison import ArmComparison
    from ..evals.reports.figures.report import Report, ReportOptions

HEADLINE: Policy = "safe"
COLUMN_POLICIES: tuple[Policy, ...] = ("safe", "middleware")
"""The policies of a report: the headline, and the coercion that is shown next to it."""
_ROWS_AS_TEXT = 20
_ROWS_AS_HTML = 50
_BATCH = 2000  # trials that are turned into a frame at once


class Choice(TypedDict, total=False):
    """The trials of a view: one value or several of each column."""

    case_id: str | Iterable[str]
    model: str | Iterable[str]
    arm: str | Iterable[str]
    prompt_protocol: str | Iterable[str]
    trial: int | Iterable[int]
    category: str | Iterable[str | None] | None


class FrameOptions(Choice, total=False):
    """The keywords of `Run.trials`, for the frames."""

    protocol: ProtocolLike | None
    policies: Sequence[Policy]
    where: Callable[[Trial], bool] | None


class Trials(Sequence[Trial]):
    """A list of trials that shows itself as a table and takes an index or a trial id."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        self._trials: Sequence[Trial] = (
            trials if isinstance(trials, UnreadTrials) else tuple(trials)
        )

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials)

    def __len__(self) -> int:
        return len(self._trials)

    @overload
    def __getitem__(self, index: int | str) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Trials: ...
    def __getitem__(self, index: int | str | slice) -> Trial | Trials:
        if isinstance(index, slice):
            return Trials(self._trials[index])
        if isinstance(index, str):
            for trial in self:
                if trial.trial_id == index:
                    return trial
            raise KeyError(index)
        try:
            return self._trials[index]
        except IndexError:
            size = counted(len(self), "trial") if self._trials else "none: no trial fits"
            raise NoSuchItem(
                "there is no such trial", got=index, expected=size, code="no-trial"
            ) from None

    def as_pytest(self, path: str | Path) -> Path:
        """Write every trial with a parsed answer as a test of one pytest file.

        Return its path.

        See `Trial.as_pytest`. Raises BadOptions if no trial has one.
        """
        from ..evals.scoring.exports import write_tests  # needed by few, for this one verb

        return write_tests([trial for trial in self if trial.result is not None] or self, path)

    def __repr__(self) -> str:
        lines = [counted(len(self), "trial")]
        for i, trial in enumerate(self._trials[:_ROWS_AS_TEXT]):
            place = f"{trial.case_id} · {trial.model} · {trial.arm}"
            lines.append(printable(f"[{i}] {place}: {trial.outcome} – {trial.detail}"))
        if len(self) > _ROWS_AS_TEXT:
            lines.append(f"… and {len(self) - _ROWS_AS_TEXT} more")
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        cell = 'style="text-align:left;vertical-align:top"'
        titles = ("", "case", "model", "arm", "outcome", "detail")
        head = "".join(f"<th {cell}>{title}</th>" for title in titles)
        rows = ""
        for i, trial in enumerate(self._trials[:_ROWS_AS_HTML]):
            values = (i, trial.case_id, trial.model, trial.arm, trial.outcome, trial.detail)
            cells = "".join(f"<td {cell}>{escape(printable(str(value)))}</td>" for value in values)
            rows += f"<tr>{cells}</tr>"
        more = len(self) - _ROWS_AS_HTML
        html = (
            f"<b>{counted(len(self), 'trial')}</b><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table>{f'<p>… and {more} more</p>' if more > 0 else ''}"
        )
        return {"text/plain": repr(self), "text/html": html}


class Run:
    """A run as `Lab.run` returns it, and every view on its trials.

    It may still be running: every view shows the answers recorded by now.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        plan: Plan,
        summary: Summary | None = None,
        asker: Callable[..., Trial] | None = None,
    ) -> None:
        self.store = store
        self.run_id = run_id
        self.plan = plan
        self.summary = summary
        reader = TrialReader(store, run_id, plan, asker)
        self._own_views = reader, CachedParses(reader)

    def _views(self) -> tuple[TrialReader, CachedParses]:
        return self._own_views

    @property
    def _reader(self) -> TrialReader:
        return self._views()[0]

    @property
    def title(self) -> str:
        """What the run is called: the file of its cases, or its id."""
        return Path(self.plan.cases.source or "").name or self.run_id

    @property
    def _readings(self) -> CachedParses:
        return self._views()[1]

    def __repr__(self) -> str:
        summary = f": {self.summary}" if self.summary else ""
        skipped = "".join(f"; {row}" for row in self.plan.cases.skipped)
        return f"Run {self.run_id}{summary}{skipped}"

    def trials(
        self,
        *,
        protocol: ProtocolLike | None = None,
        policies: Sequence[Policy] = (HEADLINE,),
        where: Callable[[Trial], bool] | None = None,
        **only: Unpack[Choice],
    ) -> Trials:
        """Return every planned trial, read by one protocol under each policy.

        A trial that is not on record yet is there too, without a result. Conversations are what
        they were when they were asked, whatever reads their first turn here. protocol: an id or a
        protocol object, by default the one that the prompt asked for. only: the trials of a
        case_id, model, arm, prompt_protocol, trial or category, one value or several. The others
        are not read. where: a further condition on a trial. The last trials that were read are
        kept. A
        run too large for memory is gone through by `batches`. Raises BadOptions for a value that no
        trial has.
        """
        return Trials(self._trials(protocol=protocol, policies=policies, where=where, **only))

    def trial(self, trial_id: str) -> Trial:
        """Return the trial of an id that a frame or a report of this run shows.

        Raises BadOptions for an id that no trial of the run has.
        """
        # Whoever asks has just seen the id, so that the trial is likely to be in memory.
        for trial in self._reader.last_read():
            if trial.trial_id == trial_id:
                return trial
        for policy in COLUMN_POLICIES:
            columns = ["trial_id", "case_id", "model", "arm", "trial"]
            frame = self._kept("trials", columns, policies=(policy,))
            rows = frame[frame["trial_id"] == trial_id]
            for _, *place in rows[columns].itertuples(index=False):
                return self._at(place, policy)
        raise UnknownName(
            "this run has no such trial",
            got=trial_id,
            hint="ids stand in run.frame()['trial_id']",
            code="unknown-trial",
        )

    def _trials(
        self,
        *,
        protocol: ProtocolLike | None = None,
        policies: Sequence[Policy] = (HEADLINE,),
        where: Callable[[Trial], bool] | None = None,
        **only: Unpack[Choice],
    ) -> Iterator[Trial]:
        items = self._reader.items(only)
        reader = None if protocol is None else any_protocol(protocol)
        for policy in policies:
            for trial in self._reader.trials(items, reader, policy):
                if where is None or where(trial):
                    yield trial

    def _at(self, place: Sequence[Any], policy: Policy) -> Trial:
        # By its keys, so that one answer is read and not all of the run.
        case_id, model, arm, trial = place
        item = self._reader.item(str(case_id), str(model), str(arm), int(trial))
        return next(self._reader.trials([item], None, policy))

    @property
    def missing(self) -> int:
        """The number of trials without an answer by now.

        They are not asked yet, or have failed, or their conversation is not over.
        """
        if any(arm.conversing for arm in self.plan.arms):
            unfinished = (*OPEN, "provider_error")
            return sum(
                trial.completion is None
                or not trial.completion.ok
                or (trial.conversation is not None and trial.conversation.stop in unfinished)
                for trial in self.trials()
            )
        record = self.store.run(self.run_id)
        return record.items - record.done

    # frames

    def batches(
        self,
        size: int = 2000,
        *,
        protocol: ProtocolLike | None = None,
        policies: Sequence[Policy] = (HEADLINE,),
        where: Callable[[Trial], bool] | None = None,
        **only: Unpack[Choice],
    ) -> Iterator[Frame]:
        """Return the trials frame in frames of `size` rows, for runs that do not fit in memory.

        All other arguments are those of `trials`. Raises BadOptions for a size that is not a
        number.
        """
        if not is_count(size):
            raise BadOptions("a batch has a number of trials", got=size, expected="1 or more")
        trials = self._trials(protocol=protocol, policies=policies, where=where, **only)
        return self._reader.frames(trials, size)

    def recorded(self, **only: Unpack[Choice]) -> Iterator[Trial]:
        """Return the trials with their recorded answers, which are not parsed.

        only: as for `trials`.
        """
        return self._reader.answers(self._reader.items(only))

    def answers(self, size: int = 2000, **only: Unpack[Choice]) -> Iterator[Frame]:
        """Return the recorded answers, which are not parsed, in frames of `size` rows.

        `Lab.reparse` reads them. only: as for `trials`.
        """
        return self._reader.frames(self.recorded(**only), size)

    @overload
    def frame(self, engine: Literal["pandas"] = ..., **reading: Unpack[FrameOptions]) -> Frame: ...
    @overload
    def frame(self, engine: Literal["arrow", "polars"], **reading: Unpack[FrameOptions]) -> Any: ...
    def frame(self, engine: FrameEngine = "pandas", **reading: Unpack[FrameOptions]) -> Frame | Any:
        """Return the trials frame: one row per completion × parse protocol × policy.

        engine: "arrow" gives a `pyarrow.Table`, "polars" a `polars.DataFrame`, both with texts as
        dictionaries, in which each text is there once. reading: as for `trials`. Raises BadOptions
        for another engine, and MissingExtra where Polars is not installed.
        """
        from ..evals.frames.files import FRAME_ENGINES, convert_frame  # pandas is slow to import
        from ..evals.frames.recorded import ShownFrame

        if engine not in FRAME_ENGINES:
            raise BadOptions(
                "no engine of this name", got=engine, expected=", ".join(FRAME_ENGINES)
            )
        if engine == "pandas" or reading.keys() - {"protocol", "policies"}:
            frame = self._kept("trials", **reading)
            wanted = dict(reading).get("columns")
            if lacking := [n for n in wanted if n not in frame] if isinstance(wanted, list) else []:
                raise UnknownName(
                    "no such column", got=lacking[0], hint=near(lacking[0], self.frame()),
                    code="unknown-column",
                )  # fmt: skip
            return (
                ShownFrame(frame) if engine == "pandas" else convert_frame(frame, "trials", engine)
            )
        protocol = reading.get("protocol")
        by = None if protocol is None else any_protocol(protocol)
        return self._readings.table(by, reading.get("policies", (HEADLINE,)), engine)

    def _kept(
        self,
        kind: Literal["trials", "calls"],
        columns: Sequence[str] | None = None,
        *,
        protocol: ProtocolLike | None = None,
        policies: Sequence[Policy] = (HEADLINE,),
        where: Callable[[Trial], bool] | None = None,
        **only: Unpack[Choice],
    ) -> Frame:
        if where is not None:
            from ..evals.frames.recorded import calls_frame  # pandas is slow to import

            trials = self._trials(protocol=protocol, policies=policies, where=where, **only)
            return _joined(
                kind, trials, calls_frame if kind == "calls" else self._reader.trials_frame
            )
        reader = None if protocol is None else any_protocol(protocol)
        return self._readings.frame(kind, only, reader, policies, columns)

    trials_df = frame

    def calls_df(self, **reading: Unpack[FrameOptions]) -> Frame:
        """Return one row per call that was found. reading: as for `trials`."""
        from ..evals.frames.recorded import ShownFrame  # pandas is slow to import

        return ShownFrame(self._kept("calls", **reading))

    def events_df(self, **reading: Unpack[FrameOptions]) -> Frame:
        """Return one row per repair, step, problem or retry. reading: as for `trials`."""
        from ..evals.frames.recorded import events_frame  # pandas is slow to import

        # An answer read under several policies was retried only once.
        completions: set[str] = set()
        return _joined(
            "events", self._trials(**reading), lambda batch: events_frame(batch, completions)
        )

    def chunks_df(self, case_id: str | Sequence[str]) -> Frame:
        """Return one row per chunk of the answers to one case or several.

        Arrival times are in seconds. Raises BadOptions for a case that the run has not.
        """
        from ..evals.frames.recorded import chunks_frame  # pandas is slow to import

        return chunks_frame(self._reader.answers(self._reader.items({"case_id": case_id})))

    # reports

    def report(
        self,
        by: str | Sequence[str] | None = None,
        *,
        baseline: str | None = None,
        policy: Policy = HEADLINE,
        matchers: Matchers | None = None,
        **options: Unpack[ReportOptions],
    ) -> Report:
        """Return success and its reasons by any columns.

        See `evals.reports.figures.report.Report`. The answers of one conversation of a log are one
        cluster.

        Args:
            by: columns of the report (default: model and protocol). See `columns_by`.
            baseline: the protocol, arm or model to compare with.
            matchers: the comparison of values with those of the targets, where equality is too
                strict.
            options: other arguments of `Report`.
        """
        from ..evals.frames.recorded import trials_frame  # pandas is slow to import
        from ..evals.reports.figures.report import Report  # as above
        from ..evals.reports.figures.view import RunView  # as above

        policies = tuple(dict.fromkeys((policy, *COLUMN_POLICIES)))
        by = columns_by(self.plan) if by is None else by
        if self.plan.cluster and options.get("cluster") is None:
            options["cluster"] = self.plan.cluster
        opener, whole_rows = self.trial, None
        if matchers is None:
            others = [] if by is None else [by] if isinstance(by, str) else by
            frame = self._columns([*others, options.get("cluster") or ""], policies)
            whole_rows = partial(self._readings.rows, protocol=None, policies=policies)
        else:
            frame = trials_frame([t.rescored(matchers) for t in self.trials(policies=policies)])

            def opener(trial_id: str) -> Trial:
                return self.trial(trial_id).rescored(matchers)

        view = RunView(
            frame,
            stops=self._stops(),
            unknown=self.plan.unknown,
            models={alias: model.name for alias, model in self.plan.models.items()},
            peers=peer_arms(self.plan, baseline),
            open_trial=opener,
            whole_rows=whole_rows,
            calls=lambda: self.calls_df(policies=(policy,)),
            arms=self._levels(),
        )
        options.setdefault("title", self.title)
        return Report(view, by, policy=policy, baseline=baseline, **options)

    def _columns(self, others: Iterable[str], policies: Sequence[Policy]) -> Frame:
        # The trials frame with the columns of reports, and others that the caller named; with all
        # of them where there is no such column, so that the complaint says which there are.
        from ..evals.reports.figures.cells import READ  # pandas is slow to import

        named = [name for name in others if name]
        names = [*READ, *named]
        frame = self._readings.coded(list(dict.fromkeys(names)), policies, named)
        return frame if all(name in frame for name in names) else self.frame(policies=policies)

    def _rows_of_matrix(self, rows: str | None) -> str:
        return rows or ("arm" if _has_factors(self.plan) else "prompt_protocol")

    def matrix(
        self, rows: str | None = None, columns: str | None = None, *, policy: Policy = HEADLINE
    ) -> Matrix:
        """Return success with intervals, arm (or any column) × model (or any column)."""
        from ..evals.reports.figures.cells import matrix  # pandas is slow to import

        rows = self._rows_of_matrix(rows)
        cluster = self.plan.cluster or None
        frame = self._columns([rows, columns or "", cluster or ""], (policy,))
        return matrix(frame, rows=rows, columns=columns, policy=policy, cluster=cluster)

    def browse(
        self, rows: str | None = None, columns: str | None = None, *, policy: Policy = HEADLINE
    ) -> Any:
        """Return the interactive view of all trials: a heatmap of two columns, the trials of a
        cell, and one answer next to them. See `widgets.Browser`.

        rows, columns: by default those of `matrix`. Raises MissingExtra if the `jupyter` extra is
        missing.
        """
        frame = self.frame(policies=(policy,))
        created = datetime.fromisoformat(self.store.run(self.run_id).created)
        places = frame.set_index("trial_id")[["case_id", "model", "arm", "trial"]]
        return hooks.call(
            "browse",
            frame,
            rows=self._rows_of_matrix(rows),
            columns=columns,
            policy=policy,
            calls=self.calls_df(policies=(policy,)),
            cluster=self.plan.cluster or None,
            opener=lambda trial_id: self._at(list(places.loc[trial_id]), policy),
            title=self.title,
            facts=f"{created.day} {created:%b %Y, %H:%M}",
        )

    def compare(
        self,
        a: str,
        b: str,
        *,
        within: str | Sequence[str] | None = None,
        policy: Policy = HEADLINE,
        cluster: str | None = None,
        pairs: int | None = None,
    ) -> ArmComparison:
        """Return the comparison of two arms, models or protocols, paired on cases.

        Args:
            within: columns to hold fixed.
            cluster: what intervals go by, such as conversation_id (default: the cluster of the
                run, or the case).
            pairs: how many pairs this one was picked from (default: all of the run; 1 where it was
                chosen before the run). Interval and p allow for them.

        Raises BadOptions for an arm or a column that the run has not.
        """
        report = self.report(policy=policy, cluster=cluster)
        return report.compare(a, b, within=within, pairs=pairs)

    def _levels(self) -> dict[str, dict[str, Any]]:
        return {
            arm.name: {**arm.levels, "prompt_protocol": arm.prompt_protocol}
            for arm in self.plan.arms
        }

    def failures(
        self,
        *,
        model: str | None = None,
        arm: str | None = None,
        protocol: ProtocolLike | None = None,
        code: str | None = None,
        policy: Policy = HEADLINE,
    ) -> Trials:
        """Return the trials to look at: no success, or without a target an answer of which not
        every call can be executed or an attempt was lost, see `Trial.cause`.

        code: a cause, an outcome, a sub-code or a problem code. Raises BadOptions for a model, arm
        or protocol that no trial has, and for a code that does not exist.
        """
        protocol_id = getattr(protocol, "id", protocol)
        choices = {"model": model, "arm": arm, "prompt_protocol": protocol_id}
        only: Any = {name: value for name, value in choices.items() if value is not None}
        from ..evals.frames.account import failed_rows  # pandas is slow to import

        # The columns say which they are, and only these are parsed, when somebody looks at them.
        columns = ["outcome", "error_code", "sub_code", "target"]
        frame = self._kept("trials", columns, policies=(policy,), **only)
        flags = failed_rows(frame)
        words = frame[["outcome", "sub_code"]].astype("string").fillna("").itertuples(index=False)
        of_code = [code in row for row in words]
        # A problem's code may be that of a note, and the columns have none.
        known = code in OUTCOMES or code in SUB_CODES
        in_columns = known or (code not in CODES and any(of_code))
        chosen = zip(self._reader.items(only), flags, of_code, strict=True)
        items = [item for item, flag, own in chosen if flag and (own or not in_columns)]
        failed = UnreadTrials(self._reader, items, policy)
        return Trials(failed if code is None or in_columns else with_code(failed, code))

    def _stops(self) -> list[str]:
        if self.summary is None or self.summary.stopped is None:
            return []
        answers = (
            f"{self.summary.planned - self.summary.missing} of {self.summary.planned} answers are "
            "recorded."
        )
        return [f"The run stopped early ({self.summary.stopped}): {answers}"]


def _joined(kind: str, trials: Iterator[Trial], made: Callable[[Sequence[Trial]], Frame]) -> Frame:
    # The frame that `made` makes of all trials, a batch at a time.
    from ..evals.frames.recorded import join_frames  # pandas is slow to import

    frames = [made(batch) for batch in in_batches(trials, _BATCH)]
    return join_frames(frames or [made([])], kind)


def columns_by(plan: Plan) -> tuple[str, ...] | None:
    """Return the columns of a plan's report by default. None leaves them to the report."""
    return ("model", "arm") if _has_factors(plan) else None  # an arm's name has its protocol


def peer_arms(plan: Plan, baseline: str | None) -> dict[str, str]:
    """Return arm -> the arm of the protocol `baseline` with the same levels, where just one is.

    Empty for a baseline that is not a protocol, and for one that is an arm's own name as well.
    """
    if baseline is None or baseline in {arm.name for arm in plan.arms}:
        return {}
    bases = [arm for arm in plan.arms if arm.prompt_protocol == baseline]
    peers = {
        arm.name: [base.name for base in bases if _same_levels(arm.levels, base.levels)]
        for arm in plan.arms
    }
    return {name: alike[0] for name, alike in peers.items() if len(alike) == 1}


def _same_levels(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    # In every factor that means something to both.
    return all(a[f] == b[f] for f in a.keys() & b.keys() if None not in (a[f], b[f]))


def _has_factors(plan: Plan) -> bool:
    return len(plan.arms) > len({arm.prompt_protocol for arm in plan.arms})
