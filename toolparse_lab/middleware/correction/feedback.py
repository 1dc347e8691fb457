"""`Feedback`: how often a refused call is tried again and corrected, by which rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypedDict, Unpack

from ...core.errors import BadOptions
from ...core.toolspec import ToolSpec
from ...core.types import Policy
from .failure import DEFAULT_DETECTORS, Detector, detectors_of
from .prompt import CorrectionWording

_LONGEST_WAIT = 60.0  # seconds between two attempts


def backoff_seconds(attempt: int) -> float:
    """Return seconds to wait after a regular attempt, counted from 1: 1, then 2, then 3."""
    return min(float(attempt), _LONGEST_WAIT)


class FeedbackChanges(TypedDict, total=False):
    """The fields of `Feedback`, for `Feedback.preset`."""

    enabled: bool
    max_attempts: int
    max_validation_retries: int
    detectors: tuple[str | Detector, ...]
    merge: Literal["named", "all"]
    policy: Policy
    wording: CorrectionWording
    request: bool
    history: bool
    stop_on_repeat: bool
    max_tokens: int | None
    max_cost: float | None
    backoff: Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Feedback:
    """Layer 3 of type safety: a refused call is shown to the model with the error.

    Attributes:
        enabled: False asks for no correction. Regular attempts stay.
        max_attempts: how often the tool is called before corrections count.
        max_validation_retries: corrections, which count apart, use up no attempt and do not wait.
        detectors: names of `DETECTORS` or functions, the first that finds something wins.
        merge: "named" takes a correction at the fields that the error named, "all" as it is.
        policy: of layer 2, which every correction passes.
        wording: of the correction prompt.
        request, history: whether the model sees the user's request, and the messages before it.
        stop_on_repeat: end where a correction brings arguments that were refused already.
        max_tokens, max_cost: of all corrections together, None for no limit.
        backoff: seconds after an attempt.
    """

    enabled: bool = True
    max_attempts: int = 3
    max_validation_retries: int = 2
    detectors: tuple[str | Detector, ...] = DEFAULT_DETECTORS
    merge: Literal["named", "all"] = "named"
    policy: Policy = "safe"
    wording: CorrectionWording = "plain"
    request: bool = True
    history: bool = True
    stop_on_repeat: bool = True
    max_tokens: int | None = None
    max_cost: float | None = None
    backoff: Callable[[int], float] = backoff_seconds

    def __post_init__(self) -> None:
        for name, least in (("max_attempts", 1), ("max_validation_retries", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise BadOptions(f"`{name}` is a number", got=value, expected="a whole number")
            if value < least:
                raise BadOptions(f"`{name}` is too small", got=value, expected=f"{least} or more")
        if self.merge not in ("named", "all"):
            raise BadOptions("there is no such way to merge", got=self.merge, expected="named, all")
        if self.wording not in ("plain", "go-orchestrator"):
            raise BadOptions(
                "there is no such wording", got=self.wording, expected="plain, go-orchestrator"
            )
        detectors_of(self.detectors)

    @classmethod
    def of(cls, value: Any) -> Feedback | None:
        """Return the feedback that an option means.

        Pass a Feedback, the name of a preset, True for the default, None or False for none. One
        that asks for nothing is none. Raises BadOptions.

        >>> Feedback.of("cost-sensitive") is None, Feedback.of(True) == Feedback()
        (True, True)
        """
        if value is None or value is False:
            return None
        if isinstance(value, str):
            value = cls.preset(value)
        feedback = cls() if value is True else value
        if not isinstance(feedback, cls):
            raise BadOptions(
                "feedback is a Feedback, the name of a preset, or None",
                got=value,
                expected=", ".join(PRESETS),
            )
        return feedback if feedback.enabled else None

    @classmethod
    def preset(cls, name: str, **changes: Unpack[FeedbackChanges]) -> Feedback:
        """Return one of `PRESETS`, with changes.

        Raises BadOptions.

        >>> Feedback.preset("cost-sensitive").enabled
        False
        """
        if name not in PRESETS:
            raise BadOptions.unknown("there is no preset of this name", name, PRESETS)
        return replace(PRESETS[name], **changes)

    @classmethod
    def from_execution_options(cls, options: Mapping[str, Any]) -> Feedback:
        """Return the preset `go-orchestrator` with its `ExecutionOptions`, by their JSON names.

        >>> Feedback.from_execution_options({"max_validation_retries": 3}).max_validation_retries
        3
        """
        names = {
            "validation_feedback_enabled": "enabled",
            "max_validation_retries": "max_validation_retries",
        }
        unknown = [name for name in options if name not in names]
        if unknown:
            raise BadOptions(
                "there is no such execution option", got=unknown[0], expected=", ".join(names)
            )
        changes: Any = {names[name]: value for name, value in options.items()}
        # The orchestrator's setter ignores a number below one.
        if (changes.get("max_validation_retries") or 0) <= 0:
            changes.pop("max_validation_retries", None)
        return cls.preset("go-orchestrator", **changes)


_GO_ORCHESTRATOR = Feedback(
    detectors=("go-phrases",),
    merge="all",
    policy="go-strconv",
    wording="go-orchestrator",
    request=False,
    history=False,
    stop_on_repeat=False,
)
# Name -> Feedback: three configurations to choose from, and the behaviour of the Go orchestrator to
# the letter: as its code has it, and as its design has it, with three corrections.
PRESETS: Mapping[str, Feedback] = {
    "production": Feedback(),
    "cost-sensitive": Feedback(enabled=False),
    "maximum-reliability": Feedback(max_validation_retries=3),
    "go-orchestrator": _GO_ORCHESTRATOR,
    "go-orchestrator-planned": replace(
        _GO_ORCHESTRATOR, detectors=("go-phrases-planned",), max_validation_retries=3
    ),
}


# Agents and their capabilities, as an orchestrator has them: a capability is a tool.


def agent_tool(agent: Mapping[str, Any] | None, capability: str) -> ToolSpec | None:
    """Return the capability of an agent as a tool with its schema.

    None for no agent, or no such capability.

    Args:
        agent: `{name, capabilities: [{name, parameters | input_summary}]}`.

    Raises BadToolSpec for an unreadable capability.

    >>> agent = {"name": "a", "capabilities": [{"name": "f", "parameters": []}]}
    >>> agent_tool(agent, "f").name
    'f'
    """
    capabilities = agent.get("capabilities") if agent is not None else None
    for entry in capabilities or ():
        if isinstance(entry, Mapping) and entry.get("name") == capability:
            return ToolSpec.of(entry)
    return None
