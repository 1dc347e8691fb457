"""One request and everything prepared for its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any

from ..core.errors import BadOptions
from ..core.toolspec import ToolSpec
from ..core.types import DEFAULT_OPTIONS, ParseOptions, ParseResult, calls_by_segment
from ..entry.foreign.protocol import AnyProtocol, ForeignProtocol, camel
from ..entry.parse import Reader
from ..formats.base import Protocol
from ..formats.json.call import JsonCall
from ..formats.prompt.messages import LeftOut
from ..formats.xml.morph_xml import ElementCall
from ..parser.recognition.echoes import judged
from .answer import was_cut
from .attempts import Attempts
from .choice import PLAIN, Choice, ChoiceForm, Kind
from .content_parts import OnError, call_safely, failure_of, is_failure
from .forced import parse_forced, parse_formatted, parse_like_ai_sdk_2
from .history import Writer

_DEFAULTS: Mapping[str, Any] = {"coerce": "middleware"}


@dataclass(frozen=True)
class Ways:
    """How a middleware reads and writes.

    batch, stream, choice: options for whole answers, streams and forced ones.
    ai_sdk_2: a forced answer is strict JSON, or a call of `unknown`; results are
    `{toolName, result}`; `tool_choice="none"` is an error.
    """

    batch: ParseOptions
    stream: ParseOptions
    choice: ParseOptions
    ai_sdk_2: bool = False

    def with_options(self, options: Mapping[str, Any]) -> Ways:
        """Return the same ways with other options of the parser.

        Raises BadOptions for one that is unknown or cannot have its value.
        """
        batch, stream, choice = (
            ParseOptions.of({**own.to_dict(), **options})
            for own in (self.batch, self.stream, self.choice)
        )
        return replace(self, batch=batch, stream=stream, choice=choice)


def ways_of(compat: Any, options: ParseOptions | Mapping[str, Any] | None, protocol: Any) -> Ways:
    """Return the ways of a preset, None or "ai-sdk-2". A value in `options` goes before it.

    protocol: the one the middleware is for. The old ways depend on it. Raises BadOptions.
    """
    if compat not in (None, "ai-sdk-2"):
        raise BadOptions("compat is a set of old ways", got=compat, expected="None or 'ai-sdk-2'")
    chosen: dict[str, Any]
    if isinstance(options, ParseOptions):
        # Those that differ from their defaults. A policy is always a choice: the middleware's own
        # default is another one.
        chosen = {
            name: value
            for name, value in options.to_dict().items()
            if name == "coerce" or value != getattr(DEFAULT_OPTIONS, name)
        }
    elif options is not None and not isinstance(options, Mapping):
        raise BadOptions(
            "options are ParseOptions or a mapping",
            got=type(options).__name__,
            expected='such as {"coerce": "safe"}',
        )
    else:
        chosen = dict(options or {})
    if compat is None:
        usual = ParseOptions.of({**_DEFAULTS, **chosen})
        return Ways(usual, usual, usual)
    # The oldest version differed by protocol and between batch and stream.
    codec = protocol.codec if isinstance(protocol, Protocol) else None
    batch: dict[str, Any] = {**_DEFAULTS, "recover": False}
    if isinstance(codec, ElementCall):
        batch["repair"] = False
    # Coercion came in for JSON formats with the whole answer alone; docs/port.md has the sources.
    uncoerced = {**batch, "coerce": "none"}
    stream = uncoerced if isinstance(codec, JsonCall) else batch
    return Ways(
        batch=ParseOptions.of({**batch, **chosen}),
        stream=ParseOptions.of({**stream, **chosen}),
        choice=ParseOptions.of({**uncoerced, **chosen}),
        ai_sdk_2=True,
    )


# options of a request

_PROVIDERS = ("providerOptions", "provider_options")
_OURS = ("toolCallMiddleware", "tool_call_middleware")
_UPPER = re.compile(r"(?<!^)(?=[A-Z])")
_PARSING = tuple(f.name for f in fields(ParseOptions) if f.name != "version")
_NAMES = ("on_error", "options", "original_tool_schemas", *_PARSING)
# What the TypeScript package carries from one of its steps to the next. A Turn does that here.
_STATE = ("original_tools", "tool_names", "tool_choice", "debug_summary", "dropped_provider_tools")


@dataclass(frozen=True)
class RequestOptions:
    """The options of one request. options: of the parser, those that it names. theirs: all of them
    as a protocol of somebody else's gets them, in either case.
    """

    on_error: OnError | None = None
    options: Mapping[str, Any] | None = None
    original_tool_schemas: Mapping[str, Any] | None = None
    theirs: Mapping[str, Any] | None = None


def take_request_options(
    params: Mapping[str, Any], protocol: AnyProtocol
) -> tuple[Mapping[str, Any], RequestOptions | None]:
    """Return the arguments of a request without our options, and these, None if it has none.

    Raises BadOptions for options that nobody knows or that cannot have this value. Names that only
    somebody else's protocol can know are no error with one.
    """
    if "toolparse" not in params and not any(key in params for key in _PROVIDERS):
        return params, None

    rest = dict(params)
    members = [rest.pop("toolparse", None)]
    for key in _PROVIDERS:
        if isinstance(rest.get(key), Mapping):
            others = dict(rest[key])
            members += [others.pop(name, None) for name in _OURS]
            # Options of the provider itself stay.
            rest[key] = others
            if not others:
                del rest[key]

    values: dict[str, Any] = {}
    theirs: dict[str, Any] | None = {} if isinstance(protocol, ForeignProtocol) else None
    for member in members:
        if member is None:  # says nothing
            continue
        if not isinstance(member, Mapping):
            raise BadOptions(
                "options of a request are a mapping",
                got=type(member).__name__,
                expected='such as {"on_error": …, "coerce": "safe"}',
            )
        named = {_UPPER.sub("_", str(key)).lower(): value for key, value in member.items()}
        if theirs is None:
            for name in named:
                if name not in _NAMES and name not in _STATE:
                    raise BadOptions.unknown("unknown option of a request", name, _NAMES)
        else:
            theirs |= {**member, **named, **{camel(name): named[name] for name in named}}
        values |= {k: v for k, v in named.items() if v is not None and k not in _STATE}
    if not values:
        return rest, None
    on_error = values.get("on_error")
    if on_error is not None and not callable(on_error):
        raise BadOptions(
            "on_error is called as on_error(message, metadata)", got=type(on_error).__name__
        )
    options = values.get("options") or {}
    if isinstance(options, ParseOptions):
        options = options.to_dict()
    ParseOptions.of(options)  # its errors, before anything is sent
    parsing = {**options, **{name: values[name] for name in _PARSING if name in values}}
    return rest, RequestOptions(on_error, parsing, values.get("original_tool_schemas"), theirs)


@dataclass(frozen=True)
class Turn:
    """One request and the allowed forms of its answer.

    Attributes:
        params: the request to send.
        tools: those that the model was told of, with the schemas to read arguments by. choice and
            tool_name: everything asked for.
        active: answers are parsed, or False if there are no tools or none may be called.
        forced: the answer must be one call.
        one_call: of the calls in a text only the first is made, because the request says
            `parallel_tool_calls=False`.
        messages: the conversation as the application gave it, by which echoes are known.
        many: a forced answer may be several calls.
        formatted: the answer is a call as JSON, or the form of the request's own response_format.
    """

    params: dict[str, Any]
    tools: tuple[ToolSpec, ...] = ()
    choice: Kind = "auto"
    tool_name: str | None = None
    active: bool = False
    forced: bool = False
    one_call: bool = False
    messages: tuple[Any, ...] = field(default=(), repr=False, compare=False)
    _prepared: Prepared | None = field(default=None, repr=False, compare=False)
    many: bool = False
    formatted: bool = False
    _documents: Any = field(default=None, repr=False, compare=False)
    # The middleware with the options that the request says for itself, None where it says none.
    _middleware: Any = field(default=None, repr=False, compare=False)

    @property
    def asked(self) -> Any:
        """The request as `parse` takes it: the conversation, and the documents next to it."""
        if not self._documents:
            return self.messages
        return {"messages": self.messages, "documents": self._documents}

    @property
    def allowed(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called: all of them without a name in the tool choice."""
        return tuple(t for t in self.tools if self.tool_name in (None, t.name))

    @property
    def read_whole(self) -> bool:
        """The answer is JSON from its first character to its last, and read at its end."""
        return self.forced or self.formatted

    @property
    def left_out(self) -> tuple[Mapping[str, Any], ...]:
        """The tools that only the provider could run. The model does not learn of them."""
        return self._prepared.provider if self._prepared is not None else ()


