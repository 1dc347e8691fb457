"""An experiment before anything is sent: cases × models × prompt protocols × factors × trials, as requests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from .arms import FACTORS, Arm, arms_of, check_names, check_params
from .asking import Functions, Prompts, check_runnable, flow_for
from .errors import BadPlan, UnknownModel
from .evals.cases.case import Case, Cases, load_cases, pack_cases
from .flow import Conversation, Flow, Record, Runnable
from .protocols.base import Protocol
from .runner.local_provider import LOCAL_MODEL, is_local
from .runner.pool import estimate_tokens
from .runner.questions import Held, Questions
from .runner.routes import token_cost
from .runner.types import RAW_COMPLETION, Model, PlanItem, Request


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned experiment; show it before you run it.

    `items[i]` is asked by `requests[items[i].key]`, its first question; `flow(items[i])` is its whole conversation.
    """

    cases: Cases
    models: Mapping[str, Model]
    arms: tuple[Arm, ...]
    trials: int
    items: tuple[PlanItem, ...]
    requests: Questions
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    stream: bool = False
    runnable: Functions = field(default_factory=dict)
    estimate: Estimate | None = None
    prompts: Prompts = field(default_factory=Prompts, repr=False, compare=False)

    @property
    def calls(self) -> int:
        """Different first questions: what a run with an empty store sends where each arm has one turn."""
        return len(self.requests)

    @property
    def most_calls(self) -> int:
        """What a run with an empty store sends at most, where every conversation takes all its turns."""
        return self.calls + sum(int(item.arm["max_turns"]) - 1 for item in self.items)

    def arm(self, item: PlanItem) -> Arm:
        """The arm that an item belongs to."""
        return next(a for a in self.arms if a.name == item.arm["arm"])

    def flow(self, item: PlanItem, *, replay: bool = False, record: Record | None = None) -> Flow[Conversation]:
        """The conversation of an item from its beginning, to be driven; its first request is the item's.

        replay: run no function, take what is recorded. record: is told of each function that was run.
        """
        case, model = self.cases[item.case_id], self.models[item.model]
        return self._flow(case, item.model, model, self.arm(item), item.trial, replay=replay, record=record)

    def _flow(self, case: Case, alias: str, model: Model, arm: Arm, trial: int, **how: Any) -> Flow[Conversation]:
        params = {**self.params, "seed": self.seed + trial}
        return flow_for(
            case, alias, model, arm, params, trial,
            stream=self.stream, runnable=self.runnable, prompts=self.prompts, **how,
        )  # fmt: skip

    @property
    def tokens(self) -> tuple[int, int]:
        """(input, output) tokens: the input estimated, the output at most."""
        found = self.estimate or Estimate.of(self.requests.values())
        return found.given, found.made

    @property
    def cost(self) -> float | None:
        """At most this many US dollars; None where a model has no known price."""
        found = self.estimate or Estimate.of(self.requests.values())
        return found.cost

    @property
    def varied(self) -> tuple[str, ...]:
        """The factors that have more than one level."""
        levels = {f: {str(v) for a in self.arms if (v := a.levels.get(f)) is not None} for f in FACTORS}
        return tuple(f for f in FACTORS if len(levels[f]) > 1)

    def to_dict(self) -> dict[str, Any]:
        return {
            "models": {alias: m.to_dict() for alias, m in self.models.items()},
            "arms": [{"name": a.name, "prompt_protocol": a.protocol, **a.levels} for a in self.arms],
            "trials": self.trials,
            "params": dict(self.params),
            "seed": self.seed,
            "stream": self.stream,
            **({"runnable": sorted(self.runnable)} if self.runnable else {}),
            "cases": pack_cases(self.cases),
        }

    def __str__(self) -> str:
        given, made = self.tokens
        price = "unknown, give Model(price=...)" if self.cost is None else f"at most ${self.cost:.2f}"
        more = self.most_calls
        turns = f"turns:  up to {more:,} calls in all; tokens and cost are those of the first turns\n"
        return (
            f"{_n(len(self.cases), 'case')} × {_n(len(self.models), 'model')} × {_n(len(self.arms), 'arm')} × "
            f"{_n(self.trials, 'trial')} = {_n(self.calls, 'call')}\n"
            f"models: {', '.join(self.models)}\narms:   {', '.join(a.name for a in self.arms)}\n"
            f"{turns if more > self.calls else ''}"
            f"tokens: about {given:,} in, at most {made:,} out\ncost:   {price}"
        )

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        rows = "".join(
            f'<tr><td style="text-align:left">{escape(k)}</td><td style="text-align:left">{escape(v)}</td></tr>'
            for k, v in (line.split(":", 1) for line in str(self).splitlines()[1:])
        )
        head = escape(str(self).splitlines()[0])
        return {"text/plain": str(self), "text/html": f"<div><b>{head}</b><table>{rows}</table></div>"}


@dataclass(slots=True)
class Estimate:
    """What requests take: tokens given, tokens made at most, US dollars at most (None: a price is not known)."""

    given: int = 0
    made: int = 0
    cost: float | None = 0.0

    @classmethod
    def of(cls, requests: Iterable[Request]) -> Estimate:
        found = cls()
        for request in requests:
            found.add(request)
        return found

    def add(self, request: Request) -> None:
        given, made = estimate_tokens(request)
        cost = token_cost(request.model, given, made)
        self.given += given
        self.made += made
        self.cost = None if self.cost is None or cost is None else self.cost + cost


