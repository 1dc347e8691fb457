"""Arms of an experiment: a prompt protocol and a level of every factor."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import BadPlan
from .protocols.base import Protocol
from .registry import protocol_of
from .runner.summary import LIMITS

NATIVE = "native"
"""The arm that leaves tools to the provider: they are sent as such, and its own calls are read."""

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
_OF_NATIVE = ("max_turns", "temperature", "tool_choice")  # the others say how a prompt is written
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "decoding": ("free", "grammar"),
    "result_format": ("own", "seed"),
    "tool_choice": ("auto", "required", "none"),
    "tool_choice_by": ("response_format", "prompt"),
}


PARAMETERS: tuple[str, ...] = (
    "audio", "cache_prompt", "chat_template_kwargs", "extra_body", "extra_headers", "frequency_penalty", "grammar",
    "guided_choice", "guided_grammar", "guided_json", "guided_regex", "keep_alive", "logit_bias", "logprobs",
    "max_completion_tokens", "max_tokens", "metadata", "min_p", "min_tokens", "modalities", "n", "num_ctx",
    "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "reasoning_effort", "repeat_penalty",
    "repetition_penalty", "response_format", "safety_identifier", "safety_settings", "seed", "service_tier",
    "skip_special_tokens", "stop", "store", "structured_outputs", "thinking", "top_k", "top_logprobs", "top_p",
    "typical_p", "user", "verbosity", "web_search_options",
)  # fmt: skip
"""Parameters that are sent as they are: those of litellm and OpenAI, and what common servers take beside them."""
_ELSEWHERE = {
    **dict.fromkeys(("timeout", "api_base", "api_key", "headers", "max_connections", "max_retries", "price"), "Model"),
    **dict.fromkeys((*LIMITS, "fresh", "max_age", "progress"), "Lab.run"),
}
"""What is no parameter of a plan, and who takes it."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of asking: a prompt protocol and a level of each factor. `name` says what differs between arms.

    The protocol 'native' has no prompt: factors that mean nothing to it have the level None.
    """

    protocol: str
    levels: Mapping[str, Any]
    name: str

    @property
    def conversing(self) -> bool:
        """Whether tools are run and the model is asked again."""
        return int(self.levels["max_turns"]) > 1

    @property
    def native(self) -> bool:
        """Whether tools are sent as such instead of being described."""
        return self.protocol == NATIVE


def arm_of(protocol: str | Protocol, settings: Mapping[str, Any]) -> Arm:
    """The one arm of single settings; raises as `arms_of` does."""
    return arms_of([protocol], settings)[0]


def arms_of(protocols: Sequence[str | Protocol] | str | Protocol, settings: Mapping[str, Any]) -> tuple[Arm, ...]:
    """Every protocol with every combination of the levels in `settings`; raises BadPlan and UnknownProtocol.

    'native' is asked once for all levels of the factors that mean nothing to it.
    """
    listed = [protocols] if isinstance(protocols, (str, Protocol)) else list(protocols)
    if not listed:
        raise BadPlan("there are no protocols to plan", expected="a list such as ['hermes', 'morph_xml']")
    ids = [NATIVE if p == NATIVE else protocol_of(p).id for p in listed]
    levels: dict[str, list[Any]] = {}
    for factor, default in _DEFAULTS.items():
        value = settings.get(factor, default)
        if value is None and factor not in _OF_NATIVE:  # what a native arm says of factors that mean nothing to it
            value = default
        levels[factor] = list(value) if isinstance(value, (list, tuple)) else [value]
        if not levels[factor]:
            raise BadPlan(f"the factor {factor!r} has no levels", hint="leave it out, or list its levels")
        for level in levels[factor]:
            _check_level(factor, level)
    arms: list[Arm] = []
    for protocol in dict.fromkeys(ids):
        own = {f: [None] for f in levels if f not in _OF_NATIVE} if protocol == NATIVE else {}
        chosen = {**levels, **own}
        varied = [f for f in levels if len(chosen[f]) > 1]
        for combination in itertools.product(*chosen.values()):
            level = dict(zip(chosen, combination, strict=True))
            suffix = "".join(f" {_level_name(f, level[f])}" for f in varied)
            arms.append(Arm(protocol, level, protocol + suffix))
    return tuple(arms)


def _check_level(factor: str, level: Any) -> None:
    if factor == "max_turns":
        if isinstance(level, bool) or not isinstance(level, int) or level < 1:
            raise BadPlan("max_turns is how often a model may be asked", got=level, expected="1 or more")
    elif factor == "temperature":
        if level is not None and (isinstance(level, bool) or not isinstance(level, (int, float)) or not level >= 0):
            raise BadPlan("temperature is a number", got=level, expected="0 or more")
    elif factor == "type_rules":
        if not isinstance(level, bool):
            raise BadPlan("type_rules says whether the prompt has them", got=level, expected="True or False")
    elif factor == "tool_choice" and isinstance(level, Mapping):
        if set(level) != {"name"} or not isinstance(level["name"], str):
            raise BadPlan("a tool choice names its tool", got=dict(level), expected='{"name": …}')
    elif factor in _CHOICES and level not in _CHOICES[factor]:
        also = ', or {"name": …}' if factor == "tool_choice" else ""
        raise BadPlan(
            f"unknown level of the factor {factor!r}", got=level, expected=" or ".join(_CHOICES[factor]) + also
        )


def check_params(params: Mapping[str, Any]) -> None:
    """Raises BadPlan for a sampling parameter that is counted with here and is no number; all others are the
    provider's business."""
    for name in ("max_tokens", "max_completion_tokens", "n"):
        value = params.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise BadPlan(f"{name} is a whole number", got=value, expected="1 or more")


def check_names(names: Iterable[str], own: Iterable[str] = (), place: str = "") -> None:
    """Raises BadPlan for a name that is neither a factor nor a known parameter: a slip would be sent and ignored.

    own: names that the models themselves declare, in `Model.params`. place: where the names stand, for the message.
    """
    known = {*FACTORS, *PARAMETERS, *own}
    for name in names:
        if name in known:
            continue
        near = difflib.get_close_matches(str(name), sorted(known), 2, 0.6)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        if name in _ELSEWHERE:
            meant = f"{_ELSEWHERE[name]} takes it; "
        raise BadPlan(
            f"{place}there is no factor and no sampling parameter of this name", got=name,
            expected=f"{', '.join(FACTORS)}, or such as max_tokens, top_p, stop",
            hint=f'{meant}what only this endpoint knows goes into extra_body: {{"{name}": …}}',
        )  # fmt: skip


def _level_name(factor: str, level: Any) -> str:
    if factor in ("decoding", "wording", "placement"):
        return str(level)
    if factor == "type_rules":
        return "type-rules" if level else "no-rules"
    return f"{factor}={level['name'] if isinstance(level, Mapping) else level}"
