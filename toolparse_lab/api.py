"""`parse` and `stream`: the two doors to the engine. Everything they take is checked here, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine import StreamParser
from .errors import UnreadableInput
from .protocols.base import Protocol
from .registry import protocol_of
from .toolspec import tool_specs
from .types import ParseOptions, ParseResult


def parse(
    raw: Any,
    protocol: str | Protocol = "auto",
    tools: Any = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> ParseResult:
    """Reads one answer. Never raises on account of what it says.

    raw: the text as the model wrote it. protocol: an id of `protocols()`, 'auto', or a Protocol. tools: what the
    model was told of, in any shape `ToolSpec.of` takes. options: ParseOptions or a mapping.

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
    protocol: str | Protocol, tools: Any = None, options: ParseOptions | Mapping[str, Any] | None = None
) -> StreamParser:
    """A push parser: `.feed(chunk)` returns events, `.close()` the result."""
    specs = tool_specs(tools)
    if protocol == "auto":
        from .auto import AUTO

        protocol = AUTO
    return StreamParser(protocol_of(protocol), specs, ParseOptions.of(options))
