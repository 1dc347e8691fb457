"""`parse` and `stream`: the two doors to the engine, and the push parser that both run.

`feed` returns events, `close` returns the result; `parse` is one feed and one close. The engine
knows no format: it asks the protocol's envelope what opens where, hands the body's unsettled tail
to a scanner, and the finished body to the resolver. Text is final. Only calls and reasoning may be
retracted. Everything that the doors take is checked here, once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Never, TypeAlias

from ..core.errors import BadOptions, ParserClosed, UnreadableInput
from ..core.toolspec import ToolsLike, tool_specs
from ..core.types import (
    DEFAULT_OPTIONS,
    Event,
    ParseOptions,
    ParseResult,
    RawLike,
    RequestLike,
    Segment,
    Span,
    TokenizerLike,
    ToolCall,
)
from ..core.types.spans import make_segment
from ..formats.base import Codec, Message, Opening, Protocol
from ..formats.like import ProtocolLike
from ..formats.registry import protocol_of
from ..formats.scan import Close
from .body import BodyReader
from .echoes import echoes_of
from .ending import OF_SERVER, finish, lost_by_response
from .resolve import Body
from .state import SHORTEST, Feed, Log, Setting, not_a_chunk, setting_of
from .text import TextScanner
from .unclosed import find_turn_end


# How it works
# ------------
# A parser has four parts, each with one reason to change, and only runs the loop between them:
#
#     Feed           takes chunks in, and has the tail that is not settled yet
#     TextScanner    settles text up to the next opener
#     BodyReader     reads what an opener began: a call, reasoning, markup
#     Log            keeps segments, calls, problems and events
#
# The scanners know the feed and the log, and the body reader knows the text scanner; nothing knows
# the parser.
#
# State: either a body is open or text is. The loop gives the tail to the one that is:
#
#     open   step                      then
#     body   False                     wait for more text
#     body   True                      whichever is open now
#     text   an Opening                the body of it, if it has one
#     text   True                      text again
#     text   False, or no tail left    wait for more text
#
# Invariant: what is settled is a function of the text alone. Every decision that could depend on
# characters that have not come yet waits for them, or for the end; so a text gives the same result
# in any chunking.
#
# Cost: linear in the text, whatever the chunking. Each character is shown to a scanner once, apart
# from a bounded end of the tail; a long tail is looked at only when it has grown (see `state`), and
# going back has a budget (see `body`).
class StreamParser:
    """One text under one protocol: feed it chunks of any size, then close it.

    setting: may be that of many parsers. silent: it makes no events. inner: the text is a part of
    another one that is being read.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        silent: bool = False,
        request: Any = None,
        inner: bool = False,
    ) -> None:
        self._setting = setting
        self._inner = inner
        self.protocol = setting.protocol
        self.tools = setting.tools
        self.options = setting.options
        self._feed = feed = Feed()
        self._log = log = Log(silent, feed)
        if request is not None:
            log.echoes = echoes_of(request, setting.options, feed.text_of)
        self._text = text = TextScanner(setting, feed, log)
        self._bodies = BodyReader(setting, feed, log, text, _read_alone)
        self._closed = False
        self._result: ParseResult | None = None

    def feed(self, chunk: str | None) -> tuple[Event, ...]:
        """Return the events that `chunk` settles.

        None for None, which is the content of a stream's first and last delta. Raises ParserClosed
        after close and UnreadableInput for anything that is neither text nor None. Never on account
        of the text.
        """
        if self._closed:
            raise ParserClosed("this parser is closed", hint="make a new one with tp.stream()")
        if not isinstance(chunk, str):
            if chunk is None:
                return ()
            raise not_a_chunk(chunk)
        feed = self._feed
        more = feed.add(chunk)

        while more:
            self._run(False)
            # Most chunks go into the tail whole: no call to learn that nothing is left.
            more = feed.chunk != "" and feed.next_block()

        events = self._log.events
        if not events:
            return ()
        # As `last_events`, which would be a call more for every chunk.
        settled = tuple(events)
        events.clear()
        return settled

    def close(self) -> ParseResult:
        """Return the result, the same each time. What was held back becomes text, an open call is
        truncated.
        """
        if self._result is not None:
            return self._result
        self._closed = True
        feed, log, setting = self._feed, self._log, self._setting
        feed.end()
        self._run(True)
        if feed.base > log.text_start:
            log.end_text(feed.base)
        raw = "".join(feed.pieces)
        if log.texts or log.thought_end is not None or not log.calls:
            finish(log, raw, setting, None if self._inner else self._read_inner)
        self._result = ParseResult(
            raw, self.protocol.id, self.options, tuple(log.segments), tuple(log.calls),
            tuple(log.problems), setting.specs,
        )  # fmt: skip
        return self._result

    def last_events(self) -> tuple[Event, ...]:
        """Return the events that closing settled: none before it, and none a second time."""
        events = tuple(self._log.events)
        self._log.events.clear()
        return events

    def text_of(self, span: Span) -> str:
        """Return the characters of a span of the text fed so far, such as an event's."""
        return self._feed.text_of(span)

    def _read_inner(self, text: str, protocol: str) -> ParseResult:
        # A part of this text, read by the protocol of an id.
        setting, own = self._setting, self.protocol
        options = replace(self.options, reasoning="none")
        return _read_alone(
            setting_of(_auto() if protocol == "auto" else own, setting.specs, options), text
        )

    def _run(self, final: bool) -> None:
        # Settles as much of the tail as can be. final: no more text will come.
        feed, bodies = self._feed, self._bodies
        while True:
            body = bodies.open
            if body is not None:
                if not bodies.scan(body, final):
                    return
                continue
            if not feed.tail:
                return
            step = self._text.scan(final)
            if isinstance(step, Opening):
                bodies.begin(step)
            elif not step:
                return


