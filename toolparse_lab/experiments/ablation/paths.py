"""Paths of calls through layer 3: the tree of corrections, walked as far as it is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...core.errors import CorrectionFailed
from ...core.types import Policy
from ...core.values import write_canonical
from ...middleware.correction import (
    Correct,
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
from ..plan import Plan
from .answers import AnswerCall, BaseAnswer, request_of
from .settings import AblationSettings
from .tools import CaseTools

# How it works. A node of the tree is a correction prompt, and its key that of its request: equal
# prompts of equal models are one node, whichever cell, policy or layer 1 they come from. A path is
# one call's way down the tree. It is walked by `corrected_call`, the body that production runs,
# whose questions are looked up here: live and replay are the same walk, and recording is nothing
# but asking what the walk did not find. A walk that meets a node without an answer ends as
# `not_recorded`, and its next question is a leaf to be asked.

MOST_ROUNDS = 50
"""Rounds of asking; a path has no more corrections than `max_validation_retries`."""
# Failures that are the model's answer; all others say nothing of it.
_ANSWERS = ("refused", "context_overflow")


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
        open_calls = list(self._calls(answers))
        paths: dict[PathKey, Path] = {}
        for _ in range(MOST_ROUNDS):
            for key, answer, call in open_calls:
                paths[key] = self._path(answer, call, key[2], key[3])
            leaves = {key: paths[key].leaf for key, _, _ in open_calls}
            questions = {leaf.key for leaf in leaves.values() if leaf is not None}
            new = questions - self.recorded.keys()
            if not new:
                break
            self.learn(new, store, run_id)
            # Only a walk that ended at a question can have gone on.
            open_calls = [row for row in open_calls if leaves[row[0]] is not None]
        return paths

    def _calls(
        self, answers: Iterable[BaseAnswer]
    ) -> Iterator[tuple[PathKey, BaseAnswer, AnswerCall]]:
        # Calls that no tool can take are left out.
        for i, answer in enumerate(answers):
            for j, call in enumerate(answer.calls):
                if call.tool is not None:
                    for policy in call.readings:
                        yield (i, j, policy, False), answer, call
                        yield (i, j, policy, True), answer, call

    def learn(self, keys: Iterable[str], store: Store, run_id: str) -> None:
        """Look answers up in the store.

        One that failed for another reason than the model is no answer.
        """
        keys = list(keys)
        completions = store.answers(keys, run_id=run_id)
        for key in keys:
            completion = completions.get(key)
            is_answer = completion is not None and (
                completion.ok or completion.error_kind in _ANSWERS
            )
            self.recorded[key] = completion if is_answer else None

    def _path(self, answer: BaseAnswer, call: AnswerCall, policy: Policy, enabled: bool) -> Path:
        # Without layer 3 there are regular attempts alone.
        feedback = replace(self.settings.feedback, policy=policy, enabled=enabled)
        case = answer.question.case
        flow = corrected_call(
            call.tool, call.arguments(policy), feedback, messages=tuple(case.messages)
        )
        walk = _Walk(self, answer)
        corrected = drive(flow, walk.answer)
        return Path(corrected, tuple(walk.nodes), walk.leaf, not walk.is_open)


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
        # A pause takes no time here, and is counted by the flow.
        if isinstance(need, Pause):
            return None
        if isinstance(need, RunTool):
            name = _text(need.arguments)
            self.attempts[name] += 1
            case = self.base.question.case
            return self.tree.tools.call(case, need.tool, need.arguments, self.attempts[name])
        return self._correction(need)

    def _correction(self, need: Correct) -> Any:
        # None if there is none.
        if not self.tree.plan.requests:
            # Outputs from elsewhere: there is no prompt that a correction could go on from.
            self.is_open = True
            return None
        if self.correction is None:
            request = request_of(self.tree.plan, self.base.question)
            self.correction = ModelCorrection(request, self.tree.settings.feedback.wording)
        request = self.correction.request(need.context)
        self._note(request, need.context.number)
        completion = self.tree.recorded.get(request.key)
        if completion is None:
            self.leaf, self.is_open = request, True
            return None
        self.nodes.append(completion)
        try:
            return self.correction.read(completion, need.context)
        except CorrectionFailed as e:
            return e

    def _note(self, request: Request, number: int) -> None:
        # Its turn says that it is not a base question. number: of the correction, from 1.
        if request.key not in self.tree.items:
            question = self.base.question
            arm = {**question.item.arm, "turn": number + 1}
            item = PlanItem(question.case.id, question.model, request.key, question.trial, arm)
            self.tree.items[request.key] = item
            self.tree.requests[request.key] = request


def _text(arguments: Mapping[str, Any]) -> str:
    try:
        return write_canonical(dict(arguments))
    except (TypeError, ValueError):
        return repr(arguments)
