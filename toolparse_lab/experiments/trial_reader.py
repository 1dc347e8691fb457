"""The trials of a recorded run, read in batches, so that a run may be of any length."""

# How it works. Items are chosen before anything is read. Their answers are fetched a few hundred at
# a time, each is parsed, and the trial is kept until `KEPT` newer ones have pushed it out. A trial
# is kept under everything that may change it: the answer, the protocol and the policy. The trial of
# a conversation that is still open is never kept, since later answers belong to it.

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from ..core.errors import BadOptions, UnknownName, near
from ..core.rules import CODES
from ..core.types import ParseOptions, ParseResult, Policy
from ..entry.foreign.protocol import AnyProtocol
from ..evals.cases.case import Case
from ..evals.cases.collection import PackedCases
from ..evals.scoring.outcomes import OUTCOMES, SUB_CODES
from ..evals.scoring.trial import Remarks, Trial, TrialProtocols
from ..formats.auto import AUTO
from ..formats.json.openai_json import OPENAI_JSON
from ..middleware.flow import (
    OPEN,
    Conversation,
    answer_reader,
    asked_of,
    drive,
    is_unlifted,
    with_recorded,
)
from ..runner.exchange.types import Completion, PlanItem, Request
from ..runner.store.store import Store
from .plan import Plan
from .stored_run import StoredItems

if TYPE_CHECKING:
    from ..evals.frames.recorded import Frame

KEPT = 5000
"""Trials that a run keeps in memory; the rest is read again when it is needed again."""
_READERS = 256  # ways to read that are kept, each for one set of tools
FETCHED = 500
"""Answers in memory at once while trials are gone through."""
FILTERS: Mapping[str, Callable[[PlanItem, Case], Any]] = {
    "case_id": lambda item, case: item.case_id,
    "model": lambda item, case: item.model,
    "arm": lambda item, case: item.arm["arm"],
    "prompt_protocol": lambda item, case: item.arm["prompt_protocol"],
    "trial": lambda item, case: item.trial,
    "category": lambda item, case: case.category,
}
"""The columns by which trials can be chosen before they are read."""
_ARMS = ("model", "arm", "prompt_protocol")

_T = TypeVar("_T")
_Key: TypeAlias = tuple[str, AnyProtocol | None, Policy]


