"""Arms of an experiment: a prompt protocol and a level of every factor.

Names of protocols are resolved here, once: an arm has the protocol itself, or None if the tools
are left to the provider.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..core.errors import BadOptions, BadPlan, UnknownProtocol, near
from ..entry.foreign.protocol import AnyProtocol, any_protocol, listed_names
from ..evals.engines import is_count
from ..formats.auto import AUTO
from ..formats.base import Protocol
from ..formats.json.openai_json import OPENAI_JSON, OPENAI_STRICT
from ..formats.prompt.wording import OwnPrompt, is_own_prompt
from ..formats.registry import is_shipped, protocol_of
from ..middleware.plans import PLAN
from ..runner.exchange.summary import LIMITS
from ..runner.exchange.types import PARAMETERS

NATIVE = "native"
"""The arm that leaves tools to the provider, which is sent them and whose own calls are read."""

STRICT = "strict"
"""The level of `decoding` that only native arms have."""

BY_NAME: Mapping[str, AnyProtocol | None] = {NATIVE: None, PLAN.id: PLAN}
"""Names of arms that no format has."""

FACTORS: Mapping[str, str] = {
    "corrections": "how often a call that its schema or its tool refuses is shown to the model, "
    "with the error, and asked again; tools that cannot be run take what their schema allows",
    "decoding": "free; grammar: the sampler may only write well-formed calls, in the first turn; "
    "or strict, of native arms alone: the provider keeps its calls to the schemas",
    "few_shot": "number of examples",
    "max_turns": "how often the model is asked at most; above 1 its calls are run and it is told "
    "the results",
    "placement": "where the tool prompt stands: first or last",
    "reasoning_effort": "how much the model thinks, in its provider's word: low, medium, high …",
    "result_format": "how results are written for the model: own, the protocol's form, or "
    "ai-sdk-2, that of version 2 of the AI SDK's middleware",
    "temperature": "sampling temperature",
    "tool_choice": "what the first turn may do: auto, required, none, or {'name': …}, the tool "
    "that must be called",
    "tool_choice_by": "how a forced choice is asked for: response_format, or prompt",
    "type_rules": "whether the prompt says how each type is written: False, True, or pairs, with "
    "a block of right and wrong parameters",
    "wording": "the prompt's wording, see `wordings.names` of a protocol; a template or a builder "
    "of your own, or {'name': …} with one of these",
}
"""The factors that can be varied, and the meaning of each. In `Lab.plan` a list of levels varies
one."""

_DEFAULTS: Mapping[str, Any] = {
    "corrections": 0, "decoding": "free", "few_shot": 2, "max_turns": 1, "placement": "first",
    "reasoning_effort": None, "result_format": "own", "temperature": 0, "tool_choice": "auto",
    "tool_choice_by": "response_format", "type_rules": False, "wording": "plain",
}  # fmt: skip
# The factors that mean something without a prompt of ours; all others are about its text.
_OF_NATIVE = ("corrections", "max_turns", "reasoning_effort", "temperature", "tool_choice")
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "decoding": ("free", "grammar", STRICT),
    "result_format": ("own", "ai-sdk-2"),
    "tool_choice": ("auto", "required", "none"),
    "tool_choice_by": ("response_format", "prompt"),
}
# The parameters that this package counts with; all others are the provider's business.
_COUNTED = ("max_tokens", "max_completion_tokens", "n")
# Names that are no parameters of a plan, and who takes them instead.
_ELSEWHERE = {
    **dict.fromkeys(
        ("timeout", "api_base", "api_key", "headers", "max_connections", "max_retries", "price"),
        "Model",
    ),
    **dict.fromkeys((*LIMITS, "fresh", "max_age", "progress"), "Lab.run"),
}


@dataclass(frozen=True, slots=True)
class LostProtocol:
    """Takes the place, in the arm of a recorded run, of a protocol that is code and not at hand."""

    id: str

    def error(self) -> UnknownProtocol:
        """Return the error for whoever needs the protocol. It says how to bring it back."""
        return UnknownProtocol(
            "this run was made with a protocol that is code, which a store cannot keep",
            got=self.id,
            expected="the object itself",
            hint="lab.open(run_id, protocols=[the_object]); or read the answers by another "
            "protocol: run.trials(protocol=...), lab.reparse(run, protocols=[...])",
        )


ArmProtocol: TypeAlias = AnyProtocol | LostProtocol | None
"""The protocol that a prompt explains; None: tools are left to the provider."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of asking: a prompt protocol and a level of each factor.

    protocol: see `ArmProtocol`. levels: factor -> level, or None for factors that mean nothing to
    the arm. name: the protocol and the levels that differ between the arms of a plan. own_prompt:
    the template or the builder in the place of a wording. The level is then its name.
    """

    protocol: ArmProtocol
    levels: Mapping[str, Any]
    name: str
    own_prompt: OwnPrompt | None = None

    @property
    def prompt_protocol(self) -> str:
        """The id of the protocol, or 'native'."""
        return prompt_protocol(self.protocol)

    @property
    def reader(self) -> AnyProtocol:
        """The protocol that reads this arm's answers. Raises UnknownProtocol for a lost one."""
        if isinstance(self.protocol, LostProtocol):
            raise self.protocol.error()
        if self.protocol is not None:
            return self.protocol
        # Arms of ingested answers have no levels: nobody asked for them.
        return OPENAI_STRICT if self.levels.get("decoding") == STRICT else OPENAI_JSON

    @property
    def conversing(self) -> bool:
        """Return whether the model may be asked again, about results or about refused calls."""
        return later_questions(self.levels) > 0

    @property
    def native(self) -> bool:
        """Return whether tools are sent as such instead of being described."""
        return self.protocol is None


