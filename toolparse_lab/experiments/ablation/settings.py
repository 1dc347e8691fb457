"""`AblationSettings`: which policies are compared, how a refused call is corrected, and which tool
takes the calls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...arguments.schema.coerce import POLICIES
from ...core.errors import BadOptions, near
from ...core.types import Policy
from ...middleware.correction import Feedback
from ...middleware.flow.factors import PlanSettings
from ...runner.limits import RunLimits
from ..arms import FACTORS
from .tools import check_dialect, check_names

Functions = Mapping[str, Callable[..., Any]]
# The fields of Feedback that are recorded as they are.
_FEEDBACK = (
    "max_attempts", "max_validation_retries", "merge", "wording", "request", "history",
    "stop_on_repeat", "max_tokens", "max_cost",
)  # fmt: skip


class AblationKeywords(PlanSettings, RunLimits, total=False):
    """The keywords of `Lab.ablation`: settings of the ablation and its plan, limits of its run."""

    layer1: tuple[str, Any, Any]
    policy: Policy
    policies: tuple[Policy, ...]
    correct_under: tuple[Policy, ...]
    feedback: Feedback
    dialect: str
    functions: Functions
    level: float
    trials: int
    seed: int
    despite_check: bool


@dataclass(frozen=True, slots=True)
class AblationSettings:
    """The settings of an ablation.

    None of them changes the meaning of a base answer.

    Attributes:
        layer1: the factor of the plan that layer 1 is, its level without the layer and with it.
        policy: layer 2 of the eight cells.
        policies: all that are re-run on the same answers. "none" is among them.
        correct_under: policies under which layer 3 may ask models, by default "none" and `policy`.
            Under the others it is shown as far as it is recorded.
        feedback: layer 3. Its own policy does not count, that of the cell does.
        dialect: of the mock tool, see `tools.DIALECTS`.
        functions: tools that run, by the name of the tool or by the name that a case gives it.
        level: of intervals.
    """

    layer1: tuple[str, Any, Any] = ("type_rules", False, True)
    policy: Policy = "safe"
    policies: tuple[Policy, ...] = POLICIES  # type: ignore[assignment]  # names of policies
    correct_under: tuple[Policy, ...] = ()
    feedback: Feedback = field(default_factory=Feedback)
    dialect: str = "jsonschema"
    functions: Functions = field(default_factory=dict)
    level: float = 0.95

    def __post_init__(self) -> None:
        """Complete the policies. Raises BadOptions for a name or a number that does not exist."""
        if len(tuple(self.layer1)) != 3 or self.layer1[0] not in FACTORS:
            raise BadOptions(
                "layer 1 is a factor with its level off and on",
                got=self.layer1,
                expected='("type_rules", False, True)',
                hint=near(str(self.layer1[0]), FACTORS) if self.layer1 else None,
            )
        for name in ("policies", "correct_under"):
            if isinstance(getattr(self, name), str):
                raise BadOptions(
                    f"{name} are several", got=getattr(self, name), expected="a tuple of names"
                )
        names = (self.policy, *self.policies, *self.correct_under)
        check_names(names, POLICIES, "there is no coercion policy of this name")
        if self.policy == "none":
            raise BadOptions("layer 2 of an ablation does something", got="none")
        check_dialect(self.dialect)
        if not isinstance(self.feedback, Feedback):
            raise BadOptions(
                "feedback is an object", got=self.feedback, expected="correction.Feedback(…)"
            )
        for name, function in self.functions.items():
            if not callable(function):
                raise BadOptions(
                    f"the tool {name!r} is no function", got=function, expected="a callable"
                )
        if not 0 < self.level < 1:
            raise BadOptions("a confidence level lies between 0 and 1", got=self.level)
        policies = dict.fromkeys(("none", *self.policies, self.policy))
        object.__setattr__(self, "layer1", tuple(self.layer1))
        object.__setattr__(self, "policies", tuple(policies))
        correct_under = tuple(self.correct_under) or ("none", self.policy)
        object.__setattr__(self, "correct_under", correct_under)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as a run records them: names, numbers, no functions."""
        feedback = {name: getattr(self.feedback, name) for name in _FEEDBACK}
        detectors = self.feedback.detectors
        if all(isinstance(detector, str) for detector in detectors):
            feedback["detectors"] = list(detectors)
        return {
            "layer1": list(self.layer1),
            "policy": self.policy,
            "policies": list(self.policies),
            "correct_under": list(self.correct_under),
            "feedback": feedback,
            "dialect": self.dialect,
            "level": self.level,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], **changes: Any) -> AblationSettings:
        """Return the settings of a record with changes.

        Members of another version drop out.

        >>> AblationSettings.from_dict(AblationSettings(dialect="go").to_dict()).dialect
        'go'
        """
        values = _known(record, [one.name for one in dataclasses.fields(cls)])
        if "feedback" in values:
            values["feedback"] = Feedback(**_known(values["feedback"], (*_FEEDBACK, "detectors")))
        # Another headline is corrected as well, unless somebody says otherwise.
        if "policy" in changes and "correct_under" not in changes:
            values.pop("correct_under", None)
        return cls(**{**values, **changes})


def _known(record: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    # JSON has lists for tuples.
    known = {name: record[name] for name in record if name in names}
    return {name: tuple(x) if isinstance(x, list) else x for name, x in known.items()}


SETTINGS = tuple(one.name for one in dataclasses.fields(AblationSettings))
"""The names that `Lab.ablation` takes for itself; the others are a plan's or a run's."""