class TrialReader:
    """Reads one run's items, and keeps the trials and conversations it read last."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        plan: Plan,
        asker: Callable[..., Trial] | None = None,
        metadata: Sequence[str] | None = None,
    ) -> None:
        # metadata: the names of the run's, where the plan holds a part of its cases.
        self.store = store
        self.run_id = run_id
        self.plan = plan
        self.asker = asker
        self.arms = {arm.name: arm for arm in plan.arms}
        self._metadata = metadata
        self._trials: OrderedDict[_Key, Trial] = OrderedDict()
        self._readers: OrderedDict[Any, tuple[Callable[..., ParseResult], Any, Any]] = OrderedDict()
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()

    def items(self, only: Mapping[str, Any]) -> list[PlanItem]:
        """Return items in the order of the plan's models and arms: they were asked in random order.

        only: values, or lists of them, by the names of `FILTERS`. Raises BadOptions for other
        names, and for a value that no item has.
        """
        items, cases = list(self.plan.items), self.plan.cases
        for name, choice in only.items():
            if name not in FILTERS:
                raise UnknownName(
                    "trials cannot be chosen by this",
                    got=name,
                    expected=", ".join(FILTERS),
                    hint=near(name, FILTERS) or "filter by anything else: where=lambda trial: …",
                    code="unknown-column",
                )
            value_of = FILTERS[name]
            values = {value_of(item, cases[item.case_id]) for item in self.plan.items}
            several = isinstance(choice, (list, tuple, set, frozenset))
            choices = choice if several else [choice]
            for one in choices:
                if one not in values:
                    raise UnknownName(
                        f"no trial of this run has this {name}",
                        got=one,
                        expected=", ".join(sorted(map(str, values))[:20]),
                        hint=near(one, values),
                        code="unknown-arm" if name in _ARMS else None,
                    )
            items = [item for item in items if value_of(item, cases[item.case_id]) in choices]

        arm_places = {name: place for place, name in enumerate(self.arms)}
        model_places = {alias: place for place, alias in enumerate(self.plan.models)}
        return sorted(
            items, key=lambda item: (model_places[item.model], arm_places[str(item.arm["arm"])])
        )

    def forget_plan(self) -> None:
        """Free the items and cases of a recorded run, which are read again when they are needed."""
        for part in (self.plan.items, self.plan.cases):
            if isinstance(part, (StoredItems, PackedCases)):
                part.forget()

    def item(self, case_id: str, model: str, arm: str, trial: int) -> PlanItem:
        """Return one item of the run without going through all of them."""
        found = [
            item
            for item in self.store.items(self.run_id, case_id=case_id)
            if (item.model, item.arm["arm"], item.trial) == (model, arm, trial)
        ]
        return found[0]

    def trials(
        self,
        items: Iterable[PlanItem],
        protocol: AnyProtocol | None,
        policy: Policy,
        *,
        remarked: bool = True,
    ) -> Iterator[Trial]:
        """Yield each item's trial, read by `protocol` (None: its own) under a policy.

        An item without a recorded answer has a trial as well, one without a result. remarked: with
        what people have said of it.
        """
        # One question for all of them: remarks are few, and the newest hold whatever is in memory.
        remarks = self.store.remarks(self.run_id) if remarked else {}
        for item, completion, recorded in self._recorded(items):
            key = (self._identity(item, completion), protocol, policy)
            trial = self._trials.get(key)
            if trial is None:
                trial = self._read(item, completion, recorded, protocol, policy)
            if remarked:
                trial = self._remarked(trial, remarks)
            conversation = trial.conversation
            if conversation is None or conversation.stop not in OPEN:
                _keep(self._trials, key, trial)
            yield trial

    def _remarked(self, trial: Trial, remarks: Mapping[str, Mapping[str, str]]) -> Trial:
        own = Remarks(**remarks.get(trial.trial_id, {}), keep=self._keep)
        has_them = trial.remarks.keep is not None and trial.remarks == own
        return trial if has_them else replace(trial, remarks=own)

    def _keep(self, trial_id: str, parts: Mapping[str, str]) -> None:
        self.store.record_remark(self.run_id, trial_id, parts)

    def answers(self, items: Iterable[PlanItem]) -> Iterator[Trial]:
        """Yield each item's trial with its recorded answer, which is not parsed."""
        for item, completion, recorded in self._recorded(items):
            reader = self._reader(item, None, completion)
            yield self._trial(item, completion, recorded, None, reader, "safe")

    def last_read(self) -> Iterator[Trial]:
        """Return the trials that stay, the latest first."""
        remarks = self.store.remarks(self.run_id)
        for trial in reversed(self._trials.values()):
            yield self._remarked(trial, remarks)

    def frame(self, policy: Policy) -> Frame:
        """Return the trials frame of all items, each read by its own protocol."""
        from ..evals.frames.recorded import trials_frame  # pandas takes a second to import

        return trials_frame(self.trials(self.items({}), None, policy))

    def frames(self, trials: Iterable[Trial], size: int) -> Iterator[Frame]:
        """Yield trials frames of `size` trials, all with the same columns."""
        for batch in in_batches(trials, size):
            yield self.trials_frame(batch)

    def trials_frame(self, trials: Iterable[Trial]) -> Frame:
        """Return the trials frame, with a column for all metadata of the run's cases."""
        from ..evals.frames.recorded import trials_frame  # pandas takes a second to import

        return trials_frame(trials, metadata=self.metadata())

    def metadata(self) -> Sequence[str]:
        """Return the names of the metadata of the run's cases, in the order in which they come."""
        # All cases count: a batch whose own cases lack a member of metadata has its column, too.
        if self._metadata is None:
            names = dict.fromkeys(name for case in self.plan.cases for name in case.metadata)
            names.pop("category", None)  # a column of every frame already
            self._metadata = list(names)
        return self._metadata

    def _recorded(
        self, items: Iterable[PlanItem]
    ) -> Iterator[tuple[PlanItem, Completion | None, Mapping[str, Completion]]]:
        for batch in in_batches(items, FETCHED):
            recorded = self.store.answers({item.key for item in batch}, run_id=self.run_id)
            for item in batch:
                yield item, recorded.get(item.key), recorded

    def _identity(self, item: PlanItem, completion: Completion | None) -> str:
        # Asking again makes a new one.
        created = completion.created if completion else ""
        return f"{item.key}:{item.case_id}:{item.arm['arm']}:{created}"

    def _reader(
        self, item: PlanItem, protocol: AnyProtocol | None, completion: Completion | None
    ) -> AnyProtocol:
        # By default the protocol of its arm. A call that a server left in its text was written in
        # nobody knows which format.
        reader = protocol or self.arms[str(item.arm["arm"])].reader
        if reader is OPENAI_JSON and completion is not None:
            return AUTO if is_unlifted(completion) else reader
        return reader

    def _read(
        self,
        item: PlanItem,
        completion: Completion | None,
        recorded: Mapping[str, Completion],
        protocol: AnyProtocol | None,
        policy: Policy,
    ) -> Trial:
        reader, result = self._reader(item, protocol, completion), None
        if completion is not None and completion.ok:
            case = self.plan.cases[item.case_id]
            read = self._read_by(reader, case, item.arm["arm"], policy, completion)
            question = asked_of(completion, case.input)
            result = read(completion.raw, question, completion.reasoning or "")
            result = with_recorded(result, completion)
        return self._trial(item, completion, recorded, result, reader, policy)

    def _read_by(
        self, reader: AnyProtocol, case: Case, arm: Any, policy: Policy, completion: Completion
    ) -> Callable[..., ParseResult]:
        # One for all answers to the same tools, which are known by their place in memory.
        unlifted = is_unlifted(completion)
        key = (id(case.tools), id(reader), arm, policy, completion.finish_reason, unlifted)
        known = self._readers.get(key)
        if known is None:
            choice = self.arms[str(arm)].levels["tool_choice"]
            options, reason = ParseOptions(coerce=policy), completion.finish_reason
            read = answer_reader(reader, case.tools, options, choice, reason, unlifted)
            known = self._readers[key] = read, case.tools, reader  # whose places stay taken
            if len(self._readers) > _READERS:
                self._readers.popitem(last=False)
        return known[0]

    def _trial(
        self,
        item: PlanItem,
        completion: Completion | None,
        recorded: Mapping[str, Completion],
        result: Any,
        reader: AnyProtocol,
        policy: Policy,
    ) -> Trial:
        arm = self.arms[str(item.arm["arm"])]
        conversation = self._conversation(item, completion, recorded) if arm.conversing else None
        return Trial.of(
            self.plan.cases[item.case_id],
            completion,
            result,
            run_id=self.run_id,
            model=item.model,
            arm=arm.name,
            prompt_protocol=arm.prompt_protocol,
            parse_protocol=reader.id,
            protocols=TrialProtocols(None if arm.native else arm.protocol, reader),
            policy=policy,
            trial=item.trial,
            asker=self.asker,
            levels=arm.levels,
            conversation=conversation,
        )

    def _conversation(
        self, item: PlanItem, completion: Completion | None, recorded: Mapping[str, Completion]
    ) -> Conversation:
        # As much as is recorded. One that is not over is read again the next time.
        identity = self._identity(item, completion)
        conversation = self._conversations.get(identity)
        if conversation is None:
            # No function is run: the recorded results are sent in their place.
            flow = self.plan.flow(item, replay=True)

            def answer(request: Request) -> Completion | None:
                # Later questions follow from answers, so they are looked up one by one.
                key = request.key
                return recorded.get(key) or self.store.answers([key], run_id=self.run_id).get(key)

            conversation = drive(flow, answer)
            if conversation.stop not in OPEN:
                _keep(self._conversations, identity, conversation)
        return conversation