class PlannedRequests(Questions):
    """The first question of each conversation of a plan, made anew each time: a plan of 100,000 holds none."""

    def __init__(self, plan: Plan, first: Mapping[str, PlanItem]) -> None:
        self._plan = plan
        self._first = first

    def __getitem__(self, key: str) -> Request:
        return next(self._plan.flow(self._first[key]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def __contains__(self, key: object) -> bool:
        return key in self._first

    def route(self, key: str) -> tuple[str, Model]:
        alias = self._first[key].model
        return alias, self._plan.models[alias]


def _n(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def make_plan(
    cases: Any,
    models: Mapping[str, Model] | Model | str,
    protocols: Sequence[str | Protocol] | str | Protocol,
    *,
    trials: int = 1,
    seed: int = 0,
    stream: bool = False,
    runnable: Runnable | None = None,
    **settings: Any,
) -> Plan:
    """Every request of an experiment, in an order that leaves the arms balanced wherever it stops.

    cases: Cases or what `load_cases` takes. models: {alias: Model}. settings: the factors of `FACTORS`, each a value
    or a list of levels, and sampling parameters (max_tokens, top_p, …: `arms.PARAMETERS`, and those that a model's
    `params` name) as they are sent; what only an endpoint knows goes into `extra_body`. A seed is sent as
    `seed + trial`. runnable: tools as functions by name, for arms whose max_turns is above 1; what they give is
    recorded with the answer that called them. Raises BadPlan, UnknownModel, UnknownProtocol or BadCase.
    """
    chosen = cases if isinstance(cases, Cases) else load_cases(cases)
    if len(chosen) == 0:
        raise BadPlan("there are no cases to plan", hint="check the filter or the sample size")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise BadPlan("trials is how often each case is asked", got=trials, expected="1 or more")
    named = model_map(models)
    check_names(settings, (name for m in named.values() for name in m.params or {}))
    arms = arms_of(protocols, settings)
    params = {k: v for k, v in settings.items() if k not in FACTORS}
    for given in (params, *(m.params or {} for m in named.values())):
        check_params(given)
    bare = Plan(chosen, named, arms, trials, (), Held(()), params, seed, stream, check_runnable(runnable))
    items: list[PlanItem] = []
    first: dict[str, PlanItem] = {}
    estimate = Estimate()
    columns = {arm.name: _columns(arm) for arm in arms}
    order = random.Random(seed)  # noqa: S311 - an order, not a secret
    for trial, case in itertools.product(range(trials), chosen):
        cells = list(itertools.product(named.items(), arms))
        order.shuffle(cells)
        for (alias, model), arm in cells:
            request = _askable(next(bare._flow(case, alias, model, arm, trial)))
            item = PlanItem(case.id, alias, request.key, trial, columns[arm.name])
            items.append(item)
            if item.key not in first:
                first[item.key] = item
                estimate.add(request)
    return replace(bare, items=tuple(items), requests=PlannedRequests(bare, first), estimate=estimate)


def plan_one(
    case: Case,
    alias: str,
    model: Model,
    arm: Arm,
    params: Mapping[str, Any],
    *,
    trial: int = 0,
    seed: int = 0,
    stream: bool = False,
    runnable: Functions | None = None,
) -> Plan:
    """The plan that asks one case once, as number `trial` of one arm. Raises BadPlan."""
    check_params(params)
    bare = Plan(Cases([case]), {alias: model}, (arm,), 1, (), Held(()), params, seed, stream, runnable or {})
    request = _askable(next(bare._flow(case, alias, model, arm, trial)))
    item = PlanItem(case.id, alias, request.key, trial, _columns(arm))
    return replace(bare, items=(item,), requests=Held([request]))


def _askable(request: Request) -> Request:
    """The request; raises BadPlan for one that a raw-completion endpoint would take for something else."""
    if request.model.name.startswith(RAW_COMPLETION) and (len(request.messages) > 1 or request.tools):
        raise BadPlan(
            "a raw-completion endpoint takes one prompt: litellm sends each message as a prompt of its own",
            got=f"{len(request.messages)} messages{' and tools' if request.tools else ''}",
            expected="cases without tools, whose input is the whole prompt",
            hint="write the prompt with the model's chat template; see docs/capture.md",
        )
    return request


def _columns(arm: Arm) -> dict[str, Any]:
    return {"arm": arm.name, "prompt_protocol": arm.protocol, **arm.levels}


def model_map(models: Any) -> dict[str, Model]:
    """{alias: Model} from a mapping, a list, one Model or a litellm model string; raises UnknownModel."""
    if isinstance(models, (Model, str)):
        models = [models]
    if isinstance(models, Mapping):
        pairs = list(models.items())
    elif isinstance(models, Iterable):
        pairs = [(m.name if isinstance(m, Model) else m, m) for m in models]
    else:
        raise UnknownModel("these are no models", got=models, expected="{alias: tp.Model(...)}")
    named: dict[str, Model] = {}
    for alias, model in pairs:
        if isinstance(model, str):
            model = Model(model)
        if not isinstance(alias, str) or not alias or not isinstance(model, Model):
            raise UnknownModel("this is no model", got=model, expected="a tp.Model or a litellm model string")
        if is_local(model.name) and model.name != LOCAL_MODEL:
            raise UnknownModel("there is no embedded model of this name", got=model.name, expected=LOCAL_MODEL,
                               hint=f"did you mean {LOCAL_MODEL}?")  # fmt: skip
        named[alias] = model
    if not named:
        raise BadPlan("there are no models to plan", expected="{alias: tp.Model(...)}")
    return named