def later_questions(levels: Mapping[str, Any]) -> int:
    """Return the most questions after the first one, with one call a turn.

    levels: of an arm. Arms of older runs have no level of `corrections`.
    """
    return int(levels["max_turns"]) * (1 + int(levels.get("corrections") or 0)) - 1


def prompt_protocol(protocol: ArmProtocol) -> str:
    """Return the name that frames show for a protocol that a prompt explains."""
    return NATIVE if protocol is None else protocol.id


def own_protocols(arms: Iterable[Arm]) -> dict[str, AnyProtocol]:
    """Return the protocols of these arms that are neither shipped nor installed, by id."""
    return {
        arm.protocol.id: arm.protocol
        for arm in arms
        if arm.protocol is not None
        and not isinstance(arm.protocol, LostProtocol)
        and arm.protocol is not AUTO
        and not is_shipped(arm.protocol.id)
    }


def protocol_records(arms: Iterable[Arm]) -> dict[str, Any]:
    """Return id -> record of every protocol of these arms that its id alone does not bring back.

    A record is {"spec": JSON text} for one that was made from data (`Protocol.from_spec`,
    `json_mix_protocol`), or {"title": …} for code, which cannot be made again.
    """
    records: dict[str, Any] = {}
    for protocol in (arm.protocol for arm in arms):
        if protocol is None or protocol is AUTO or is_shipped(protocol.id):
            continue
        if isinstance(protocol, Protocol) and protocol.spec:
            records[protocol.id] = {"spec": protocol.spec}
        else:
            # A protocol object of the user's own need not have a title.
            records[protocol.id] = {"title": getattr(protocol, "title", "") or protocol.id}
    return records


def arm_of(protocol: Any, settings: Mapping[str, Any]) -> Arm:
    """Return the one arm of single settings. Raises as `arms_of` does."""
    return arms_of([protocol], settings)[0]


