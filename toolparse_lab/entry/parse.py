"""`parse` and `stream`: the entry points. Everything that they take is checked here, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Never, TypeAlias

from ..core.errors import BadOptions, UnreadableInput
from ..core.toolspec import ToolsLike, tool_specs
from ..core.types import (
    DEFAULT_OPTIONS,
    ParseOptions,
    ParseResult,
    Problem,
    RawLike,
    RequestLike,
    TokenizerLike,
)
from ..core.types.call import is_meant
from ..core.types.server import CUT, UNREAD_PART
from ..core.types.spans import Severity
from ..formats.base import Protocol
from ..formats.like import ProtocolLike
from ..formats.registry import protocol_of
from ..parser.engine import StreamParser, auto_protocol
from ..parser.recognition.lost_calls import lost_by_response
from ..parser.state import Setting, setting_of
from ..parser.whole import note, read_whole

if TYPE_CHECKING:
    from .capture import Captured
    from .foreign.parser import ForeignParser

    NewParser: TypeAlias = Callable[..., StreamParser | ForeignParser]
    """makes a parser for one text; takes `silent` and `request`"""

# The beginning of an event stream, of the base64 of a binary one, or of a JSON object that may have
# a response's members.
_RESPONSE = re.compile(
    "[\ufeff \t\r\n]*+(?:data:|event:|id:|retry:|:|AA[A-Za-z0-9+/]{14}|(?P<json>[{\\[]))"
)
# One is in the JSON of every response.
_ENVELOPES = ('"choices"', '"output"', '"candidates"', '"done"')


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
    """Parse one answer.

    The content never makes it raise.

    Args:
        raw: the model's text. Or a client's response (see `Captured`): an object, a dict, stream
            chunks, an event stream or JSON. Its first answer is parsed: the text, or the provider's
            own calls as canonical JSON, which 'auto' parses by `openai_json`. If the response's
            tokens contain more text than its content, they are parsed, and `result.blame` compares
            the server's own calls.
        protocol: an id of `protocols()`, 'auto', a Protocol, a protocol object of your own with the
            methods of an AI SDK's (see `foreign`), or a function that makes one.
        tools: the tools that the model knows of, in any shape `ToolSpec.of` takes.
        options: ParseOptions or a mapping.
        request: OpenAI messages, or a mapping with `messages`. A call that is copied from a user, a
            tool or a document there is an echo and never `ok`, unless `echoes` allows it.
            `call.source` returns the places of its values.
        tokenizer: for responses with token ids, a function from a list of ids to text, or an object
            whose `decode` is one.

    Raises UnknownProtocol, BadToolSpec, BadOptions or UnreadableInput for bad arguments, such as an
    object without an answer.

    >>> text = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    >>> parse(text, "hermes").calls[0].arguments
    {'a': 1}
    """
    if misplaced:
        raise _misplaced_error("parse", misplaced)
    # A first look at a text, which costs little; `capture` looks closer.
    begin = _RESPONSE.match(raw) if isinstance(raw, str) else None
    if isinstance(raw, str) and (
        begin is None or (begin["json"] and not any(name in raw for name in _ENVELOPES))
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
    """Parse a text that is known to be the model's own, even if it looks like a response."""
    return Reader(protocol, tools, options).parse(raw, request)


def with_lost_calls(
    result: ParseResult, finish_reason: str | None, reasoning: str = "", *, called: bool = False
) -> ParseResult:
    """Return a result that says which call the response around its text lost, if it did.

    finish_reason, reasoning: the provider's own. called: there are calls next to the text as well.
    """
    if result.calls or called or not (finish_reason or reasoning):
        return result

    def reader(text: str, protocol: str) -> ParseResult:
        return parse_text(text, protocol, result.tools)

    problems = lost_by_response(result, finish_reason, reasoning, reader)
    return replace(result, problems=(*result.problems, *problems)) if problems else result


