"""What a report of a plan will be asked for, held to the plan before anything is asked: a slip is found for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..plan import Plan
    from ..types import Policy


def check_report(
    plan: Plan, by: Sequence[str] | None, baseline: str | None, gates: Mapping[str, float], policy: Policy
) -> None:
    """Raises BadOptions for columns, a baseline or thresholds that the report of this plan will not have."""
    if by is None and baseline is None and not gates:
        return
    from ..evals.frames.recorded import trials_frame
    from ..evals.reports.report import Report
    from ..evals.scoring.trial import Trial
    from ..run import columns_by

    # Only a baseline that is a value of the cases' own columns needs more than one of them.
    cases = list(plan.cases) if by is not None and baseline is not None else list(plan.cases)[:1]
    trials = (
        Trial.of(
            case, None, None, model=alias, arm=arm.name, prompt_protocol=arm.protocol, parse_protocol=arm.protocol,
            policy=policy, levels=arm.levels,
        )
        for case in cases
        for alias in plan.models
        for arm in plan.arms
    )  # fmt: skip
    names = dict.fromkeys(name for case in plan.cases for name in case.metadata if name != "category")
    report = Report(
        trials_frame(trials, metadata=names), columns_by(plan) if by is None else by, baseline=baseline, policy=policy
    )
    if gates:
        report.gate(**gates)
