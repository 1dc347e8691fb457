"""The types of the arguments of public functions, where more than one shape will do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias


class HasChoices(Protocol):
    """A chat or text completion, or a chunk of one, as an object of any client."""

    @property
    def choices(self) -> Any:
        """Its answers."""


class HasOutput(Protocol):
    """An answer of the Responses API, as an object."""

    @property
    def output(self) -> Any:
        """Its items."""


class HasContent(Protocol):
    """A message, as an object of any client."""

    @property
    def content(self) -> Any:
        """Its text, or its parts."""


class HasDecode(Protocol):
    """A tokenizer."""

    @property
    def decode(self) -> Callable[..., str]:
        """A function from a list of ids to text."""


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
