"""The trials of a recorded run, read a few hundred at a time, so that a run of any length may be gone through."""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from .errors import BadOptions
from .evals.cases.case import Case
from .evals.scoring.outcomes import OUTCOMES, SUB_CODES
from .evals.scoring.trial import Trial
from .flow import OPEN, Conversation, drive, read_answer
from .plan import Plan
from .registry import protocol_of
from .rules import CODES
from .runner.store import Store
from .runner.types import Completion, PlanItem, Request
from .types import ParseOptions, Policy

if TYPE_CHECKING:
    from .evals.frames.recorded import Frame

KEPT = 5000
"""Trials a run keeps once they were read; the rest is read again when it is asked for again."""
FETCHED = 500
"""Answers that are in memory at once while trials are gone through."""
FILTERS: Mapping[str, Callable[[PlanItem, Case], Any]] = {
    "case_id": lambda item, case: item.case_id,
    "model": lambda item, case: item.model,
    "arm": lambda item, case: item.arm["arm"],
    "prompt_protocol": lambda item, case: item.arm["prompt_protocol"],
    "trial": lambda item, case: item.trial,
    "category": lambda item, case: case.category,
}
"""What trials can be chosen by before they are read."""

_T = TypeVar("_T")
_Key: TypeAlias = tuple[str, str | None, Policy]