def arms_of(protocols: Any, settings: Mapping[str, Any]) -> tuple[Arm, ...]:
    """Return an arm for every protocol with every combination of the levels in `settings`.

    protocols: ids, Protocols, protocol objects of one's own, 'native', 'plan', or one of these.
    settings: factor -> a level or a list of levels. Other names are ignored, missing factors have
    their default. 'native' is asked once for all levels of the factors that mean nothing to it.
    Raises BadPlan and UnknownProtocol.
    """
    levels = {factor: _levels_of(factor, settings) for factor in _DEFAULTS}
    chosen = prompt_protocols(protocols)
    again = {"max_turns": 1, "corrections": 0}
    if PLAN in chosen and any(set(levels[factor]) != {level} for factor, level in again.items()):
        got = ", ".join(f"{factor}={levels[factor]}" for factor in again)
        raise BadPlan(
            "a plan is written once, before anything is run",
            got=f"{got} beside the arm 'plan'",
            expected="max_turns=1, corrections=0",
            hint="read_plan_answer reads its answers, and run_plan runs them",
        )
    if STRICT in levels["decoding"] and None not in chosen:
        raise BadPlan(
            "only a provider's own calls can be kept to their schemas by it",
            got="decoding='strict'",
            expected="the arm 'native' among the protocols, or decoding='grammar'",
        )
    arms: list[Arm] = []
    for protocol in chosen:
        arms += _arms_of_one(protocol, levels)
    return tuple(arms)


def prompt_protocols(protocols: Any) -> list[AnyProtocol | None]:
    """Return the protocols of arms, each once; None for 'native'.

    Raises UnknownProtocol, and BadPlan for none, for one that only reads and for two that share an
    id: frames tell protocols apart by their ids.
    """
    by_id: dict[str, AnyProtocol | None] = {}
    for name in listed_names(protocols):
        is_arm = isinstance(name, str) and name in BY_NAME
        protocol = BY_NAME[name] if is_arm else any_protocol(name)
        if protocol is AUTO:
            raise BadPlan(
                "'auto' only reads: it cannot tell a model what to write",
                got="auto",
                expected="a protocol such as 'hermes'",
            )
        key = prompt_protocol(protocol)
        poses = protocol is not None and is_shipped(key) and protocol_of(key) != protocol
        if by_id.setdefault(key, protocol) != protocol or poses:
            raise BadPlan(
                "two protocols have this id, so their trials could not be told apart",
                got=key,
                hint="give yours an id of its own",
            )
    if not by_id:
        raise BadPlan(
            "there are no protocols to plan", expected="a list such as ['hermes', 'morph_xml']"
        )
    return list(by_id.values())


def _levels_of(factor: str, settings: Mapping[str, Any]) -> list[Any]:
    default = _DEFAULTS[factor]
    value = settings.get(factor, default)
    if value is None and factor not in _OF_NATIVE:
        value = default  # a native arm has None for the factors that mean nothing to it

    levels = list(value) if isinstance(value, (list, tuple)) else [value]
    if factor == "wording":
        levels = _wordings_of(levels)
    if not levels:
        raise BadPlan(
            f"the factor {factor!r} has no levels", hint="leave it out, or list its levels"
        )
    for level in levels:
        _check_level(factor, level)
    return levels


def _arms_of_one(protocol: AnyProtocol | None, levels: Mapping[str, list[Any]]) -> Iterator[Arm]:
    # Every combination of the levels that mean something to it.
    native, decodings = protocol is None, levels["decoding"]
    by_factor = dict(levels)
    if not native:
        by_factor["decoding"] = [level for level in decodings if level != STRICT] or ["free"]
    else:
        by_factor |= {factor: [None] for factor in levels if factor not in _OF_NATIVE}
        if STRICT in decodings:
            by_factor["decoding"] = [level for level in decodings if level != "grammar"]

    # A name says what differs: levels that all arms share would only make it long.
    varied = [factor for factor in by_factor if len(by_factor[factor]) > 1]
    for combination in itertools.product(*by_factor.values()):
        level = dict(zip(by_factor, combination, strict=True))
        own = level["wording"] if isinstance(level["wording"], OwnPrompt) else None
        if own is not None:
            level["wording"] = own.name
        suffix = "".join(f" {level_name(factor, level[factor])}" for factor in varied)
        yield Arm(protocol, level, prompt_protocol(protocol) + suffix, own)


