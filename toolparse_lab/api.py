"""`parse` and `stream`: the two doors to the engine. Everything they take is checked here, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .engine import StreamParser
from .errors import UnreadableInput
from .protocols.base import Protocol
from .registry import protocol_of
from .toolspec import tool_specs
from .types import ParseOptions, ParseResult

if TYPE_CHECKING:
    from .foreign_parse import ForeignParser


def parse(
    raw: Any,
    protocol: Any = "auto",
    tools: Any = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> ParseResult:
    """Reads one answer. Never raises on account of what it says.

    raw: the text as the model wrote it. protocol: an id of `protocols()`, 'auto', a Protocol, or a protocol object of
    your own with the methods of an AI SDK's (see `foreign`), or a function that makes one. tools: what the model was
    told of, in any shape `ToolSpec.of` takes. options: ParseOptions or a mapping.

    Raises UnknownProtocol, BadToolSpec, BadOptions or UnreadableInput for what is wrong with the call itself.

    >>> parse('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', "hermes").calls[0].arguments
    {'a': 1}
    """
    if not isinstance(raw, str):
        raise UnreadableInput("raw is the text of one answer", got=type(raw).__name__, expected="str")
    parser = stream(protocol, tools, options)
    parser.feed(raw)
    return parser.close()


def stream(
    protocol: Any, tools: Any = None, options: ParseOptions | Mapping[str, Any] | None = None
) -> StreamParser | ForeignParser:
    """A push parser: `.feed(chunk)` returns events, `.close()` the result. protocol, tools, options: as for `parse`."""
    specs = tool_specs(tools)
    if protocol == "auto":
        from .auto import AUTO

        protocol = AUTO
    if not isinstance(protocol, (str, Protocol)):
        from .foreign import ForeignProtocol, adapt

        known = adapt(protocol)
        if isinstance(known, ForeignProtocol):
            from .foreign_parse import ForeignParser

            return ForeignParser(known, specs, ParseOptions.of(options))
        protocol = known or protocol
    return StreamParser(protocol_of(protocol), specs, ParseOptions.of(options))
