"""A recorded run and the views on it: every parse is made from the recording, when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadOptions, NoTrial
from .evals.scoring.trial import Trial
from .flow import OPEN
from .plan import Plan
from .run_reading import RunReader, in_batches, with_code
from .runner.pool import Summary
from .runner.store import Store
from .types import Policy

if TYPE_CHECKING:
    from .evals.cases.matchers import Matchers
    from .evals.frames.recorded import Frame
    from .evals.reports.comparison import ArmComparison
    from .evals.reports.matrix import Matrix
    from .evals.reports.report import Report

HEADLINE: Policy = "safe"
COLUMN_POLICIES: tuple[Policy, ...] = ("safe", "middleware")
"""What a report reads every answer under: the headline, and the coercion that stands beside it."""


class Trials(Sequence[Trial]):
    """A list of trials that shows itself as a table and takes an index or a trial id."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        self._trials = tuple(trials)

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Trials(self._trials[index])
        if isinstance(index, str):
            for trial in self._trials:
                if trial.trial_id == index:
                    return trial
            raise KeyError(index)
        try:
            return self._trials[index]
        except IndexError:
            there = f"{len(self)} trials" if self._trials else "none: no trial fits"
            raise NoTrial("there is no such trial", got=index, expected=there) from None

    def as_pytest(self, path: str | Path) -> Path:
        """Write every trial with a parsed answer as a test of one pytest file, see `Trial.as_pytest`; returns its path.

        Raises BadOptions where no trial has one.
        """
        from .evals.scoring.pinning import write_tests

        return write_tests([t for t in self if t.result is not None] or self, path)

    def __repr__(self) -> str:
        lines = [f"{len(self)} trials"]
        for i, t in enumerate(self._trials[:20]):
            lines.append(f"[{i}] {t.case_id} · {t.model} · {t.arm}: {t.outcome} – {t.detail}")
        if len(self) > 20:
            lines.append(f"… and {len(self) - 20} more")
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        cell = 'style="text-align:left;vertical-align:top"'
        rows = "".join(
            f"<tr><td {cell}>{i}</td>"
            + "".join(f"<td {cell}>{escape(str(v))}</td>" for v in (t.case_id, t.model, t.arm, t.outcome, t.detail))
            + "</tr>"
            for i, t in enumerate(self._trials[:50])
        )
        head = "".join(f"<th {cell}>{h}</th>" for h in ("", "case", "model", "arm", "outcome", "detail"))
        more = f"<p>… and {len(self) - 50} more</p>" if len(self) > 50 else ""
        html = f"<b>{len(self)} trials</b><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
        return {"text/plain": repr(self), "text/html": html}


