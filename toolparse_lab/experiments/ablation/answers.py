"""Base answers, read under every policy of layer 2, and the paths of their calls through layer 3.

How it works. A base answer is a model's text with or without layer 1. It is read once under each
policy, by the same reader as in any run, so that rungs P and G without layer 3 are the run's own
score. Reading finds the same calls under every policy: coercion changes arguments and nothing else.
So call i under one policy is call i under another.

Corrections form a tree. A node is a correction prompt, and its key that of its request: equal
prompts of equal models are one node, whichever cell, policy or layer 1 they come from. A path is
one call's way down the tree. It is walked by `corrected_call`, the body that production runs,
whose questions are looked up here: live and replay are the same walk, and recording is nothing
but asking what the walk did not find. A walk that meets a node without an answer ends as
`not_recorded`, and its next question is a leaf to be asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...core.errors import BadPlan, CorrectionFailed
from ...core.toolspec import ToolSpec
from ...core.types import Policy, ToolCall
from ...core.values.printable import counted
from ...evals.cases.case import Case
from ...evals.cases.target import is_optional
from ...evals.scoring.outcomes import MISSING
from ...evals.scoring.trial import Trial
from ...middleware.correction import (
    CorrectedCall,
    ModelCorrection,
    Pause,
    RunTool,
    corrected_call,
)
from ...middleware.correction.call import Need
from ...middleware.drive import drive
from ...runner.exchange.types import Completion, PlanItem, Request
from ...runner.store.store import Store
from ..arms import level_name
from ..plan import Plan
from ..run import Run
from .settings import AblationSettings
from .tools import CaseTools, arguments_text

MOST_ROUNDS = 50
"""Rounds of asking; a path has no more corrections than `max_validation_retries`."""
# The outcomes of an answer whose calls could be read.
_JUDGED = ("correct", "wrong_call", "ungraded")
# Failures that are the model's answer; all others say nothing of it.
_ANSWERS = ("refused", "context_overflow")


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
        """The text that the calls are in."""
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
    factor, off, on = settings.layer1
    others = [name for name in plan.varied if name != factor]
    arms: dict[str, tuple[str, bool]] = {}
    for arm in plan.arms:
        if arm.conversing:
            raise BadPlan("an ablation asks one question a case", got=f"{arm.name}: max_turns")
        level = arm.levels.get(factor)
        # A native arm has no prompt of ours, so that layer 1 is never there. A level that is
        # neither of the two is left out.
        if level in (off, on, None):
            levels = ((other, arm.levels.get(other)) for other in others)
            names = [level_name(other, at) for other, at in levels if at is not None]
            label = " ".join([arm.prompt_protocol, *names])
            arms[arm.name] = (label, level != off and level is not None)
    questions = []
    for item in plan.items:
        case, name = plan.cases[item.case_id], str(item.arm["arm"])
        if name in arms and wants_call(case):
            questions.append(Question(case, item.model, arms[name][0], item.trial, arms[name][1],
                                      item))  # fmt: skip
    if not questions:
        raise BadPlan(
            "an ablation needs cases in which a call is wanted, with or without layer 1",
            got=f"{counted(len(plan.items), 'question')}, none of this kind",
        )
    return questions


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
        by_policy = rows[(item.case_id, item.model, str(item.arm["arm"]), item.trial)]
        first = by_policy["none"]
        if first.score is None or first.outcome in MISSING:
            yield BaseAnswer(question, None, None, reason=first.detail or "not recorded")
        elif first.outcome not in _JUDGED or first.sub_code == "one_of_several_broken":
            yield BaseAnswer(question, first.completion, False, reason=first.outcome)
        else:
            calls = tuple(_calls(question.case, by_policy))
            # A case without a target may be answered without a call.
            yield BaseAnswer(question, first.completion, bool(calls), calls)


def _calls(case: Case, trials: Mapping[Policy, Trial]) -> Iterator[AnswerCall]:
    tools = {tool.name: tool for tool in case.tools}
    # An echo is not a call, and a broken one ends before here.
    readings = {
        policy: [
            call
            for call in (trial.result.calls if trial.result else ())
            if call.status in ("ok", "unknown_tool")
        ]
        for policy, trial in trials.items()
    }
    for i, call in enumerate(readings["none"]):
        by_policy = {policy: calls[i] for policy, calls in readings.items() if i < len(calls)}
        yield AnswerCall(call.name, tools.get(call.name), by_policy)


@dataclass(frozen=True, slots=True)
class Path:
    """One call under one policy, with layer 3.

    nodes: the answers of its corrections, in order. leaf: the question that has no answer. whole:
    nothing is missing. A path that is not whole has a leaf, unless no one could be asked.
    """

    call: CorrectedCall
    nodes: tuple[Completion, ...] = ()
    leaf: Request | None = None
    whole: bool = True

    @property
    def tokens(self) -> int:
        """Of all corrections, in and out."""
        return sum(correction.tokens for correction in self.call.corrections)

    @property
    def cost(self) -> float:
        """Of all corrections, in US dollars."""
        return sum(correction.cost for correction in self.call.corrections)


PathKey: TypeAlias = tuple[int, int, Policy, bool]
"""Number of the answer, number of its call, policy, whether layer 3 is there."""


@dataclass(slots=True)
class CorrectionTree:
    """The corrections of many calls, as far as they are recorded.

    recorded: key of a correction's request -> its answer, None if the store has none. items,
    requests: of every question that a walk has met, by key.
    """

    plan: Plan
    settings: AblationSettings
    tools: CaseTools
    recorded: dict[str, Completion | None] = field(default_factory=dict)
    items: dict[str, PlanItem] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)

    def walk(self, answers: list[BaseAnswer], store: Store, run_id: str) -> dict[PathKey, Path]:
        """Return the path of every call that a tool can take, under every policy, with layer 3 and
        without it.
        """
        open_calls = [
            ((i, j, policy, l3), answer, call, call.tool)
            for i, answer in enumerate(answers)
            for j, call in enumerate(answer.calls)
            if call.tool is not None
            for policy in call.readings
            for l3 in (False, True)
        ]
        paths: dict[PathKey, Path] = {}
        for _ in range(MOST_ROUNDS):
            for key, answer, call, tool in open_calls:
                _, _, policy, enabled = key
                # Without layer 3 there are regular attempts alone.
                feedback = replace(self.settings.feedback, policy=policy, enabled=enabled)
                messages = tuple(answer.question.case.messages)
                flow = corrected_call(tool, call.arguments(policy), feedback, messages=messages)
                walk = _Walk(self, answer)
                corrected = drive(flow, walk.answer)
                paths[key] = Path(corrected, tuple(walk.nodes), walk.leaf, not walk.is_open)
            # Only a walk that ended at a question can go on.
            open_calls = [row for row in open_calls if paths[row[0]].leaf is not None]
            leaves = (paths[row[0]].leaf for row in open_calls)
            new = {leaf.key for leaf in leaves if leaf is not None} - self.recorded.keys()
            if not new:
                break
            completions = store.answers(list(new), run_id=run_id)
            for node in new:
                found = completions.get(node)
                is_answer = found is not None and (found.ok or found.error_kind in _ANSWERS)
                self.recorded[node] = found if is_answer else None
        return paths


@dataclass(slots=True)
class _Walk:
    # Gives one flow what it needs, from the tools and from the known values.
    tree: CorrectionTree
    base: BaseAnswer
    correction: ModelCorrection | None = None
    nodes: list[Completion] = field(default_factory=list)
    leaf: Request | None = None
    is_open: bool = False
    attempts: Counter[str] = field(default_factory=Counter)

    def answer(self, need: Need) -> Any:
        # None for a correction that is not known.
        tree, question = self.tree, self.base.question
        if isinstance(need, Pause):
            return None  # takes no time here, and is counted by the flow
        if isinstance(need, RunTool):
            text = arguments_text(need.arguments)
            self.attempts[text] += 1
            return tree.tools.call(question.case, need.tool, need.arguments, self.attempts[text])
        if not tree.plan.requests:
            # Outputs from elsewhere: there is no prompt that a correction could go on from.
            self.is_open = True
            return None
        if self.correction is None:
            # Corrections are asked with the model and parameters of the base question.
            first = next(tree.plan.flow(question.item))
            self.correction = ModelCorrection(first, tree.settings.feedback.wording)
        request = self.correction.request(need.context)
        if request.key not in tree.items:
            # Its turn says that it is not a base question.
            arm = {**question.item.arm, "turn": need.context.number + 1}
            item = PlanItem(question.case.id, question.model, request.key, question.trial, arm)
            tree.items[request.key] = item
            tree.requests[request.key] = request
        completion = tree.recorded.get(request.key)
        if completion is None:
            self.leaf, self.is_open = request, True
            return None
        self.nodes.append(completion)
        try:
            return self.correction.read(completion, need.context)
        except CorrectionFailed as e:
            return e