class RunReader:
    """Reads one run's items, and keeps the trials and conversations it read last."""

    def __init__(self, store: Store, run_id: str, plan: Plan, asker: Callable[..., Trial] | None) -> None:
        self.store = store
        self.run_id = run_id
        self.plan = plan
        self.asker = asker
        self.arms = {a.name: a for a in plan.arms}
        self._trials: OrderedDict[_Key, Trial] = OrderedDict()
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()

    def items(self, only: Mapping[str, Any]) -> list[PlanItem]:
        """The items in the order in which they are shown: asked in random order, shown in the plan's.

        only: values, or lists of them, by the names of `FILTERS`. Raises BadOptions for others, and for a value that
        no item has.
        """
        arms = {name: n for n, name in enumerate(self.arms)}
        models = {alias: n for n, alias in enumerate(self.plan.models)}
        found = list(self.plan.items)
        for name, wanted in only.items():
            if name not in FILTERS:
                raise BadOptions("trials cannot be chosen by this", got=name, expected=", ".join(FILTERS))
            values = wanted if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
            told = [(FILTERS[name](item, self.plan.cases[item.case_id]), item) for item in self.plan.items]
            known = {value for value, _ in told}
            if strange := [v for v in values if v not in known]:
                shown = ", ".join(sorted(map(str, known))[:20])
                raise BadOptions(
                    f"no trial of this run has this {name}", got=strange[0], expected=shown,
                    hint=_near(strange[0], known),
                )  # fmt: skip
            chosen = {id(item) for value, item in told if value in values}
            found = [item for item in found if id(item) in chosen]
        return sorted(found, key=lambda i: (models[i.model], arms[str(i.arm["arm"])]))

    def trials(self, items: Iterable[PlanItem], protocol: str | None, policy: Policy) -> Iterator[Trial]:
        """Each item's trial, read by `protocol` (None: its own), whether an answer is recorded or not."""
        for item, completion, recorded in self._recorded(items):
            key = (self._identity(item, completion), protocol, policy)
            trial = self._trials.get(key)
            if trial is None:
                trial = self._read(item, completion, recorded, protocol, policy)
                if trial.conversation is None or trial.conversation.stop not in OPEN:
                    _keep(self._trials, key, trial)
            else:
                self._trials.move_to_end(key)
            yield trial

    def answers(self, items: Iterable[PlanItem]) -> Iterator[Trial]:
        """Each item's trial with its answer as it was recorded, which nothing has read."""
        for item, completion, recorded in self._recorded(items):
            yield self._trial(item, completion, recorded, None, self._reader(item, None), "safe")

    def last_read(self) -> Iterator[Trial]:
        """The trials that are kept, the latest first."""
        return reversed(self._trials.values())

    def frames(self, trials: Iterable[Trial], size: int) -> Iterator[Frame]:
        """Trials frames of `size` trials, all with the same columns."""
        from .evals.frames.recorded import trials_frame

        names = dict.fromkeys(name for case in self.plan.cases for name in case.metadata if name != "category")
        for some in in_batches(trials, size):
            yield trials_frame(some, metadata=names)

    def _recorded(
        self, items: Iterable[PlanItem]
    ) -> Iterator[tuple[PlanItem, Completion | None, Mapping[str, Completion]]]:
        for some in in_batches(items, FETCHED):
            recorded = self.store.answers({item.key for item in some}, run_id=self.run_id)
            yield from ((item, recorded.get(item.key), recorded) for item in some)

    def _identity(self, item: PlanItem, completion: Completion | None) -> str:
        return f"{item.key}:{item.case_id}:{item.arm['arm']}:{completion.created if completion else ''}"

    def _reader(self, item: PlanItem, protocol: str | None) -> str:
        chosen = protocol or self.arms[str(item.arm["arm"])].protocol
        return chosen if chosen == "auto" else protocol_of(chosen).id

    def _read(
        self, item: PlanItem, completion: Completion | None, recorded: Mapping[str, Completion], protocol: str | None,
        policy: Policy,
    ) -> Trial:  # fmt: skip
        reader, result = self._reader(item, protocol), None
        if completion is not None and completion.ok:
            tools = self.plan.cases[item.case_id].tools
            choice = self.arms[str(item.arm["arm"])].levels["tool_choice"]
            result = read_answer(completion.raw, reader, tools, ParseOptions(coerce=policy), choice)
        return self._trial(item, completion, recorded, result, reader, policy)

    def _trial(
        self, item: PlanItem, completion: Completion | None, recorded: Mapping[str, Completion], result: Any,
        reader: str, policy: Policy,
    ) -> Trial:  # fmt: skip
        arm = self.arms[str(item.arm["arm"])]
        conversation = self._conversation(item, completion, recorded) if arm.conversing else None
        return Trial.of(
            self.plan.cases[item.case_id], completion, result, run_id=self.run_id, model=item.model, arm=arm.name,
            prompt_protocol=arm.protocol, parse_protocol=reader, policy=policy, trial=item.trial, asker=self.asker,
            levels=arm.levels, conversation=conversation,
        )  # fmt: skip

    def _conversation(
        self, item: PlanItem, completion: Completion | None, recorded: Mapping[str, Completion]
    ) -> Conversation:
        """As much of an item's conversation as is recorded. One that is not over is read again the next time."""
        identity = self._identity(item, completion)
        known = self._conversations.get(identity)
        if known is None:
            known = drive(self.plan.flow(item, replay=True), lambda request: self._answer(request, recorded))
            if known.stop not in OPEN:
                _keep(self._conversations, identity, known)
        return known

    def _answer(self, request: Request, recorded: Mapping[str, Completion]) -> Completion | None:
        """Later questions follow from answers, so they are looked up one by one."""
        key = request.key
        return recorded.get(key) or self.store.answers([key], run_id=self.run_id).get(key)


def with_code(trials: Sequence[Trial], code: str) -> list[Trial]:
    """Those with an outcome, sub-code or problem code. Raises BadOptions for one that does not exist."""
    told = [{t.outcome, t.sub_code, *(p.code for p in (t.result.all_problems() if t.result else ()))} for t in trials]
    found = [t for t, codes in zip(trials, told, strict=True) if code in codes]
    known = {*OUTCOMES, *SUB_CODES, *CODES}
    if not found and code not in known:
        here = {c for codes in told for c in codes if c}
        expected = "one that these trials have: " + (", ".join(sorted(here)) or "none")
        raise BadOptions(
            "there is no such outcome, sub-code or problem code",
            got=code,
            expected=expected,
            hint=_near(code, known | here),
        )
    return found


def _near(name: object, known: Iterable[object]) -> str | None:
    near = difflib.get_close_matches(str(name), [str(k) for k in known], 3, 0.6)
    return f"did you mean {' or '.join(near)}?" if near else None


def in_batches(values: Iterable[_T], size: int) -> Iterator[Sequence[_T]]:
    """Lists of `size` values, the last one shorter."""
    it = iter(values)
    while batch := list(islice(it, size)):
        yield batch


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    if len(kept) > KEPT:
        kept.popitem(last=False)
