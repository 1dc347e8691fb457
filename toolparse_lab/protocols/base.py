"""What a protocol is: an envelope (where calls open and close) and a codec (what their bodies say). Pure, no state.

The engine asks the envelope at each possible opener, gets a scanner for the body, and hands the finished body to the
codec once. Neither sees the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, final
from typing import Protocol as Interface

from ..scan import Scanner
from ..toolspec import ToolSpec
from ..types import Edit, Problem, Span, Step
from ..values import Value

Tools: TypeAlias = Mapping[str, ToolSpec]
"""name -> tool"""


@final
class NeedMore:
    """The text so far does not say yet whether this is an opener."""


NEED_MORE: Final = NeedMore()


@dataclass(frozen=True, slots=True)
class Opening:
    """What stands at an opener. Offsets are relative to the beginning of the opener.

    end: behind the opener. name: the tool, where the opener names it. whole: the opener is the whole call.
    speculative: without delimiters; if the body is no good call, the text is text. owner: the protocol that opened
    it, where several are read at once.
    """

    end: int
    kind: Literal["call", "reasoning", "markup"] = "call"
    name: str = ""
    name_span: Span | None = None
    wire_id: str | None = None
    whole: bool = False
    speculative: bool = False
    owner: Protocol | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a codec may know of a body: whether its closer was seen, what is allowed, and the tools."""

    opening: Opening
    closed: bool
    repair: bool
    max_depth: int
    tools: Tools


Places: TypeAlias = Mapping[str, tuple[int, int]]
"""JSON Pointer into the arguments -> (start, end) in the body, strings without their quotes."""


def _nowhere() -> Places:
    return {}


@dataclass(frozen=True, slots=True)
class Decoded:
    """One call read out of a body. Spans and edits count from the beginning of the body.

    arguments: the arguments as found. places: computed when asked. unescape: offsets in a text's raw characters for
    each character of what they mean, or None where that cannot be told.
    """

    name: str
    arguments: Value
    name_span: Span | None = None
    wire_id: str | None = None
    edits: tuple[Edit, ...] = ()
    steps: tuple[Step, ...] = ()
    problems: tuple[Problem, ...] = ()
    readable: bool = True
    places: Callable[[], Places] = field(default=_nowhere, compare=False)
    unescape: Callable[[str], list[int] | None] = field(default=lambda _: None, compare=False)


class Envelope(Interface):
    """Where calls, reasoning and markup open."""

    def heads(self, tools: Tools) -> tuple[str, ...]:
        """The literals an opener may begin with."""
        ...

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        """What opens at `pos`, where one of the heads stands; None when it is ordinary text."""
        ...

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        """A new scanner for the body behind `opening`."""
        ...

    def speculates(self, text: str) -> Opening | NeedMore | None:
        """Whether the very beginning of the answer, white space aside, is a call without an opener."""
        ...


class Codec(Interface):
    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """The calls of one body. Raises rjson.damage.Refusal when it cannot be read without inventing."""
        ...

    def strict(self, body: str, reading: Reading) -> bool:
        """Whether the body reads without any repair."""
        ...

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """The call as this format writes it, delimiters included. Raises UnwritableCall."""
        ...


@dataclass(frozen=True, slots=True)
class Protocol:
    """A wire format. `tags` say what it is: 'delimited', 'schema-typed' (right only with the schema), …"""

    id: str
    envelope: Envelope
    codec: Codec
    aliases: tuple[str, ...] = ()
    title: str = ""
    tags: frozenset[str] = frozenset()
    result: Callable[[str, Any], str] = field(default=lambda name, content: "", compare=False)

    def write_call(self, name: str, arguments_json: str, tool: ToolSpec | None = None) -> str:
        """The call as this format writes it; raises UnwritableCall if it would not read back the same."""
        return self.codec.write(name, arguments_json, tool)