def _wordings_of(levels: Iterable[Any]) -> list[Any]:
    # The caller's own as OwnPrompt.
    wordings: list[Any] = []
    for level in levels:
        try:
            if isinstance(level, Mapping):
                wordings += [OwnPrompt.of(value, name) for name, value in level.items()]
            else:
                wordings.append(OwnPrompt.of(level) if is_own_prompt(level) else level)
        except BadOptions as e:
            raise BadPlan(e.message, got=e.got, expected=e.expected) from None
    names = [w.name if isinstance(w, OwnPrompt) else w for w in wordings]
    for name in names:
        if names.count(name) > 1 and any(isinstance(w, OwnPrompt) for w in wordings):
            raise BadPlan(
                "two prompts have this name, so their trials could not be told apart",
                got=name,
                hint='name them: wording=[{"mine": template}, {"other": builder}]',
            )
    return wordings


def _check_level(factor: str, level: Any) -> None:
    if factor == "tool_choice" and isinstance(level, Mapping):
        if set(level) != {"name"} or not isinstance(level["name"], str):
            raise BadPlan("a tool choice names its tool", got=dict(level), expected='{"name": …}')
    elif factor in _CHOICES:
        options = _CHOICES[factor]
        if level not in options:
            named_tool = ', or {"name": …}' if factor == "tool_choice" else ""
            raise BadPlan(
                f"unknown level of the factor {factor!r}",
                got=level,
                expected=" or ".join(options) + named_tool,
            )
    elif factor in _RULES:
        is_right, meaning, expected = _RULES[factor]
        if not is_right(level):
            raise BadPlan(f"{factor} {meaning}", got=level, expected=expected)


def _is_temperature(value: Any) -> bool:
    # None is the provider's default. `value >= 0` and not `not value < 0`, so that NaN is refused.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (is_number and value >= 0)


# Factor -> whether a level is right, and the words for one that is not.
_RULES: Mapping[str, tuple[Callable[[Any], bool], str, str]] = {
    "corrections": (
        lambda level: (level == 0 and not isinstance(level, bool)) or is_count(level),
        "is how often a model is asked again about a refused call",
        "0 or more",
    ),
    "max_turns": (is_count, "is how often a model may be asked", "1 or more"),
    "reasoning_effort": (
        lambda level: level is None or (isinstance(level, str) and level != ""),
        "is a provider's word",
        "such as 'low', or None",
    ),
    "temperature": (_is_temperature, "is a number", "0 or more"),
    "type_rules": (
        lambda level: isinstance(level, bool) or level == "pairs",
        "says whether the prompt has them",
        "True, False or 'pairs'",
    ),
}


def check_params(params: Mapping[str, Any]) -> None:
    """Raise BadPlan for a sampling parameter that is counted with and is not a whole number.

    None leaves such a parameter to the provider.
    """
    for name in _COUNTED:
        value = params.get(name)
        if value is not None and not is_count(value):
            raise BadPlan(
                f"{name} is a whole number",
                got=repr(value),
                expected="1 or more, without quotation marks",
            )


def check_names(names: Iterable[str], own: Iterable[str] = (), place: str = "") -> None:
    """Raise BadPlan for a name that is neither a factor nor a known parameter.

    A misspelled one would be sent and ignored. own: names that the models themselves declare, in
    `Model.params`. place: the location of the names, to begin the message with.
    """
    valid = {*FACTORS, *PARAMETERS, *own}
    for name in names:
        if name in valid:
            continue
        # Who takes it, or the valid names that are close.
        if name in _ELSEWHERE:
            advice = f"{_ELSEWHERE[name]} takes it; "
        else:
            similar = near(name, sorted(valid), 2)
            advice = f"{similar} " if similar else ""
        raise BadPlan(
            f"{place}there is no factor and no sampling parameter of this name",
            got=name,
            expected=f"{', '.join(FACTORS)}, or such as max_tokens, top_p, stop",
            hint=f'{advice}what only this endpoint knows goes into extra_body: {{"{name}": …}}',
        )


def level_name(factor: str, level: Any) -> str:
    """Return a level as it appears in the name of an arm."""
    # Levels that are words say by themselves which factor they are of.
    if factor in ("decoding", "wording", "placement"):
        return str(level)
    if factor == "type_rules":
        return f"type-{'rules' if level is True else level}" if level else "no-rules"
    return f"{factor}={level['name'] if isinstance(level, Mapping) else level}"
