"""An experiment before anything is sent: cases × models × prompt protocols × factors × trials, as requests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from .arms import FACTORS, Arm, arms_of
from .asking import check_runnable, flow_for
from .errors import BadPlan, UnknownModel
from .evals.cases import Case, Cases, load_cases
from .flow import Conversation, Flow, Runnable
from .protocols.base import Protocol
from .runner.pool import estimate_cost, estimate_tokens
from .runner.types import Model, PlanItem, Request


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
    requests: Mapping[str, Request]
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    stream: bool = False
    runnable: Runnable = field(default_factory=dict)

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

    def flow(self, item: PlanItem) -> Flow[Conversation]:
        """The conversation of an item from its beginning, to be driven; its first request is the item's."""
        case, model = self.cases[item.case_id], self.models[item.model]
        return self._flow(case, item.model, model, self.arm(item), item.trial)

    def _flow(self, case: Case, alias: str, model: Model, arm: Arm, trial: int) -> Flow[Conversation]:
        params = {**self.params, "seed": self.seed + trial}
        return flow_for(case, alias, model, arm, params, trial, stream=self.stream, runnable=self.runnable)

    @property
    def tokens(self) -> tuple[int, int]:
        """(input, output) tokens: the input estimated, the output at most."""
        pairs = [estimate_tokens(r) for r in self.requests.values()]
        return sum(a for a, _ in pairs), sum(b for _, b in pairs)

    @property
    def cost(self) -> float | None:
        """At most this many US dollars; None where a model has no known price."""
        costs = [estimate_cost(r) for r in self.requests.values()]
        return None if any(c is None for c in costs) else sum(c for c in costs if c is not None)

    @property
    def varied(self) -> tuple[str, ...]:
        """The factors that have more than one level."""
        return tuple(f for f in FACTORS if len({str(a.levels[f]) for a in self.arms}) > 1)

    def to_dict(self) -> dict[str, Any]:
        return {
            "models": {alias: m.to_dict() for alias, m in self.models.items()},
            "arms": [{"name": a.name, "prompt_protocol": a.protocol, **a.levels} for a in self.arms],
            "trials": self.trials,
            "params": dict(self.params),
            **({"runnable": sorted(self.runnable)} if self.runnable else {}),
            "cases": [c.to_dict() for c in self.cases],
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
    or a list of levels, and any other sampling parameter (max_tokens, top_p, …) as it is sent. A seed is sent as
    `seed + trial`. runnable: tools as functions by name, for arms whose max_turns is above 1; what they give must
    depend on their arguments alone, since a replay runs them again. Raises BadPlan, UnknownModel, UnknownProtocol or
    BadCase.
    """
    chosen = cases if isinstance(cases, Cases) else load_cases(cases)
    if len(chosen) == 0:
        raise BadPlan("there are no cases to plan", hint="check the filter or the sample size")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise BadPlan("trials is how often each case is asked", got=trials, expected="1 or more")
    named = model_map(models)
    arms = arms_of(protocols, settings)
    params = {k: v for k, v in settings.items() if k not in FACTORS}
    bare = Plan(chosen, named, arms, trials, (), {}, params, seed, stream, check_runnable(runnable))
    items: list[PlanItem] = []
    requests: dict[str, Request] = {}
    order = random.Random(seed)  # noqa: S311 - an order, not a secret
    for trial, case in itertools.product(range(trials), chosen):
        cells = list(itertools.product(named.items(), arms))
        order.shuffle(cells)
        for (alias, model), arm in cells:
            request = next(bare._flow(case, alias, model, arm, trial))
            key = request.key
            requests.setdefault(key, request)
            levels = {"arm": arm.name, "prompt_protocol": arm.protocol, **arm.levels}
            items.append(PlanItem(case.id, alias, key, trial, levels))
    return replace(bare, items=tuple(items), requests=requests)


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
        named[alias] = model
    if not named:
        raise BadPlan("there are no models to plan", expected="{alias: tp.Model(...)}")
    return named