@dataclass(slots=True)
class Prepared:
    """The outcome of one set of tools and one tool choice, shared by all requests with them.

    for_model: the tools as the model is told of them. tools: the same with the schemas to read
    arguments by. provider: those that only the provider can run. active: there are tools that may
    be called. forced: one must be.
    """

    for_model: tuple[ToolSpec, ...]
    tools: tuple[ToolSpec, ...]
    provider: tuple[Mapping[str, Any], ...]
    choice: Choice
    active: bool
    forced: bool
    writer: Writer
    protocol: Protocol | ForeignProtocol
    ways: Ways
    form: ChoiceForm = PLAIN
    # Examples of inputs that the prompt does not show.
    left_out: tuple[LeftOut, ...] = ()
    # Each is made when it is first needed: a request that is only prepared pays for no readers.
    prompt: str | None = None
    # Of whole answers, and of those that come in pieces.
    readers: tuple[Reader, Reader] | None = None
    # Of the format, which no user's text may contain.
    delimiters: tuple[str, ...] | None = None


# The reading of answers: whole texts, pieces and forced choices. `on_error(message, metadata)` is
# told what could not be read, once for each piece of the text.

_CHOICE = "Failed to parse toolChoice JSON from {} model output"
_FURTHER = "A further call is left out, because the request says parallel_tool_calls=False."
_UNKNOWN_TOOL = "The call names a tool that was not offered, keeping original text."


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """The part of a middleware that reads answers, with fields of the middleware."""

    protocol: AnyProtocol
    ways: Ways
    on_error: OnError | None
    attempts: Attempts

    def readers(self, turn: Turn) -> tuple[Reader, Reader]:
        """Return the readers of a turn's answer: whole, and in pieces."""
        prepared = turn._prepared
        # A turn may be made or changed by hand, or by another middleware.
        own = (
            prepared is not None
            and prepared.tools is turn.tools
            and prepared.protocol is self.protocol
            and prepared.ways is self.ways
        )
        if prepared is not None and own and prepared.readers is not None:
            return prepared.readers
        whole = pieces = Reader(self.protocol, turn.tools, self.ways.batch)
        if self.ways.stream != self.ways.batch:
            pieces = Reader(self.protocol, turn.tools, self.ways.stream)
        if prepared is not None and own:
            prepared.readers = whole, pieces
        return whole, pieces

    def parse_whole(self, turn: Turn, text: str, finish_reason: str | None) -> ParseResult:
        """Return the parse of an answer that must be a call, or JSON of the caller's own form."""
        cut, ways = was_cut(finish_reason), self.ways
        if turn.formatted:
            result = parse_formatted(text, self.protocol, turn.tools, ways.choice, cut=cut)
        elif ways.ai_sdk_2:
            result = parse_like_ai_sdk_2(text, self.protocol.id, turn.tools, ways.choice, cut=cut)
        else:
            result = parse_forced(
                text, self.protocol, turn.tools, turn.allowed, ways.choice, cut=cut, many=turn.many
            )
        return judged(result, turn.asked)

    def tell_failures(self, result: ParseResult, turn: Turn, *, streamed: bool = False) -> None:
        """Call `on_error` for each segment with a call that failed, for each failure of the text as
        a whole, and for each call that drops out.

        metadata: toolCall (the text), toolName, code, message, span (start, end). Of a forced
        answer also text and error. Only decoding and reading count. A value that does not fit a
        schema is a problem of the result and no failure; nor is a call of a tool that was not
        offered where it is handed on.
        """
        if self.on_error is None:
            return
        for calls in calls_by_segment(result.calls).values():
            # The text of a segment is kept or lost as one, so its first failure is told.
            failures = (
                (call, problem)
                for call in calls
                for problem in filter(is_failure, call.problems)
                if not (problem.code == "call.unknown-tool" and self.attempts.hands_on_unknown)
            )
            for call, problem in islice(failures, 1):
                text = call.segment.span.of(result.raw)
                message, metadata = failure_of(call, problem, text, self.protocol)
                if problem.code == "call.unknown-tool":
                    message = _UNKNOWN_TOOL
                self._tell(message, metadata, streamed)
        for problem in filter(is_failure, result.problems):
            span = problem.span
            text = span.of(result.raw) if span is not None else result.raw
            place = (span.start, span.end) if span is not None else None
            metadata = {"toolCall": text, "toolName": None, "code": problem.code}
            metadata |= {"message": problem.message, "span": place}
            self._tell(problem.message, metadata, streamed)
        for call in self.attempts.usable(result.calls)[1:] if turn.one_call else ():
            span = call.segment.span
            metadata = {"toolCall": span.of(result.raw), "toolName": call.name}
            metadata |= {"code": "choice.further-call", "message": _FURTHER}
            call_safely(self.on_error, _FURTHER, {**metadata, "span": (span.start, span.end)})

    def _tell(self, message: str, metadata: dict[str, Any], streamed: bool) -> None:
        if metadata["code"] == "choice.no-call":
            message = _CHOICE.format("streamed" if streamed else "generated")
            metadata |= {"text": metadata["toolCall"], "error": metadata["message"]}
        if self.on_error is not None:
            call_safely(self.on_error, message, metadata)