def with_unread(result: ParseResult, unread: Sequence[str]) -> ParseResult:
    """Return a result that says which parts of the response around its text nobody knows.

    unread: as `Captured.unread`. Any of them may be a call, so that an answer without calls fails.
    """
    if not unread:
        return result
    severity: Severity = "warning" if result.calls else "error"
    problems = [
        Problem("read", UNREAD_PART, severity, f"the response has a part of a kind that nobody "
                f"knows: {part}")
        for part in unread
    ]  # fmt: skip
    return replace(result, problems=(*result.problems, *problems))


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

    Raises as `parse` does; the text never makes it raise.

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
    """`parse_text` and `stream` for any number of texts, all else looked at once."""

    def __init__(
        self,
        protocol: ProtocolLike,
        tools: ToolsLike = None,
        options: ParseOptions | Mapping[str, Any] | None = None,
    ) -> None:
        specs = tool_specs(tools)
        parse_options = DEFAULT_OPTIONS if options is None else ParseOptions.of(options)
        self._parser: NewParser
        self._setting: Setting | None = None  # of our own parser
        if isinstance(protocol, str) and protocol == "auto":
            protocol = auto_protocol()
        elif ":" in protocol if isinstance(protocol, str) else not isinstance(protocol, Protocol):
            # Somebody else's: an object, a factory, or the name of a reader as `vllm:hermes`.
            from .foreign.protocol import ForeignProtocol, adapt  # start-up time: rare

            adapted = adapt(protocol)
            if isinstance(adapted, ForeignProtocol):
                from .foreign.parser import ForeignParser  # start-up time, as above

                self._parser = partial(ForeignParser, adapted, specs, parse_options)
                return
            protocol = adapted or protocol

        self._setting = setting_of(protocol_of(protocol), specs, parse_options)
        self._parser = partial(StreamParser, self._setting)

    def parse(self, raw: str, request: Any = None) -> ParseResult:
        """Return what `parse_text` returns. Raises UnreadableInput for anything but a str."""
        if not isinstance(raw, str):
            raise UnreadableInput(
                "raw is the text of one answer", got=type(raw).__name__, expected="str"
            )
        if self._setting is not None:
            whole = read_whole(self._setting, raw, request)
            if whole is not None:
                return whole
        parser = self._parser(silent=True, request=request)
        parser.feed(raw)
        result = parser.close()
        calls = result.calls
        edited = not calls or calls[0].edits
        if not edited and isinstance(parser, StreamParser) and not parser.is_plain:
            note(parser.setting, calls)
        return result

    def stream(self, request: Any = None) -> StreamParser | ForeignParser:
        """Return a push parser for one text."""
        return self._parser(request=request)


# Responses of clients, from which the text has to be taken first.


def _answer_in(response: Any, tokenizer: Any) -> Captured | None:
    # None for a text without an answer, which is itself one. Raises UnreadableInput for bytes,
    # but a stream of AWS's, and for an object without an answer or with an error.
    from .capture import capture, frames_in  # start-up time: most texts are no response

    is_binary = isinstance(response, (bytes, bytearray, memoryview))
    if is_binary and frames_in(bytes(response)) is None:
        raise UnreadableInput(
            "raw is a text or a response",
            got=type(response).__name__,
            hint="decode the bytes first",
        )

    try:
        answer = capture(response, tokenizer=tokenizer)
        said = answer.raw or answer.content or answer.tool_calls or answer.refusal
        # A text never makes it raise.
        if answer.error is None or said or isinstance(response, str):
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
    # The content may say more than the server's own calls: the reader is that of a text, or none of
    # the calls has arguments.
    holds_more = bool(answer.native and server.calls and answer.content.strip()) and (
        all(call.arguments.strip() in ("", "{}") for call in server.calls)
        if protocol == "auto"
        else not (isinstance(protocol, str) and protocol_of(protocol).id == "openai_json")
    )
    if holds_more:
        of_text = parse_text(answer.content, protocol, tools, options, request=request)
        if any(map(is_meant, of_text.calls)):
            result, server = of_text, replace(server, independent=True)
    if result is None:
        result = parse_text(answer.raw, reader, tools, options, request=request)
    if server.calls and not server.independent and not result.calls:
        # The reader of a text finds none in the server's own, and they may be broken.
        result = parse_text(answer.raw, "openai_json", tools, options, request=request)
    result = with_unread(result, answer.unread)
    if answer.error or answer.cut:
        why = answer.error or "it has no finish part"
        problem = Problem("read", CUT, "warning", f"the stream of the response broke off: {why}")
        result = replace(result, problems=(*result.problems, problem))
    result = with_lost_calls(
        replace(result, server=server),
        answer.finish_reason,
        answer.reasoning,
        called=bool(server.calls),
    )
    return result.with_tokens(answer.tokens and answer.tokens.of_text(result.raw))
