"""Base answers: a model's text with and without layer 1, read under every policy of layer 2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import BadPlan
from ...core.toolspec import ToolSpec
from ...core.types import Policy, ToolCall
from ...core.values.printable import counted
from ...evals.cases.case import Case
from ...evals.cases.target import is_optional
from ...evals.scoring.outcomes import MISSING
from ...evals.scoring.trial import Trial
from ...runner.exchange.types import Completion, PlanItem, Request
from ..arms import Arm, level_name
from ..plan import Plan
from ..run import Run
from .settings import AblationSettings

# How it works. Each base answer is read once under each policy, by the same reader as in any run,
# so that rung P and rung G without layer 3 say what the run's own score says. Reading finds the
# same calls under every policy: coercion changes arguments and nothing else. So call i under one
# policy is call i under another.

_JUDGED = ("correct", "wrong_call", "ungraded")
"""The outcomes of an answer whose calls could be read."""


@dataclass(frozen=True, slots=True)
class Question:
    """A base question: a cell of the plan, apart from layer 1.

    protocol: the arm, without its level of layer 1. on: whether layer 1 is.
    """

    case: Case
    model: str
    protocol: str
    trial: int
    on: bool
    item: PlanItem


@dataclass(frozen=True, slots=True)
class AnswerCall:
    """One call of an answer.

    tool: None for a name that was not offered. readings: the call under each policy.
    """

    name: str
    tool: ToolSpec | None
    readings: Mapping[Policy, ToolCall]

    def arguments(self, policy: Policy) -> dict[str, Any]:
        """Return the arguments after layer 2 under a policy."""
        return self.readings[policy].arguments


@dataclass(frozen=True, slots=True)
class BaseAnswer:
    """A base question with its answer.

    parsed: rung P, or None if nothing is recorded, or the provider failed, with `reason`. calls:
    those of a parsed answer.
    """

    question: Question
    completion: Completion | None
    parsed: bool | None
    calls: tuple[AnswerCall, ...] = ()
    reason: str = ""

    @property
    def raw(self) -> str:
        """The text that the calls stand in."""
        return self.completion.raw if self.completion is not None else ""


def wants_call(case: Case) -> bool:
    """Return True for a case in which a call is wanted, or that is not graded.

    If no call is right, there is no type that could be wrong.
    """
    return case.target is None or any(not is_optional(want) for want in case.target)


def questions_of(plan: Plan, settings: AblationSettings) -> list[Question]:
    """Return the base questions of a plan, those of cases that want a call, in the plan's order.

    Raises BadPlan if there is none, and for an arm of several turns: a correction there would be a
    turn of its own.
    """
    for arm in plan.arms:
        if arm.conversing:
            raise BadPlan("an ablation asks one question a case", got=f"{arm.name}: max_turns")
    arms = {arm.name: (_label(plan, arm, settings), _is_on(arm, settings)) for arm in plan.arms}
    questions = []
    for item in plan.items:
        case = plan.cases[item.case_id]
        label, on = arms[str(item.arm["arm"])]
        if on is not None and wants_call(case):
            questions.append(Question(case, item.model, label, item.trial, on, item))
    if not questions:
        raise BadPlan(
            "an ablation needs cases in which a call is wanted, with or without layer 1",
            got=f"{counted(len(plan.items), 'question')}, none of this kind",
        )
    return questions


def _is_on(arm: Arm, settings: AblationSettings) -> bool | None:
    # None for a level that is neither of the two.
    factor, off, on = settings.layer1
    level = arm.levels.get(factor)
    # A native arm has no prompt of ours, so that layer 1 is never there.
    if level == off or level is None:
        return False
    return True if level == on else None


def _label(plan: Plan, arm: Arm, settings: AblationSettings) -> str:
    factors = [factor for factor in plan.varied if factor != settings.layer1[0]]
    levels = [
        level_name(factor, arm.levels[factor])
        for factor in factors
        if arm.levels.get(factor) is not None
    ]
    return " ".join([arm.prompt_protocol, *levels])


def request_of(plan: Plan, question: Question) -> Request:
    """Return the request of a base question, with whose model and parameters corrections
    are asked.
    """
    return next(plan.flow(question.item))


def base_answers(run: Run, settings: AblationSettings) -> Iterator[BaseAnswer]:
    """Yield each base question with its answer, read under every policy."""
    questions = questions_of(run.plan, settings)
    rows: dict[tuple[str, str, str, int], dict[Policy, Trial]] = {}
    for policy in settings.policies:
        for trial in run.trials(policies=(policy,)):
            key = (trial.case_id, trial.model, trial.arm, trial.trial)
            rows.setdefault(key, {})[policy] = trial
    for question in questions:
        item = question.item
        key = (item.case_id, item.model, str(item.arm["arm"]), item.trial)
        yield _base_answer(question, rows[key])


def _base_answer(question: Question, trials: Mapping[Policy, Trial]) -> BaseAnswer:
    # One trial a policy.
    trial = trials["none"]
    if trial.score is None or trial.outcome in MISSING:
        return BaseAnswer(question, None, None, reason=trial.detail or "not recorded")
    broken = ("one_of_several_broken",)
    if trial.outcome not in _JUDGED or trial.sub_code in broken:
        return BaseAnswer(question, trial.completion, False, reason=trial.outcome)
    calls = tuple(_calls(question.case, trials))
    # A case without a target may be answered without a call.
    return BaseAnswer(question, trial.completion, bool(calls), calls)


def _calls(case: Case, trials: Mapping[Policy, Trial]) -> Iterator[AnswerCall]:
    tools = {tool.name: tool for tool in case.tools}
    readings = {policy: _readable(trial) for policy, trial in trials.items()}
    for i, call in enumerate(readings["none"]):
        by_policy = {policy: calls[i] for policy, calls in readings.items() if i < len(calls)}
        yield AnswerCall(call.name, tools.get(call.name), by_policy)


def _readable(trial: Trial) -> Sequence[ToolCall]:
    # An echo is not a call, and a broken one ends before here.
    calls = trial.result.calls if trial.result else ()
    return [call for call in calls if call.status in ("ok", "unknown_tool")]