class UnreadTrials(Sequence[Trial]):
    """Trials of chosen items, each of which is parsed when somebody looks at it."""

    def __init__(self, reader: TrialReader, items: Sequence[PlanItem], policy: Policy) -> None:
        self._reader = reader
        self._items = items
        self._policy: Policy = policy

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> UnreadTrials: ...
    def __getitem__(self, index: int | slice) -> Trial | UnreadTrials:
        if isinstance(index, slice):
            return UnreadTrials(self._reader, self._items[index], self._policy)
        return next(self._reader.trials([self._items[index]], None, self._policy))

    def __iter__(self) -> Iterator[Trial]:
        return self._reader.trials(self._items, None, self._policy)


def with_code(trials: Iterable[Trial], code: str) -> list[Trial]:
    """Return the trials with an outcome, sub-code or problem code.

    Raises BadOptions for a code that does not exist and that none of these trials has.
    """
    here: set[str] = set()
    matches = []
    for trial in trials:
        problems = trial.result.all_problems() if trial.result else ()
        codes = {trial.outcome, trial.sub_code, *(problem.code for problem in problems)}
        here |= codes
        if code in codes:
            matches.append(trial)
    valid = {*OUTCOMES, *SUB_CODES, *CODES}
    if not matches and code not in valid:
        here.discard("")  # a success has no sub-code
        raise BadOptions(
            "there is no such outcome, sub-code or problem code",
            got=code,
            expected="one that these trials have: " + (", ".join(sorted(here)) or "none"),
            hint=near(code, valid | here),
        )
    return matches


def in_batches(values: Iterable[_T], size: int) -> Iterator[Sequence[_T]]:
    """Yield lists of `size` values, the last one shorter."""
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def _keep(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > KEPT:
        cache.popitem(last=False)
