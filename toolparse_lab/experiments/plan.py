"""An experiment before anything is sent, as requests.

A plan is cases × models × prompt protocols × factors × trials.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from html import escape
from types import MappingProxyType
from typing import Any, TypeAlias, Unpack

from ..core.errors import BadOptions, BadPlan
from ..core.values.printable import counted, printable
from ..core.values.wording import money
from ..evals.cases.case import Case
from ..evals.cases.collection import Cases, pack_cases
from ..evals.cases.loading import CasesLike, load_cases
from ..evals.engines import is_count
from ..formats.like import ProtocolLike
from ..middleware.drive import relay
from ..middleware.flow import Conversation, Flow, Record, Runnable
from ..middleware.flow.factors import PlanSettings
from ..runner.exchange.types import Completion, Held, Model, PlanItem, Questions, Request
from ..runner.routes import estimate_tokens, token_cost
from .arms import (
    FACTORS,
    NATIVE,
    Arm,
    arm_of,
    arms_of,
    check_names,
    check_params,
    later_questions,
    protocol_records,
)
from .case_flow import Functions, PromptIssue, Prompts, check_runnable, flow_for
from .models import ChatPrompts, Fitting, ModelsLike, OwnFormats, model_map, own_formats

MOST_ITEMS = 10_000_000
"""The most questions of one plan: about a kilobyte of memory each."""
_MOST_MADE = 256  # questions of a plan that are kept as they were made

PlanProtocols: TypeAlias = "ProtocolLike | Iterable[ProtocolLike | None] | None"
"""Prompt protocols: one or several; "native" or None sends the tools as such, "model" stands for
the format of each model."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned experiment.

    Show it before you run it.

    `items[i]` is asked by `requests[items[i].key]`, its first question. `flow(items[i])` is its
    whole conversation.
    """

    cases: Cases
    models: Mapping[str, Model]
    arms: tuple[Arm, ...]
    trials: int
    items: Sequence[PlanItem]
    requests: Questions
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = 0
    stream: bool = False
    runnable: Functions = field(default_factory=dict)
    estimate: Estimate | None = None
    prompts: Prompts = field(default_factory=Prompts, repr=False, compare=False)
    formats: OwnFormats = field(default_factory=OwnFormats)
    # None: of a run whose version sent every model the same.
    fitting: Fitting | None = field(default_factory=Fitting, repr=False, compare=False)
    chat_prompts: ChatPrompts = field(
        default_factory=lambda: ChatPrompts({}), repr=False, compare=False
    )
    # The column that holds the answers of one conversation together, "" for none.
    cluster: str = field(default="", repr=False, compare=False)
    # Parts and factors of a stored plan that this version does not know, and does without.
    unknown: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def cells(self) -> list[tuple[tuple[str, Model], Arm]]:
        """Return each model, by its alias, with each arm that it is asked in."""
        pairs = itertools.product(self.models.items(), self.arms)
        return [(model, arm) for model, arm in pairs if self.formats.has(model[0], arm)]

    @property
    def calls(self) -> int:
        """The number of different first questions.

        A run with an empty store sends as many where each arm has one turn.
        """
        return len(self.requests)

    @property
    def most_calls(self) -> int:
        """The calls of a run with an empty store if every conversation takes all its turns."""
        return self.calls + sum(later_questions(item.arm) for item in self.items)

    def arm(self, item: PlanItem) -> Arm:
        """Return the arm that an item belongs to."""
        return next(arm for arm in self.arms if arm.name == item.arm["arm"])

    def flow(
        self, item: PlanItem, *, replay: bool = False, record: Record | None = None
    ) -> Flow[Conversation]:
        """Return the conversation of an item from its beginning, to be driven.

        Its first request is the item's. replay: run no function, take the recorded results.
        record: takes each function that was run.
        """
        case, model = self.cases[item.case_id], self.models[item.model]
        return self._flow(
            case, item.model, model, self.arm(item), item.trial, replay=replay, record=record
        )

    def _flow(
        self, case: Case, alias: str, model: Model, arm: Arm, trial: int, **options: Any
    ) -> Flow[Conversation]:
        # The cell need not be an item yet.
        flow = self._as_planned(case, alias, model, arm, trial, **options)
        return _changed(flow, self.chat_prompts.written)

    def _as_planned(
        self, case: Case, alias: str, model: Model, arm: Arm, trial: int, **options: Any
    ) -> Flow[Conversation]:
        # Trials differ by their seed, so that a provider does not answer all of them alike.
        seed = {} if self.seed is None else {"seed": self.seed + trial}
        options |= {"stream": self.stream, "runnable": self.runnable, "prompts": self.prompts}
        flow = flow_for(case, alias, model, arm, {**self.params, **seed}, trial, **options)
        return flow if self.fitting is None else _changed(flow, self.fitting.fitted)

    @property
    def tokens(self) -> tuple[int, int]:
        """(input, output) tokens: the input estimated, the output at most."""
        estimate = self._estimate()
        return estimate.input_tokens, estimate.output_tokens

    @property
    def cost(self) -> float | None:
        """At most this many US dollars, or None if a model has no known price."""
        return self._estimate().cost

    @property
    def prompt_issues(self) -> tuple[PromptIssue, ...]:
        """The prompt builders that failed. The built-in prompt was sent in their place."""
        return self.prompts.issues

    def _estimate(self) -> Estimate:
        # Made again for a plan from a store, which records none.
        return self.estimate or Estimate.of(self.requests.values())

    @property
    def varied(self) -> tuple[str, ...]:
        """The factors that have more than one level."""
        varied = []
        for factor in FACTORS:
            levels = [arm.levels.get(factor) for arm in self.arms]
            # As text: some cannot be hashed.
            if len({str(level) for level in levels if level is not None}) > 1:
                varied.append(factor)
        return tuple(varied)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as it is recorded with a run. `stored_plan` reads it again."""
        record: dict[str, Any] = {
            "models": {alias: model.to_dict() for alias, model in self.models.items()},
            "arms": [
                {"name": arm.name, "prompt_protocol": arm.prompt_protocol, **arm.levels}
                for arm in self.arms
            ],
            "trials": self.trials,
            "params": dict(self.params),
            "seed": self.seed,
            "stream": self.stream,
        }
        # Functions cannot be recorded; their names show what has to be handed in again.
        if self.runnable:
            record["runnable"] = sorted(self.runnable)
        if protocols := protocol_records(self.arms):
            record["protocols"] = protocols
        prompts = (arm.own_prompt for arm in self.arms)
        if wordings := {prompt.name: prompt.record() for prompt in prompts if prompt}:
            record["wordings"] = wordings
        if self.fitting is not None:
            record["left_out"] = self.fitting.to_list()
        if templates := self.chat_prompts.to_dict():
            record["chat_templates"] = templates
        if self.prompt_issues:
            record["prompt_issues"] = [asdict(issue) for issue in self.prompt_issues]
        record["cases"] = pack_cases(self.cases)
        return record

    def __str__(self) -> str:
        return "\n".join([self._size(), *self._details()])

    def _size(self) -> str:
        dimensions = [
            counted(len(self.cases), "case"),
            counted(len(self.models), "model"),
            counted(len(self.arms), "arm"),
            counted(self.trials, "trial"),
        ]
        # Models with formats of their own are not asked in the arms of others.
        equals = ", each model in its own format:" if self.formats.by_alias else " ="
        return f"{' × '.join(dimensions)}{equals} {counted(self.calls, 'call')}"

    def _details(self) -> list[str]:
        input_tokens, output_tokens = self.tokens
        cost = self.cost
        price = "unknown, give Model(price=...)" if cost is None else f"at most {money(cost)}"

        lines = [
            f"models: {', '.join(self.models)}",
            f"arms:   {', '.join(arm.name for arm in self.arms)}",
            *self.formats.lines(),
        ]
        if self.most_calls > self.calls:
            lines.append(
                f"turns:  up to {self.most_calls:,} calls in all; "
                "tokens and cost are those of the first turns"
            )
        if self.fitting is not None:
            lines += self.fitting.lines(self.models)
        if issues := self.prompt_issues:
            first = f"{issues[0].case}, {issues[0].arm}: {issues[0].error}"
            failures = counted(len(issues), "prompt")
            lines.append(f"issues: {failures} of a builder failed, and are the built-in ({first})")
        lines.append(f"tokens: about {input_tokens:,} in, at most {output_tokens:,} out")
        lines.append(f"cost:   {price}")
        return [printable(line) for line in lines]

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        cell, rows = '<td style="text-align:left">', []
        for line in self._details():
            label, value = line.split(":", 1)
            rows.append(f"<tr>{cell}{escape(label)}</td>{cell}{escape(value)}</td></tr>")
        table = f"<table>{''.join(rows)}</table>"
        html = f"<div><b>{escape(self._size())}</b>{table}</div>"
        return {"text/plain": str(self), "text/html": html}


