"""An experiment before anything is sent: cases × models × prompt protocols × factors × trials, as requests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .errors import BadPlan, UnknownModel
from .evals.cases import Case, Cases, load_cases
from .prompt import build_messages, grammar_for
from .protocols.base import Protocol
from .registry import protocol_of
from .runner.pool import estimate_cost, estimate_tokens
from .runner.types import Model, PlanItem, Request
from .toolspec import ToolSpec

FACTORS: Mapping[str, str] = {
    "decoding": "free, or grammar: the sampler may only write well-formed calls",
    "few_shot": "number of examples",
    "placement": "where the tool prompt stands: first or last",
    "temperature": "sampling temperature",
    "type_rules": "whether the prompt says how each type is written",
    "wording": "the prompt's wording, see toolparse_lab.prompt.list_wordings",
}
"""What can be varied, and what each factor means. In `Lab.plan` a list of levels makes a factor of it."""

_DEFAULTS: Mapping[str, Any] = {
    "decoding": "free", "few_shot": 2, "placement": "first", "temperature": 0, "type_rules": False, "wording": "plain",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of asking: a prompt protocol and a level of each factor. `name` says what differs between arms."""

    protocol: str
    levels: Mapping[str, Any]
    name: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned experiment. `items[i]` is asked by `requests[items[i].key]`; show it before you run it."""

    cases: Cases
    models: Mapping[str, Model]
    arms: tuple[Arm, ...]
    trials: int
    items: tuple[PlanItem, ...]
    requests: Mapping[str, Request]
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Different questions: what a run with an empty store sends."""
        return len(self.requests)

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
            "cases": [c.to_dict() for c in self.cases],
        }

    def __str__(self) -> str:
        given, made = self.tokens
        price = "unknown, give Model(price=...)" if self.cost is None else f"at most ${self.cost:.2f}"
        return (
            f"{_n(len(self.cases), 'case')} × {_n(len(self.models), 'model')} × {_n(len(self.arms), 'arm')} × "
            f"{_n(self.trials, 'trial')} = {_n(self.calls, 'call')}\n"
            f"models: {', '.join(self.models)}\narms:   {', '.join(a.name for a in self.arms)}\n"
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
    **settings: Any,
) -> Plan:
    """Every request of an experiment, in an order that leaves the arms balanced wherever it stops.

    cases: Cases or what `load_cases` takes. models: {alias: Model}. settings: the factors of `FACTORS`, each a value
    or a list of levels, and any other sampling parameter (max_tokens, top_p, …) as it is sent. A seed is sent as
    `seed + trial`. Raises BadPlan, UnknownModel, UnknownProtocol or BadCase.
    """
    chosen = cases if isinstance(cases, Cases) else load_cases(cases)
    if len(chosen) == 0:
        raise BadPlan("there are no cases to plan", hint="check the filter or the sample size")
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise BadPlan("trials is how often each case is asked", got=trials, expected="1 or more")
    named = model_map(models)
    arms = _arms(protocols, settings)
    params = {k: v for k, v in settings.items() if k not in FACTORS}
    items: list[PlanItem] = []
    requests: dict[str, Request] = {}
    order = random.Random(seed)  # noqa: S311 - an order, not a secret
    for trial, case in itertools.product(range(trials), chosen):
        cells = list(itertools.product(named.items(), arms))
        order.shuffle(cells)
        for (alias, model), arm in cells:
            request = request_for(case, alias, model, arm, {**params, "seed": seed + trial}, trial, stream)
            key = request.key
            requests.setdefault(key, request)
            items.append(
                PlanItem(case.id, alias, key, trial, {"arm": arm.name, "prompt_protocol": arm.protocol, **arm.levels})
            )
    return Plan(chosen, named, arms, trials, tuple(items), requests, params)


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


def arm_of(protocol: str | Protocol, settings: Mapping[str, Any]) -> Arm:
    """The one arm of single settings."""
    return _arms([protocol], settings)[0]


def _arms(protocols: Any, settings: Mapping[str, Any]) -> tuple[Arm, ...]:
    listed = [protocols] if isinstance(protocols, (str, Protocol)) else list(protocols)
    if not listed:
        raise BadPlan("there are no protocols to plan", expected="a list such as ['hermes', 'morph_xml']")
    ids = [protocol_of(p).id for p in listed]
    levels: dict[str, list[Any]] = {}
    for factor, default in _DEFAULTS.items():
        value = settings.get(factor, default)
        levels[factor] = list(value) if isinstance(value, (list, tuple)) else [value]
        if not levels[factor]:
            raise BadPlan(f"the factor {factor!r} has no levels", hint="leave it out, or list its levels")
    for value in levels["decoding"]:
        if value not in ("free", "grammar"):
            raise BadPlan("unknown way of decoding", got=value, expected="free or grammar")
    varied = [f for f in levels if len(levels[f]) > 1]
    arms: list[Arm] = []
    for protocol in dict.fromkeys(ids):
        for combination in itertools.product(*levels.values()):
            level = dict(zip(levels, combination, strict=True))
            suffix = "".join(f" {_level_name(f, level[f])}" for f in varied)
            arms.append(Arm(protocol, level, protocol + suffix))
    return tuple(arms)


def _level_name(factor: str, level: Any) -> str:
    if factor in ("decoding", "wording", "placement"):
        return str(level)
    if factor == "type_rules":
        return "type-rules" if level else "no-rules"
    return f"{factor}={level}"


def request_for(
    case: Case, alias: str, model: Model, arm: Arm, params: Mapping[str, Any], trial: int, stream: bool = False
) -> Request:
    """What is sent for one case under one arm."""
    protocol = protocol_of(arm.protocol)
    tools = {t.name: t for t in case.tools}
    level = arm.levels
    messages = build_messages(
        case.input,
        case.tools,
        protocol_id=protocol.id,
        write_call=_writer(protocol, tools),
        wording=level["wording"],
        few_shot=level["few_shot"],
        type_rules=level["type_rules"],
        placement=level["placement"],
        target=_plain_target(case),
    )
    sent = {"temperature": level["temperature"], **params}
    if level["decoding"] == "grammar":
        sent["grammar"] = grammar_for(protocol.id, case.tools)
    return Request(model, alias, messages, sent, stream=stream, trial=trial)


def _writer(protocol: Protocol, tools: Mapping[str, ToolSpec]) -> Any:
    return lambda name, arguments_json: protocol.write_call(name, arguments_json, tools.get(name))


def _plain_target(case: Case) -> list[Mapping[str, Any]] | None:
    return case.target
