"""`ParseOptions`: the options that a parse was allowed to do."""

# Options are part of every stored result, so that a result says how it came about. A new option
# therefore has a default under which older results mean the same as before.

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..errors import BadOptions, near

Policy: TypeAlias = Literal["none", "safe", "middleware", "seed-layer2", "lossy"]
Reasoning: TypeAlias = Literal["auto", "prefilled", "none"]
EchoChoice: TypeAlias = Literal["refuse", "allow"]

VERSION = 1
"""of the stored form of results, options included"""

_POLICIES = ("none", "safe", "middleware", "seed-layer2", "lossy")
_REASONING = ("auto", "prefilled", "none")
_SWITCHES = ("repair", "recover", "validate")
_MOST_DEPTH = 100_000
# What people write for an option -> what to do.
_ELSEWHERE = {
    "policy": "the policy of coercion is the option coerce: {'coerce': 'safe'}",
    "tool_choice": "tp.parse reads any text; create_tool_middleware takes a tool choice",
}


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """Everything that a parse was allowed to do.

    Stored in the result.

    Attributes:
        repair: read damaged bodies, each repair an edit.
        recover: read calls outside their format.
        coerce: policy.
        validate: check arguments against the schema.
        reasoning: 'auto' reads think tags, 'prefilled' begins inside one, 'none' reads them as
            text.
        max_depth: nesting beyond it is a problem, never an error.
        echoes: a call whose own text stands in the request, written by another, is refused, or
            allowed with a warning.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tp.parse(text, "hermes", options=tp.ParseOptions(repair=False)).calls[0].ok
    False
    """

    repair: bool = True
    recover: bool = True
    coerce: Policy = "safe"
    validate: bool = True
    reasoning: Reasoning = "auto"
    max_depth: int = 1000
    version: int = VERSION
    echoes: EchoChoice = "refuse"

    def __post_init__(self) -> None:
        # A stored 1 or "false" would pass for a switch, so only bool itself is one.
        for name in _SWITCHES:
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise BadOptions(
                    f"option {name!r} is a switch", got=value, expected="True or False"
                )

        if self.coerce not in _POLICIES:
            raise BadOptions(
                "unknown coercion policy", got=self.coerce, expected=", ".join(_POLICIES)
            )
        if self.reasoning not in _REASONING:
            raise BadOptions(
                "unknown reasoning mode", got=self.reasoning, expected="auto, prefilled or none"
            )
        if self.echoes not in ("refuse", "allow"):
            raise BadOptions(
                "unknown choice for echoes", got=self.echoes, expected="refuse or allow"
            )
        if not _is_depth(self.max_depth):
            raise BadOptions(
                "max_depth is out of range", got=self.max_depth, expected="1 to 100000"
            )

    @classmethod
    def of(cls, x: ParseOptions | Mapping[str, Any] | None) -> ParseOptions:
        """Options from None, a mapping of their fields, or options.

        Raises BadOptions for anything else, an unknown name, or a value out of range.

        >>> ParseOptions.of({"coerce": "lossy"}).coerce
        'lossy'
        >>> ParseOptions.of(None) is DEFAULT_OPTIONS
        True
        """
        if x is None:
            return DEFAULT_OPTIONS
        if isinstance(x, ParseOptions):
            return x
        if not isinstance(x, Mapping):
            raise BadOptions(
                "options are ParseOptions or a mapping",
                got=type(x).__name__,
                expected='such as {"coerce": "safe"}',
            )

        names = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(str(key) for key in x if key not in names)
        if unknown:
            raise BadOptions(
                "unknown option",
                got=", ".join(unknown),
                expected=", ".join(sorted(names)),
                hint=_ELSEWHERE.get(unknown[0]) or near(unknown[0], names),
            )
        return cls(**x)

    def to_dict(self) -> dict[str, Any]:
        """Return every field by its name, as `of` takes it.

        >>> ParseOptions.of(DEFAULT_OPTIONS.to_dict()) == DEFAULT_OPTIONS
        True
        """
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}


def _is_depth(x: object) -> bool:
    # True itself is not a number here.
    if isinstance(x, bool) or not isinstance(x, int):
        return False
    return 1 <= x <= _MOST_DEPTH


# Made and checked once: most parses are called without options.
DEFAULT_OPTIONS = ParseOptions()