@dataclass(slots=True)
class Estimate:
    """The tokens and the price of requests.

    input_tokens: estimated. output_tokens: at most. cost: at most, in US dollars, or None if a
    price is unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0

    @classmethod
    def of(cls, requests: Iterable[Request]) -> Estimate:
        """Return the estimate of all these requests together."""
        estimate = cls()
        for request in requests:
            estimate.add(request)
        return estimate

    def add(self, request: Request) -> None:
        """Add one request. One without a price makes the cost of all unknown."""
        input_tokens, output_tokens = estimate_tokens(request)
        cost = token_cost(request.model, input_tokens, output_tokens)
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.cost = None if self.cost is None or cost is None else self.cost + cost


class PlannedRequests(Questions):
    """The first questions of conversations by key.

    A question is made again each time, so that a plan of 100,000 does not hold them all. models:
    by alias. make: the question of an item. made: those that are kept, by key.
    """

    def __init__(
        self,
        items: Sequence[PlanItem],
        models: Mapping[str, Model],
        make: Callable[[PlanItem], Request],
        made: Mapping[str, Request] = MappingProxyType({}),
    ) -> None:
        self._of = items
        self._models = models
        self._make = make
        self._made = made

    @cached_property
    def _items(self) -> Mapping[str, PlanItem]:
        # Several may ask the same; the first of them stands for it.
        return {item.key: item for item in reversed(self._of)}

    def __getitem__(self, key: str) -> Request:
        return self._made.get(key) or self._make(self._items[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def route(self, key: str) -> tuple[str, Model]:
        """Return alias and model of a question, without making the question."""
        alias = self._items[key].model
        return alias, self._models[alias]


def make_plan(
    cases: CasesLike,
    models: ModelsLike,
    protocols: PlanProtocols,
    *,
    trials: int = 1,
    seed: int | None = 0,
    stream: bool = False,
    runnable: Runnable | None = None,
    **settings: Unpack[PlanSettings],
) -> Plan:
    """Return every request of an experiment, in an order that is balanced wherever it stops.

    cases: Cases or the inputs of `load_cases`. models: {alias: Model}. protocols: 'model' among
    them asks each model in the format it writes by its training. settings: the factors of
    `FACTORS`, each a value or a list of levels, and sampling parameters (max_tokens, top_p, …:
    `arms.PARAMETERS`, and those that a model's `params` name) as they are sent. A fact that only an
    endpoint knows goes into `extra_body`. None sends no such parameter. A model's own params go
    before these, and what a model does not take it is not sent; the plan says so. A seed is sent as
    `seed + trial`, None sends none. runnable: tools as
    functions by name, for arms whose max_turns is above 1. Their results are recorded with the
    answer that called them. Raises BadPlan, UnknownName, UnknownProtocol or BadCase.
    """
    # In the order of the arguments, so that of several mistakes the first is reported.
    chosen = cases if isinstance(cases, Cases) else load_cases(cases)
    if len(chosen) == 0:
        raise BadPlan("there are no cases to plan", hint="check the filter or the sample size")
    if not is_count(trials):
        raise BadPlan("trials is how often each case is asked", got=trials, expected="1 or more")
    if not isinstance(stream, bool):
        raise BadPlan(
            "a whole plan is asked in streams, or none of it", got=stream, expected="bool"
        )
    by_alias = model_map(models)
    named, formats = own_formats(by_alias, protocols)
    own = [model.params or {} for model in by_alias.values()]
    check_names(settings, (name for params in own for name in params))
    arms = arms_of(named, settings)
    params = {name: value for name, value in settings.items() if name not in FACTORS}
    for values in (params, *own):
        check_params(values)
    # More questions than memory can hold.
    size = len(chosen) * len(by_alias) * len(arms) * trials
    if size > MOST_ITEMS:
        raise BadPlan(
            "this plan is too large",
            got=f"cases × models × arms × trials = {size:,}",
            expected=f"at most {MOST_ITEMS:,}",
            hint="make several plans of it",
        )
    functions = check_runnable(runnable)

    # A plan without items makes the conversations whose first requests become the items.
    bare = Plan(chosen, by_alias, arms, trials, (), Held(()), params, seed, stream, functions)
    return _with_items(replace(bare, formats=formats, chat_prompts=ChatPrompts.of(by_alias)))


def _with_items(bare: Plan) -> Plan:
    # The cells of one case, its models × arms, are shuffled: whatever slows down or fails in the
    # course of a run then meets all arms alike, and a run that stops early leaves them balanced.
    items: list[PlanItem] = []
    first: dict[str, PlanItem] = {}
    made: dict[str, Request] = {}
    estimate = Estimate()
    columns = {arm.name: _columns(arm) for arm in bare.arms}
    order = random.Random(bare.seed or 0)  # noqa: S311 - an order, not a secret
    bare.chat_prompts.prepare(
        next(bare._as_planned(case, alias, model, arm, 0))
        for case in bare.cases
        for (alias, model), arm in bare.cells()
        if alias in bare.chat_prompts.templates
    )

    if bare.fitting is not None and "reasoning_effort" in bare.varied:
        # What one effort does not take is sent with none of them, whichever is asked first.
        for (alias, model), arm in bare.cells():
            next(bare._flow(next(iter(bare.cases)), alias, model, arm, 0))
        bare.fitting.settle()

    for trial, case in itertools.product(range(bare.trials), bare.cases):
        cells = bare.cells()
        order.shuffle(cells)
        for (alias, model), arm in cells:
            request = next(bare._flow(case, alias, model, arm, trial))
            item = PlanItem(case.id, alias, request.key, trial, columns[arm.name])
            items.append(item)
            # Arms may share a question; it is asked and paid for once.
            if item.key not in first:
                first[item.key] = item
                estimate.add(request)
                if len(made) < _MOST_MADE:
                    made[item.key] = request

    requests = PlannedRequests(
        tuple(first.values()), bare.models, lambda item: next(bare.flow(item)), made
    )
    return replace(bare, items=tuple(items), requests=requests, estimate=estimate)


def plan_one(
    case: Case,
    alias: str,
    model: Model,
    arm: Arm,
    params: Mapping[str, Any],
    *,
    trial: int = 0,
    seed: int | None = 0,
    stream: bool = False,
    runnable: Functions | None = None,
    typed: Iterable[str] = (),
) -> Plan:
    """Return the plan that asks one case once, as number `trial` of one arm.

    typed: names of parameters that go before the model's own. Raises BadPlan.
    """
    check_params(params)
    bare = Plan(
        Cases([case]), {alias: model}, (arm,), 1, (), Held(()), params, seed, stream, runnable or {}
    )
    bare = replace(
        bare,
        fitting=Fitting(typed=frozenset(typed)),
        chat_prompts=ChatPrompts.of(bare.models),
    )
    request = next(bare._flow(case, alias, model, arm, trial))
    item = PlanItem(case.id, alias, request.key, trial, _columns(arm))
    return replace(bare, items=(item,), requests=Held([request]))


def plan_messages_as_they_are(
    name: str,
    messages: Iterable[Mapping[str, Any]],
    alias: str,
    model: Model,
    settings: Mapping[str, Any],
) -> Plan:
    """Return the plan of one question that is not a case, such as a plan or a correction: its
    messages are sent unchanged, without tools, and recorded like any other.

    name: of the case that it is recorded as. settings: temperature, seed and sampling parameters.
    Raises BadOptions for a factor that means nothing here, and BadPlan for an unknown name.
    """
    own, allowed = model.params or (), ("temperature", "reasoning_effort")
    strange = [n for n in settings if n in FACTORS and n not in allowed and n not in own]
    if strange:
        raise BadOptions(
            "this question has no prompt of a format, so that the factor means nothing",
            got=strange[0],
            expected=f"{', '.join(allowed)}, or a sampling parameter such as max_tokens",
        )
    check_names(settings, own)
    case = Case(name, [dict(message) for message in messages])
    params = {k: v for k, v in settings.items() if k not in FACTORS and k != "seed"}
    arm = arm_of(NATIVE, settings)
    return plan_one(case, alias, model, arm, params, seed=settings.get("seed", 0), typed=settings)


def question_of(plan: Plan) -> Request:
    """Return the one question of such a plan."""
    return plan.requests[plan.items[0].key]


def _changed(flow: Flow[Conversation], change: Callable[[Request], Request]) -> Flow[Conversation]:
    def ask(request: Request) -> Flow[Completion | None]:
        return (yield change(request))

    return relay(flow, ask)


def _columns(arm: Arm) -> dict[str, Any]:
    return {"arm": arm.name, "prompt_protocol": arm.prompt_protocol, **arm.levels}
