"""Arms of an experiment: a prompt protocol and a level of every factor."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import BadPlan
from .protocols.base import Protocol
from .registry import protocol_of

FACTORS: Mapping[str, str] = {
    "decoding": "free, or grammar: the sampler may only write well-formed calls, in the first turn",
    "few_shot": "number of examples",
    "max_turns": "how often the model is asked at most; above 1 its calls are run and it is told the results",
    "placement": "where the tool prompt stands: first or last",
    "result_format": "how results are written for the model: own, the protocol's form, or seed, the oldest version's",
    "temperature": "sampling temperature",
    "tool_choice": "what the first turn may do: auto, required, none, or {'name': …}, the tool that must be called",
    "tool_choice_by": "how a forced choice is asked for: response_format, or prompt",
    "type_rules": "whether the prompt says how each type is written",
    "wording": "the prompt's wording, see toolparse_lab.prompt.list_wordings",
}
"""What can be varied, and what each factor means. In `Lab.plan` a list of levels makes a factor of it."""

_DEFAULTS: Mapping[str, Any] = {
    "decoding": "free", "few_shot": 2, "max_turns": 1, "placement": "first", "result_format": "own", "temperature": 0,
    "tool_choice": "auto", "tool_choice_by": "response_format", "type_rules": False, "wording": "plain",
}  # fmt: skip
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "decoding": ("free", "grammar"),
    "result_format": ("own", "seed"),
    "tool_choice": ("auto", "required", "none"),
    "tool_choice_by": ("response_format", "prompt"),
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of asking: a prompt protocol and a level of each factor. `name` says what differs between arms."""

    protocol: str
    levels: Mapping[str, Any]
    name: str

    @property
    def conversing(self) -> bool:
        """Whether tools are run and the model is asked again."""
        return int(self.levels["max_turns"]) > 1


def arm_of(protocol: str | Protocol, settings: Mapping[str, Any]) -> Arm:
    """The one arm of single settings; raises as `arms_of` does."""
    return arms_of([protocol], settings)[0]


def arms_of(protocols: Sequence[str | Protocol] | str | Protocol, settings: Mapping[str, Any]) -> tuple[Arm, ...]:
    """Every protocol with every combination of the levels in `settings`; raises BadPlan and UnknownProtocol."""
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
        for level in levels[factor]:
            _check_level(factor, level)
    varied = [f for f in levels if len(levels[f]) > 1]
    arms: list[Arm] = []
    for protocol in dict.fromkeys(ids):
        for combination in itertools.product(*levels.values()):
            level = dict(zip(levels, combination, strict=True))
            suffix = "".join(f" {_level_name(f, level[f])}" for f in varied)
            arms.append(Arm(protocol, level, protocol + suffix))
    return tuple(arms)


def _check_level(factor: str, level: Any) -> None:
    if factor == "max_turns":
        if isinstance(level, bool) or not isinstance(level, int) or level < 1:
            raise BadPlan("max_turns is how often a model may be asked", got=level, expected="1 or more")
    elif factor == "tool_choice" and isinstance(level, Mapping):
        if set(level) != {"name"} or not isinstance(level["name"], str):
            raise BadPlan("a tool choice names its tool", got=dict(level), expected='{"name": …}')
    elif factor in _CHOICES and level not in _CHOICES[factor]:
        also = ', or {"name": …}' if factor == "tool_choice" else ""
        raise BadPlan(
            f"unknown level of the factor {factor!r}", got=level, expected=" or ".join(_CHOICES[factor]) + also
        )


def _level_name(factor: str, level: Any) -> str:
    if factor in ("decoding", "wording", "placement"):
        return str(level)
    if factor == "type_rules":
        return "type-rules" if level else "no-rules"
    return f"{factor}={level['name'] if isinstance(level, Mapping) else level}"
