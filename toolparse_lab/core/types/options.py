"""What a caller gives: the options of a parse, and the types of arguments of public functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

from ..errors import BadOptions, near

# Options are part of every stored result, so that a result says how it came about. A new option
# therefore has a default under which older results mean the same as before.

Policy: TypeAlias = Literal["none", "safe", "middleware", "go-strconv", "lossy"]
Reasoning: TypeAlias = Literal["auto", "prefilled", "none"]
EchoChoice: TypeAlias = Literal["refuse", "allow"]
UnknownArguments: TypeAlias = Literal["keep", "drop", "refuse"]

VERSION = 1
"""of the stored form of results, options included"""

_SWITCHES = ("repair", "recover", "validate")
_MOST_DEPTH = 100_000
# What people write for an option -> what to do.
_ELSEWHERE = {
    "policy": "the policy of coercion is the option coerce: {'coerce': 'safe'}",
    "tool_choice": "tp.parse reads any text; create_tool_middleware takes a tool choice",
}


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """The options of a parse.

    The result keeps them.

    Attributes:
        repair: read damaged bodies, each repair an edit.
        recover: read calls outside their format.
        coerce: the coercion policy.
        validate: check arguments against the schema.
        reasoning: 'auto' reads think tags, 'prefilled' begins inside one, 'none' reads them as
            text.
        max_depth: nesting beyond it is a problem, never an error.
        echoes: 'refuse' or 'allow' (with a warning) a call that is copied from a user, a tool or a
            document in the request.
        unchecked: 'allow' or 'refuse' a call with a value that its schema cannot check, because a
            part of the schema cannot be used.
        unknown_arguments: 'keep' (with a note), 'drop' or 'refuse' arguments that the tool does not
            have, where its schema says nothing of them.
        quotes: 'refuse' or 'allow' (with a warning) a call that the text only shows.

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
    unchecked: EchoChoice = "allow"
    unknown_arguments: UnknownArguments = "keep"
    quotes: EchoChoice = "refuse"

    def __post_init__(self) -> None:
        # A stored 1 or "false" would pass for a switch, so only bool itself is one.
        for name in _SWITCHES:
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise BadOptions(
                    f"option {name!r} is a switch", got=value, expected="True or False"
                )

        for what, value, words, expected in (
            ("coercion policy", self.coerce, Policy, ", ".join(get_args(Policy))),
            ("reasoning mode", self.reasoning, Reasoning, "auto, prefilled or none"),
            ("choice for echoes", self.echoes, EchoChoice, "refuse or allow"),
            ("choice for unchecked", self.unchecked, EchoChoice, "refuse or allow"),
            (
                "choice for unknown_arguments",
                self.unknown_arguments,
                UnknownArguments,
                "keep, drop or refuse",
            ),
            ("choice for quotes", self.quotes, EchoChoice, "refuse or allow"),
        ):
            if value not in get_args(words):
                raise BadOptions(f"unknown {what}", got=value, expected=expected)
        # True itself is not a number here.
        is_number = isinstance(self.max_depth, int) and not isinstance(self.max_depth, bool)
        if not is_number or not 1 <= self.max_depth <= _MOST_DEPTH:
            raise BadOptions(
                "max_depth is out of range", got=self.max_depth, expected="1 to 100000"
            )

    @classmethod
    def of(cls, x: ParseOptions | Mapping[str, Any] | None) -> ParseOptions:
        """Return options from None, a mapping of fields, or ParseOptions.

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


# Made and checked once: most parses are called without options.
DEFAULT_OPTIONS = ParseOptions()


# arguments of public functions, where more than one shape will do


class HasChoices(Protocol):
    """A chat or text completion, or a chunk of one, as an object of any client."""

    @property
    def choices(self) -> Any: ...


class HasOutput(Protocol):
    """An answer of the Responses API, as an object."""

    @property
    def output(self) -> Any: ...


class HasContent(Protocol):
    """A message, as an object of any client: its content is text or parts."""

    @property
    def content(self) -> Any: ...


class HasDecode(Protocol):
    """A tokenizer: `decode` is a function from a list of ids to text."""

    @property
    def decode(self) -> Callable[..., str]: ...


RawLike: TypeAlias = (
    "str | Mapping[str, Any] | Iterable[RawLike] | HasChoices | HasOutput | HasContent"
)
"""A model's text, or the response that holds it: an object or dict of any client, its chunks."""

RequestLike: TypeAlias = "Sequence[Mapping[str, Any]] | Mapping[str, Any]"
"""OpenAI messages, or a mapping with `messages`."""

TokenizerLike: TypeAlias = "Callable[[list[int]], str] | HasDecode"
"""A function from token ids to text, or an object whose `decode` is one."""

JsonSchema: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any]] | bool | str | None"
"""A JSON Schema: a mapping, true or false, its JSON text, or None for no schema; or the parameter
list of a Go agent."""

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
"""A JSON value; numbers that a float would change are `Num` or `BigNum`, which are numbers too."""