def _read_alone(setting: Setting, text: str) -> ParseResult:
    # For a body that wants to know what its end would say.
    parser = StreamParser(setting, silent=True, inner=True)
    parser.feed(text)
    return parser.close()


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


@cache  # to find an import again takes as long as all else that is looked at
def _auto() -> Protocol:
    from ..formats.auto import AUTO  # start-up time: not every program reads every format

    return AUTO


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
            protocol = _auto()
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
        return parser.close()

    def stream(self, request: Any = None) -> StreamParser | ForeignParser:
        """Return a push parser for one text."""
        return self._parser(request=request)


# The usual answer read in one look: plain words at most, then calls in their own format.
#
# Of a whole answer of nothing but plain words, openers, bodies that their scanner closes at once,
# and line breaks between them, `StreamParser` decides the same whatever it is asked, so that the
# parts which only wait, quote, hold back and recover need not be made. At the first thing that is
# not of this kind the answer is left to it. The laws that compare a parse with every way to stream
# it hold the two to one answer.

_LONGEST = 4000  # characters: a longer answer is read in blocks
# Words that nothing in any format begins with, and that quote nothing.
_WORDS = re.compile(r"[^\W\d][\w ,.!?\n]*\n", re.ASCII)


def read_whole(setting: Setting, raw: str, request: Any) -> ParseResult | None:
    """Return the result of a plain answer, None for one that has to be parsed."""
    if len(raw) > _LONGEST or not raw.isascii() or setting.options.reasoning == "prefilled":
        return None
    protocol, resolver, tools = setting.protocol, setting.resolver, setting.tools
    envelope = protocol.envelope
    at = _first_opener(setting, raw)
    if at is None or (at and not _is_plain(setting, raw[:at])):
        return None
    # Many an answer is not for this way, and its first opener says so at once.
    opening = envelope.open(raw, at, False, tools)
    if not isinstance(opening, Opening) or opening.kind != "call" or _is_odd(opening, setting):
        return None
    if setting.speculates and (
        envelope.speculates(raw) is not None or envelope.resumes(raw, tools) is not None
    ):
        return None
    echoes = None if request is None else echoes_of(request, setting.options, lambda s: s.of(raw))
    segments: list[Segment] = [make_segment("text", Span(0, at))] if at else []
    calls: list[ToolCall] = []
    size = len(raw)
    while True:
        start = at + opening.end
        rest = raw[start:]
        close = envelope.scanner(opening, tools).scan(rest, False)
        if (
            not isinstance(close, Close)
            or close.kind != "closer"
            or close.hidden is not None
            or close.reached > close.end
            or close.name is not None
        ):
            return None
        owner = opening.owner.id if opening.owner else ""
        body = Body(rest[: close.start], start, at, True, "closer", owner)
        reading = resolver.reading(opening, True)
        if close.value is not None:
            reading.strict_value = body.text, close.value[0]
        decoded = resolver.decode(body, reading)
        if type(decoded) is not tuple or isinstance(decoded, Message) or len(decoded) != 1:
            return None
        if decoded[0].edits:
            return None
        end = start + close.end
        segment = make_segment("call", Span(at, end), Span(start, start + close.start), True)
        found = resolver.calls(decoded, body, segment, len(segments), len(calls))
        if echoes is not None:
            found = echoes.judge(found)
        segments.append(segment)
        calls += found
        after = end + 1 if raw[end : end + 1] == "\n" else end
        if after == size:
            break
        if raw[after] != "<" or after == end:
            return None
        segments.append(make_segment("text", Span(end, after)))
        at = after
        opening = envelope.open(raw, at, False, tools)
        if not isinstance(opening, Opening) or opening.kind != "call" or _is_odd(opening, setting):
            return None
    if after > end:
        segments.append(make_segment("text", Span(end, after)))
    # Calls without arguments may be a server's, whose text says more.
    is_server = protocol.id == "auto" or protocol.id in OF_SERVER
    if is_server and any(call.arguments_json == "{}" for call in calls):
        return None
    return ParseResult(
        raw, protocol.id, setting.options, tuple(segments), tuple(calls), (), setting.specs
    )


