"""A plan held to what its report will be asked for, before anything is spent on answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.types import Policy
from ..evals.frames.recorded import trials_frame
from ..evals.reports.figures.report import Report
from ..evals.scoring.trial import Trial
from ..experiments.plan import Plan
from ..experiments.run import columns_by, peer_arms


def check_report(
    plan: Plan,
    by: Sequence[str] | None,
    baseline: str | None,
    gates: Mapping[str, float],
    policy: Policy,
    cluster: str | None = None,
) -> None:
    """Raise BadOptions for columns, a baseline or thresholds that the report will not have.

    It makes the report of the plan's trials without an answer, which has the same columns.
    """
    names = dict.fromkeys(
        name for case in plan.cases for name in case.metadata if name != "category"
    )
    # Only a baseline that is a value of the cases' own columns needs more than one of them.
    every_case = by is not None and baseline is not None
    report = Report(
        trials_frame(_trials(plan, policy, every_case), metadata=names),
        columns_by(plan) if by is None else by,
        baseline=baseline,
        peers=peer_arms(plan, baseline),
        policy=policy,
        cluster=cluster,
    )
    if gates:
        report.gate(**gates)


def _trials(plan: Plan, policy: Policy, every_case: bool) -> Iterator[Trial]:
    """Yield the trials of a plan, none of them answered.

    Those of its first case alone will often do.
    """
    cases = list(plan.cases) if every_case else list(plan.cases)[:1]
    for case in cases:
        for alias in plan.models:
            for arm in plan.arms:
                yield Trial.of(
                    case,
                    None,
                    None,
                    model=alias,
                    arm=arm.name,
                    prompt_protocol=arm.prompt_protocol,
                    parse_protocol=arm.reader.id,
                    policy=policy,
                    levels=arm.levels,
                )
