"""`parse` and `stream`: the two doors to the engine.

Everything they take is checked here, once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Never, TypeAlias

from ..core.errors import BadOptions, UnreadableInput
from ..core.toolspec import ToolsLike, tool_specs
from ..core.types import (
    ParseOptions,
    ParseResult,
    RawLike,
    RequestLike,
    ServerReading,
    TokenizerLike,
)
from ..formats.base import Protocol
from ..formats.like import ProtocolLike
from ..formats.registry import protocol_of
from .ending import lost_by_response
from .state import setting_of
from .stream_parser import StreamParser

if TYPE_CHECKING:
    from .capture import Captured
    from .foreign.parser import ForeignParser

    NewParser: TypeAlias = Callable[..., StreamParser | ForeignParser]
    """makes a parser for one text; takes `silent` and `request`"""

# The beginning of an event stream, or of a JSON object that may have a response's members.
_RESPONSE = re.compile("[\ufeff \t\r\n]*+(?:data:|event:|id:|retry:|:|(?P<json>\\{))")


def parse(
    raw: RawLike,
    protocol: ProtocolLike = "auto",
    tools: ToolsLike = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
    *,
    request: RequestLike | None = None,
    tokenizer: TokenizerLike | None = None,
    **misplaced: Never,
) -> ParseResult:
    """Read one answer.

    Never raises on account of its content.

    Args:
        raw: the text as the model wrote it. Or a response of a client, as an object or a dict, a
            list of stream chunks, or the text of an event stream or of a response's JSON, of which
            the first answer is read (see `Captured`): its text, or, with calls that the provider
            read itself, their canonical JSON, which 'auto' leaves to the protocol `openai_json`. If
            its tokens say more than its content, the parser reads them, and `result.blame` compares
            the server's own calls.
        protocol: an id of `protocols()`, 'auto', a Protocol, a protocol object of your own with the
            methods of an AI SDK's (see `foreign`), or a function that makes one.
        tools: the tools that the model knows of, in any shape `ToolSpec.of` takes.
        options: ParseOptions or a mapping.
        request: the request, as OpenAI messages or a mapping with `messages`. A call whose own text
            stands there, in texts of users, tools or documents, is an echo and never `ok`. And
            `call.source` says where values are from.
        tokenizer: for responses with token ids, a function from a list of ids to text, or an object
            whose `decode` is one.

    Raises UnknownProtocol, BadToolSpec, BadOptions or UnreadableInput for the fault with the call
    itself, such as an object that holds no answer.

    >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    >>> parse(text, "hermes").calls[0].arguments
    {'a': 1}
    """
    if misplaced:
        raise _misplaced_error("parse", misplaced)
    # A first look at a text, which costs little; `capture` looks closer.
    begin = _RESPONSE.match(raw) if isinstance(raw, str) else None
    if isinstance(raw, str) and (
        begin is None or (begin["json"] and '"choices"' not in raw and '"output"' not in raw)
    ):
        return Reader(protocol, tools, options).parse(raw, request)
    answer = _answer_in(raw, tokenizer)
    if answer is None:
        return parse_text(str(raw), protocol, tools, options, request=request)
    return _parse_answer(answer, protocol, tools, options, request)


def parse_text(
    raw: str,
    protocol: ProtocolLike,
    tools: ToolsLike = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
    *,
    request: RequestLike | None = None,
) -> ParseResult:
    """`parse` of a text known to be the model's own.

    Unlike `parse` it never takes the text for a response, even if it looks like one.
    """
    return Reader(protocol, tools, options).parse(raw, request)


def with_lost_calls(
    result: ParseResult, finish_reason: str | None, reasoning: str = "", *, called: bool = False
) -> ParseResult:
    """Return a result that says which call the response around its text lost, if it did.

    finish_reason, reasoning: the words of the provider beside the text. called: there are calls
    beside the text as well.
    """
    if result.calls or called or not (finish_reason or reasoning):
        return result

    def reader(text: str, protocol: str) -> ParseResult:
        return parse_text(text, protocol, result.tools)

    problems = lost_by_response(result, finish_reason, reasoning, reader)
    return replace(result, problems=(*result.problems, *problems)) if problems else result


def stream(
    protocol: ProtocolLike,
    tools: ToolsLike = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
    *,
    request: RequestLike | None = None,
    **misplaced: Never,
) -> StreamParser | ForeignParser:
    """Return a push parser: `.feed(chunk)` returns events, `.close()` the result.

    Args:
        protocol, tools, options, request: as for `parse`.

    Raises as `parse` does, and never on account of the text.

    >>> import toolparse_lab as tp
    >>> parser = tp.stream("hermes")
    >>> parser.feed("Hello <tool")
    (TextDelta(span=Span(start=0, end=6), escaped=False),)
    >>> parser.close().text
    'Hello <tool'
    """
    if misplaced:
        raise _misplaced_error("stream", misplaced)
    return Reader(protocol, tools, options).stream(request)


def _misplaced_error(function: str, misplaced: Mapping[str, object]) -> Exception:
    # BadOptions for the members of ParseOptions, which belong in `options`, else Python's own
    # TypeError.
    members = {option.name for option in fields(ParseOptions)}
    of_options = {name: value for name, value in misplaced.items() if name in members}
    if of_options:
        return BadOptions(
            f"{function} takes this as a member of `options`",
            got=", ".join(of_options),
            hint=f"options={of_options!r}",
        )
    name = next(iter(misplaced))
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}")


class Reader:
    """`parse_text` and `stream` for any number of texts.

    All that does not depend on the text is looked at once, when the reader is made.
    """

    def __init__(
        self,
        protocol: ProtocolLike,
        tools: ToolsLike = None,
        options: ParseOptions | Mapping[str, Any] | None = None,
    ) -> None:
        specs, parse_options = tool_specs(tools), ParseOptions.of(options)
        self._parser: NewParser
        if isinstance(protocol, str) and protocol == "auto":
            from ..formats.auto import AUTO  # start-up time: not every program reads every format

            protocol = AUTO
        elif not isinstance(protocol, (str, Protocol)):
            from .foreign.protocol import ForeignProtocol, adapt  # start-up time: rare

            adapted = adapt(protocol)
            if isinstance(adapted, ForeignProtocol):
                from .foreign.parser import ForeignParser  # start-up time, as above

                self._parser = partial(ForeignParser, adapted, specs, parse_options)
                return
            protocol = adapted or protocol

        self._parser = partial(
            StreamParser, setting_of(protocol_of(protocol), specs, parse_options)
        )

    def parse(self, raw: str, request: Any = None) -> ParseResult:
        """Return the result of a text known to be the model's own, whatever it looks like: a model
        may write a stream. request: the request, as for `parse`.

        Raises UnreadableInput for anything that is not a str.
        """
        if not isinstance(raw, str):
            raise UnreadableInput(
                "raw is the text of one answer", got=type(raw).__name__, expected="str"
            )
        parser = self._parser(silent=True, request=request)
        parser.feed(raw)
        return parser.close()

    def stream(self, request: Any = None) -> StreamParser | ForeignParser:
        """Return a push parser for one text. request: the request, as for `parse`."""
        return self._parser(request=request)


# Responses of clients, from which the text has to be taken first.


def _answer_in(response: Any, tokenizer: Any) -> Captured | None:
    # None for a text without an answer, which is itself one. Raises UnreadableInput for bytes,
    # and for an object without an answer or with an error.
    if isinstance(response, (bytes, bytearray, memoryview)):
        raise UnreadableInput(
            "raw is a text or a response",
            got=type(response).__name__,
            hint="decode the bytes first",
        )

    from .capture import capture  # start-up time: most texts are no response

    try:
        answer = capture(response, tokenizer=tokenizer)
        said = answer.raw or answer.content or answer.tool_calls or answer.refusal
        if answer.error is None or said:
            return answer
        raise UnreadableInput(
            "this response is an error and holds no answer",
            got=answer.error,
            expected="an answer of a model",
        )
    except UnreadableInput:
        if isinstance(response, str):
            return None
        raise


def _parse_answer(
    answer: Captured, protocol: Any, tools: Any, options: Any, request: Any
) -> ParseResult:
    # The result of the answer's text, next to the server's own calls and what it lost.
    reader = protocol
    if protocol == "auto":
        reader = "openai_json" if answer.native else protocol
    elif isinstance(protocol, str) and protocol_of(protocol).id == "openai_json":
        # Asked for the provider's own calls, an answer without any is one that makes none.
        answer = answer.as_native() if answer.fidelity != "replayed" else answer

    server = answer.server()
    if server is None:
        return parse_text(answer.raw, reader, tools, options, request=request)
    result = None
    if _holds_more(answer, server, protocol):
        of_text = parse_text(answer.content, protocol, tools, options, request=request)
        if any(call.readable for call in of_text.calls):
            result, server = of_text, replace(server, independent=True)
    if result is None:
        result = parse_text(answer.raw, reader, tools, options, request=request)
    if server.calls and not server.independent and not result.calls:
        # The reader of a text finds none in the server's own, and they may be broken.
        result = parse_text(answer.raw, "openai_json", tools, options, request=request)
    return with_lost_calls(
        replace(result, server=server),
        answer.finish_reason,
        answer.reasoning,
        called=bool(server.calls),
    )


def _holds_more(answer: Captured, server: ServerReading, protocol: Any) -> bool:
    # The content may say more than the server's own calls: the reader is that of a text, or none
    # of the calls has arguments.
    if not answer.native or not server.calls or not answer.content.strip():
        return False
    if protocol != "auto":
        return not (isinstance(protocol, str) and protocol_of(protocol).id == "openai_json")
    return all(call.arguments.strip() in ("", "{}") for call in server.calls)