class Run:
    """What `Lab.run` gives back. It may still be running: every view reads what is recorded by now."""

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
        self._reader = RunReader(store, run_id, plan, asker)

    def __repr__(self) -> str:
        said = f": {self.summary}" if self.summary else ""
        left = "".join(f"; {s}" for s in self.plan.cases.skipped)
        return f"Run {self.run_id}{said}{left}"

    def trials(
        self,
        *,
        protocol: str | None = None,
        policies: Sequence[Policy] = (HEADLINE,),
        where: Callable[[Trial], bool] | None = None,
        **only: Any,
    ) -> Trials:
        """Every planned trial, read by `protocol` (default: the one its prompt asked for) under each policy.

        What is not recorded yet is there too, without a result. Conversations are what they were when they were asked,
        whatever reads their first turn here. only: the trials of a case_id, model, arm, prompt_protocol, trial or
        category, one value or several; the others are not read. where: what else must be true of a trial. The last
        trials that were read are kept; a run too large for memory is gone through by `batches`. Raises BadOptions for
        a value that no trial has.
        """
        return Trials(self._trials(protocol, policies, where, only))

    def trial(self, trial_id: str) -> Trial:
        """The trial of an id that a frame or a report of this run shows; raises BadOptions for another."""
        read = chain(self._reader.last_read(), self._trials(None, COLUMN_POLICIES, None, {}))
        found = next((t for t in read if t.trial_id == trial_id), None)
        if found is None:
            raise BadOptions("this run has no such trial", got=trial_id, hint="ids stand in run.frame()['trial_id']")
        return found

    def _trials(
        self,
        protocol: str | None,
        policies: Sequence[Policy],
        where: Callable[[Trial], bool] | None,
        only: Mapping[str, Any],
    ) -> Iterator[Trial]:
        items = self._reader.items(only)
        for policy in policies:
            for trial in self._reader.trials(items, protocol, policy):
                if where is None or where(trial):
                    yield trial

    @property
    def missing(self) -> int:
        """Trials without an answer by now: not asked yet, failed, or a conversation that is not over."""
        if any(arm.conversing for arm in self.plan.arms):
            return sum(_unheard(t) for t in self.trials())
        record = self.store.run(self.run_id)
        return record.items - record.done

    # frames

    def batches(
        self,
        size: int = 2000,
        *,
        protocol: str | None = None,
        policies: Sequence[Policy] = (HEADLINE,),
        where: Callable[[Trial], bool] | None = None,
        **only: Any,
    ) -> Iterator[Frame]:
        """The trials frame in frames of `size` rows, for runs that do not fit memory; choices as for `trials`."""
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise BadOptions("a batch has a number of trials", got=size, expected="1 or more")
        return self._reader.frames(self._trials(protocol, policies, where, only), size)

    def answers(self, size: int = 2000, **only: Any) -> Iterator[Frame]:
        """What is recorded, in frames of `size` rows, one an answer, that nothing has read: for `Lab.reparse`."""
        return self._reader.frames(self._reader.answers(self._reader.items(only)), size)

    def frame(self, **reading: Any) -> Frame:
        """The trials frame: one row a completion × parse protocol × policy; reading: as for `trials`."""
        from .evals.frames.recorded import join_frames, trials_frame

        return join_frames(list(self.batches(**reading)) or [trials_frame([])], "trials")

    trials_df = frame

    def calls_df(self, **reading: Any) -> Frame:
        """One row a call that was found; reading: as for `trials`."""
        from .evals.frames.recorded import calls_frame, join_frames

        made = [calls_frame(some) for some in in_batches(self._chosen(reading), 2000)]
        return join_frames(made or [calls_frame([])], "calls")

    def events_df(self, **reading: Any) -> Frame:
        """One row a repair, step, problem or retry; reading: as for `trials`."""
        from .evals.frames.recorded import events_frame, join_frames

        told: set[str] = set()
        made = [events_frame(some, told) for some in in_batches(self._chosen(reading), 2000)]
        return join_frames(made or [events_frame([])], "events")

    def chunks_df(self, case_id: str | Sequence[str]) -> Frame:
        """One row a chunk of the answers to one case or several, with its arrival time in seconds.

        Raises BadOptions for a case that the run has not.
        """
        from .evals.frames.recorded import chunks_frame

        return chunks_frame(self._reader.answers(self._reader.items({"case_id": case_id})))

    def _chosen(self, reading: Mapping[str, Any]) -> Iterator[Trial]:
        only = dict(reading)
        protocol, policies = only.pop("protocol", None), only.pop("policies", (HEADLINE,))
        return self._trials(protocol, policies, only.pop("where", None), only)

    # reports

    def report(
        self,
        by: str | Sequence[str] | None = None,
        *,
        baseline: str | None = None,
        policy: Policy = HEADLINE,
        matchers: Matchers | None = None,
        **options: Any,
    ) -> Report:
        """Success and its reasons by any columns; see `evals.reports.report.Report`.

        matchers: how values are compared with those of the targets, where they are not to be equal exactly.
        """
        from .evals.frames.recorded import trials_frame
        from .evals.reports.report import Report

        def read(*policies: Policy) -> Iterable[Trial]:
            trials = self.trials(policies=policies)
            return trials if matchers is None else [t.rescored(matchers) for t in trials]

        def opened(trial_id: str) -> Trial:
            return self.trial(trial_id) if matchers is None else self.trial(trial_id).rescored(matchers)

        policies = tuple(dict.fromkeys((policy, *COLUMN_POLICIES)))
        return Report(
            self.frame(policies=policies) if matchers is None else trials_frame(read(*policies)),
            columns_by(self.plan) if by is None else by,
            policy=policy,
            baseline=baseline,
            stops=self._stops(),
            models={alias: m.name for alias, m in self.plan.models.items()},
            source=lambda: read(policy),
            opener=opened,
            **options,
        )

    def matrix(self, rows: str | None = None, columns: str | None = None, *, policy: Policy = HEADLINE) -> Matrix:
        """Success with intervals, arm (or any column) × model (or any column)."""
        from .evals.reports.matrix import matrix

        default = "arm" if _many_arms(self.plan) else "prompt_protocol"
        return matrix(self.frame(policies=(policy,)), rows=rows or default, columns=columns, policy=policy)

    def compare(
        self, a: str, b: str, *, within: str | Sequence[str] | None = None, policy: Policy = HEADLINE
    ) -> ArmComparison:
        """Two arms, models or protocols paired on cases."""
        return self.report(policy=policy).compare(a, b, within=within)

    def failures(
        self,
        *,
        model: str | None = None,
        arm: str | None = None,
        protocol: str | None = None,
        code: str | None = None,
        policy: Policy = HEADLINE,
    ) -> Trials:
        """The trials to look at: those whose outcome is no success, and ungraded answers with an error of the parser.

        code: an outcome, a sub-code or a problem code. Raises BadOptions for a model, arm or protocol that no trial
        has, and for a code that does not exist.
        """
        chosen = {"model": model, "arm": arm, "prompt_protocol": protocol}
        only = {name: value for name, value in chosen.items() if value is not None}
        failed = self.trials(policies=(policy,), where=lambda t: t.failed, **only)
        return failed if code is None else Trials(with_code(failed, code))

    def _stops(self) -> list[str]:
        if self.summary is None or self.summary.stopped is None:
            return []
        asked = self.summary.planned - self.summary.missing
        return [
            f"The run stopped early ({self.summary.stopped}): {asked} of {self.summary.planned} answers are recorded."
        ]


def columns_by(plan: Plan) -> tuple[str, ...] | None:
    """What a report of a plan goes by unless it is told; None leaves it to the report."""
    return ("model", "arm") if _many_arms(plan) else None  # an arm's name says its protocol


def _many_arms(plan: Plan) -> bool:
    """Whether an arm is more than its protocol."""
    return len(plan.arms) > len({a.protocol for a in plan.arms})


def _unheard(trial: Trial) -> bool:
    if trial.completion is None or not trial.completion.ok:
        return True
    return trial.conversation is not None and trial.conversation.stop in (*OPEN, "provider_error")
