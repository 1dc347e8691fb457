"""`parse` and `stream`: the two doors to the engine. Everything they take is checked here, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from .engine import Setting, StreamParser
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

    raw: the text as the model wrote it; or a response of a client, as an object or a dict, a list of stream chunks, or
    the text of an event stream or of a response's JSON, of which the first answer is read (see `Captured`): its text,
    or with calls that the provider read itself their canonical JSON, which 'auto' leaves to the protocol `openai_json`.
    protocol: an id of
    `protocols()`, 'auto', a Protocol, or a protocol object of your own with the methods of an AI SDK's (see `foreign`),
    or a function that makes one. tools: what the model was told of, in any shape `ToolSpec.of` takes. options:
    ParseOptions or a mapping.

    Raises UnknownProtocol, BadToolSpec, BadOptions or UnreadableInput for what is wrong with the call itself, such as
    an object that holds no answer.

    >>> parse('<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>', "hermes").calls[0].arguments
    {'a': 1}
    """
    if not isinstance(raw, str) or _may_be_response(raw):
        raw, protocol = _read_response(raw, protocol)
    return parse_text(raw, protocol, tools, options)


def parse_text(
    raw: str, protocol: Any, tools: Any = None, options: ParseOptions | Mapping[str, Any] | None = None
) -> ParseResult:
    """`parse` of a text that is known to be the model's own."""
    return Reader(protocol, tools, options).parse(raw)


_BLANK = "\ufeff \t\r\n"
_EVENT_LINES = ("data:", "event:", "id:", "retry:", ":")
_MEMBERS = ('"choices"', '"output"')


def _may_be_response(text: str) -> bool:
    """A first look that costs little; `capture` looks closer."""
    begin = text.lstrip(_BLANK)
    return begin.startswith(_EVENT_LINES) or (begin.startswith("{") and any(m in begin for m in _MEMBERS))


def _read_response(response: Any, protocol: Any) -> tuple[str, Any]:
    """What is to be parsed of a response, and by which protocol. A text that holds no answer is itself one."""
    from .capture import capture

    if isinstance(response, (bytes, bytearray, memoryview)):
        raise UnreadableInput("raw is a text or a response", got=type(response).__name__, hint="decode the bytes first")
    try:
        found = capture(response)
        if found.error is not None and not (found.content or found.tool_calls or found.refusal):
            raise UnreadableInput(
                "this response is an error and holds no answer", got=found.error, expected="an answer of a model"
            )
    except UnreadableInput:
        if isinstance(response, str):
            return response, protocol
        raise
    native = protocol_of(protocol).id == "openai_json" if isinstance(protocol, str) and protocol != "auto" else False
    if native and found.fidelity != "replayed":
        found = found.as_native()
    return found.raw, "openai_json" if protocol == "auto" and found.native else protocol


def stream(
    protocol: Any, tools: Any = None, options: ParseOptions | Mapping[str, Any] | None = None
) -> StreamParser | ForeignParser:
    """A push parser: `.feed(chunk)` returns events, `.close()` the result. protocol, tools, options: as for `parse`."""
    return Reader(protocol, tools, options).stream()


class Reader:
    """`parse_text` and `stream` for any number of texts: what does not depend on the text is looked at once."""

    __slots__ = ("_make",)

    def __init__(
        self, protocol: Any, tools: Any = None, options: ParseOptions | Mapping[str, Any] | None = None
    ) -> None:
        """Raises as `parse` does."""
        specs = tool_specs(tools)
        if protocol == "auto":
            from .auto import AUTO

            protocol = AUTO
        self._make: Callable[..., StreamParser | ForeignParser]
        if not isinstance(protocol, (str, Protocol)):
            from .foreign import ForeignProtocol, adapt

            known = adapt(protocol)
            if isinstance(known, ForeignProtocol):
                from .foreign_parse import ForeignParser

                self._make = partial(ForeignParser, known, specs, ParseOptions.of(options))
                return
            protocol = known or protocol
        self._make = partial(StreamParser, Setting(protocol_of(protocol), specs, ParseOptions.of(options)))

    def parse(self, raw: str) -> ParseResult:
        """What a text says that is known to be the model's own, whatever it looks like: a model may write a stream."""
        if not isinstance(raw, str):
            raise UnreadableInput("raw is the text of one answer", got=type(raw).__name__, expected="str")
        parser = self._make(silent=True)
        parser.feed(raw)
        return parser.close()

    def stream(self) -> StreamParser | ForeignParser:
        """A push parser for one text."""
        return self._make()
