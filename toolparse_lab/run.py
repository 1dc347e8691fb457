"""A recorded run and the views on it: every parse is made from the recording, when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from .errors import BadOptions
from .evals.trial import Trial
from .flow import Conversation, drive, read_answer
from .plan import Plan
from .registry import protocol_of
from .runner.pool import Summary
from .runner.store import Store
from .runner.types import Completion, PlanItem
from .types import ParseOptions, Policy

if TYPE_CHECKING:
    from .evals.compare import ArmComparison
    from .evals.frames import Frame
    from .evals.report import Matrix, Report

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
        return self._trials[index]

    def __repr__(self) -> str:
        lines = [f"{len(self)} trials"]
        for i, t in enumerate(self._trials[:20]):
            detail = t.score.detail if t.score else t.missing_reason
            lines.append(f"[{i}] {t.case_id} · {t.model} · {t.arm}: {t.outcome} – {detail}")
        if len(self) > 20:
            lines.append(f"… and {len(self) - 20} more")
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        cell = 'style="text-align:left;vertical-align:top"'
        rows = "".join(
            f"<tr><td {cell}>{i}</td>"
            + "".join(
                f"<td {cell}>{escape(str(v))}</td>"
                for v in (t.case_id, t.model, t.arm, t.outcome, t.score.detail if t.score else t.missing_reason)
            )
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
        self._asker = asker
        self._parsed: dict[tuple[str, str | None, Policy], Trial] = {}
        self._conversations: dict[str, Conversation] = {}

    def __repr__(self) -> str:
        return f"Run {self.run_id}: {self.summary}" if self.summary else f"Run {self.run_id}"

    def trials(self, *, protocol: str | None = None, policies: Sequence[Policy] = (HEADLINE,)) -> Trials:
        """Every planned trial, read by `protocol` (default: the one its prompt asked for) under each policy.

        What is not recorded yet is there too, without a result. Reading is done once and kept. Conversations are what
        they were when they were asked, whatever reads their first turn here.
        """
        recorded = {i.key: c for i, c in self.store.completions(self.run_id)}
        return Trials(t for policy in policies for t in self._read(recorded, protocol, policy))

    def _read(self, recorded: Mapping[str, Completion], protocol: str | None, policy: Policy) -> Iterator[Trial]:
        cases = {c.id: c for c in self.plan.cases}
        arms = {a.name: n for n, a in enumerate(self.plan.arms)}
        models = {alias: n for n, alias in enumerate(self.plan.models)}
        # Asked in random order, shown in the plan's.
        ordered = sorted(self.plan.items, key=lambda i: (models[i.model], arms[str(i.arm["arm"])]))
        for item in ordered:
            completion = recorded.get(item.key)
            identity = f"{item.key}:{item.case_id}:{item.arm['arm']}:{completion.created if completion else ''}"
            cache = (identity, protocol, policy)
            trial = self._parsed.get(cache)
            if trial is None:
                arm, case = self.plan.arm(item), cases[item.case_id]
                reader = protocol_of(protocol or arm.protocol).id if protocol != "auto" else "auto"
                result = None
                if completion is not None and completion.ok:
                    options = ParseOptions(coerce=policy)
                    result = read_answer(completion.raw, reader, case.tools, options, arm.levels["tool_choice"])
                conversation = self._conversation(item, identity, recorded) if arm.conversing else None
                trial = Trial.of(
                    case,
                    completion,
                    result,
                    run_id=self.run_id,
                    model=item.model,
                    arm=arm.name,
                    prompt_protocol=arm.protocol,
                    parse_protocol=reader,
                    policy=policy,
                    trial=item.trial,
                    asker=self._asker,
                    levels=arm.levels,
                    conversation=conversation,
                )
                if conversation is None or conversation.stop != "not_asked":
                    self._parsed[cache] = trial
            yield trial

    def _conversation(self, item: PlanItem, identity: str, recorded: Mapping[str, Completion]) -> Conversation:
        """As much of an item's conversation as is recorded. One that is not over is read again the next time."""
        known = self._conversations.get(identity)
        if known is None:
            known = drive(self.plan.flow(item), lambda request: recorded.get(request.key))
            if known.stop != "not_asked":
                self._conversations[identity] = known
        return known

    # frames

    def frame(self, *, protocol: str | None = None, policies: Sequence[Policy] = (HEADLINE,)) -> Frame:
        """The trials frame: one row a completion × parse protocol × policy."""
        from .evals.frames import trials_frame

        return trials_frame(self.trials(protocol=protocol, policies=policies))

    trials_df = frame

    def calls_df(self, **reading: Any) -> Frame:
        """One row a call that was found."""
        from .evals.frames import calls_frame

        return calls_frame(self.trials(**reading))

    def events_df(self, **reading: Any) -> Frame:
        """One row a repair, step, problem or retry."""
        from .evals.frames import events_frame

        return events_frame(self.trials(**reading))

    def chunks_df(self, case_id: str) -> Frame:
        """One row a chunk of the answers to one case, with its arrival time in seconds."""
        from .evals.frames import chunks_frame

        found = [t for t in self.trials() if t.case_id == case_id and t.completion is not None]
        if not found:
            raise BadOptions("nothing is recorded for this case", got=case_id)
        return chunks_frame(found)

    # reports

    def report(
        self,
        by: str | Sequence[str] | None = None,
        *,
        baseline: str | None = None,
        policy: Policy = HEADLINE,
        **options: Any,
    ) -> Report:
        """Success and its reasons by any columns; see `evals.report.Report`."""
        from .evals.report import Report

        policies = tuple(dict.fromkeys((policy, *COLUMN_POLICIES)))
        if by is None and self.plan.varied:
            by = ("model", "arm")  # an arm's name says its protocol
        return Report(
            self.frame(policies=policies),
            by,
            policy=policy,
            baseline=baseline,
            stops=self._stops(),
            models={alias: m.name for alias, m in self.plan.models.items()},
            **options,
        )

    def matrix(self, rows: str | None = None, columns: str | None = None, *, policy: Policy = HEADLINE) -> Matrix:
        """Success with intervals, arm (or any column) × model (or any column)."""
        from .evals.report import matrix

        default = "arm" if self.plan.varied else "prompt_protocol"
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
        """The graded trials that did not succeed. `code` is an outcome, a sub-code or a problem code."""
        return Trials(
            t
            for t in self.trials(policies=(policy,))
            if t.score is not None
            and t.score.success is False
            and (model is None or t.model == model)
            and (arm is None or t.arm == arm)
            and (protocol is None or t.prompt_protocol == protocol)
            and (code is None or _has_code(t, code))
        )

    def _stops(self) -> list[str]:
        if self.summary is None or self.summary.stopped is None:
            return []
        asked = self.summary.planned - self.summary.missing
        return [
            f"The run stopped early ({self.summary.stopped}): {asked} of {self.summary.planned} answers are recorded."
        ]


def _has_code(trial: Trial, code: str) -> bool:
    if trial.score is not None and code in (trial.score.outcome, trial.score.sub_code):
        return True
    return trial.result is not None and any(p.code == code for p in trial.result.all_problems())