def _first_opener(setting: Setting, raw: str) -> int | None:
    # Where the first thing is that means something and is no line break.
    search, starts = setting.tokens.search, setting.line_starts
    pos = 0
    while token := search(raw, pos):
        pos = token.end()
        if token.lastgroup == "head":
            at = token.start()
            return at if raw[at] == "<" else None
        if token.lastgroup != "line" or raw[pos : pos + 1] in starts:
            return None
    return None


def _is_plain(setting: Setting, words: str) -> bool:
    # What the engine asks of text before a call, for text in which nothing can be quoted.
    if words[0] in setting.line_starts or not _WORDS.fullmatch(words) or words[-2:-1] == " ":
        return False
    if find_turn_end(words, "", True, False) is not None:
        return False
    closers = setting.closers if len(words) >= SHORTEST else None
    return closers is None or closers.search(words) is None


def _is_odd(opening: Opening, setting: Setting) -> bool:
    if opening.name or opening.whole or opening.speculative or opening.lone or not opening.end:
        return True
    codec = (opening.owner or setting.protocol).codec
    return type(codec).plain_call is not Codec.plain_call  # read in a short way of its own


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
    # The content may say more than the server's own calls: the reader is that of a text, or none of
    # the calls has arguments.
    holds_more = bool(answer.native and server.calls and answer.content.strip()) and (
        all(call.arguments.strip() in ("", "{}") for call in server.calls)
        if protocol == "auto"
        else not (isinstance(protocol, str) and protocol_of(protocol).id == "openai_json")
    )
    if holds_more:
        of_text = parse_text(answer.content, protocol, tools, options, request=request)
        if any(call.readable for call in of_text.calls):
            result, server = of_text, replace(server, independent=True)
    if result is None:
        result = parse_text(answer.raw, reader, tools, options, request=request)
    if server.calls and not server.independent and not result.calls:
        # The reader of a text finds none in the server's own, and they may be broken.
        result = parse_text(answer.raw, "openai_json", tools, options, request=request)
    result = with_lost_calls(
        replace(result, server=server),
        answer.finish_reason,
        answer.reasoning,
        called=bool(server.calls),
    )
    return result.with_tokens(answer.tokens and answer.tokens.of_text(result.raw))
