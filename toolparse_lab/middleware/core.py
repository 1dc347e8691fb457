"""Tool calls for models that know none: what to send, and what the answer says. Pure: nothing is sent from here."""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from .. import hooks
from ..api import Reader
from ..errors import BadOptions, ParserClosed
from ..foreign import ForeignProtocol, adapt
from ..parts import OnError
from ..prompt.messages import merge_prompt
from ..protocols.base import Protocol
from ..protocols.results import ToolResult
from ..registry import protocol_of
from ..toolspec import ToolSpec
from ..types import ParseOptions, ParseResult
from . import debug
from .answer import (
    NOTHING_BESIDE,
    Answer,
    CallIds,
    Delta,
    Deltas,
    UnknownTools,
    answer_of,
    both_thoughts,
    deltas_of,
    made_calls,
    passed_through,
    read_content,
)
from .choice import Kind, Offer, forced_prompt, read_offer, response_format
from .compat import Ways, ways_of
from .failures import tell_failures, tell_left_out
from .forced import parse_forced, parse_like_seed
from .history import Message, Writer, rewrite_history
from .native import coerce_call

Template: TypeAlias = str | Callable[[str], str]
ResultFormat: TypeAlias = Literal["seed"] | Callable[[ToolResult], str]

_KEPT = 64  # sets of tools whose reading is kept
_TAKEN = ("messages", "tools", "tool_choice", "parallel_tool_calls")
_ONE_CALL = "Call at most one tool in an answer."
_PROVIDER_TOOL = "tool-call-middleware: a provider-defined tool is left out; only the provider could run it"


@dataclass(frozen=True)
class Turn:
    """One request and what its answer may be.

    params: what to send. tools: what the model was told of, with the schemas to read arguments by. choice and
    tool_name: what was asked for. active: answers are parsed; False where there are no tools or none may be called.
    forced: the answer must be one call. one_call: of the calls that a text holds only the first is made, because the
    request says `parallel_tool_calls=False`.
    """

    params: dict[str, Any]
    tools: tuple[ToolSpec, ...] = ()
    choice: Kind = "auto"
    tool_name: str | None = None
    active: bool = False
    forced: bool = False
    one_call: bool = False
    _told: _Told | None = field(default=None, repr=False, compare=False)

    @property
    def allowed(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called."""
        return tuple(t for t in self.tools if self.tool_name in (None, t.name))


@dataclass(frozen=True, slots=True)
class _Readers:
    """How answers are read that come whole, and those that come in pieces."""

    whole: Reader
    pieces: Reader


@dataclass(slots=True)
class _Told:
    """What one set of tools and one tool choice come to: how calls of the history are written, the prompt, and how
    answers are read, which nobody may ask for."""

    offer: Offer
    writer: Writer
    protocol: Protocol | ForeignProtocol
    ways: Ways
    prompt: str | None = None
    readers: _Readers | None = None


@dataclass(frozen=True)
class ToolCallMiddleware:
    """Tool calling for any model; `create_tool_middleware` makes one and says what the fields mean."""

    protocol: Protocol | ForeignProtocol
    ways: Ways
    tool_system_prompt_template: Template | None = None
    placement: Literal["first", "last"] = "first"
    on_error: OnError | None = None
    compat: Literal["seed"] | None = None
    tool_choice_by: Literal["response_format", "prompt"] = "response_format"
    result_format: ResultFormat | None = None
    unknown_tools: UnknownTools = "text"
    _kept: dict[bytes, _Told] = field(default_factory=dict, init=False, repr=False, compare=False)

    def transform_params(
        self, params: Mapping[str, Any], *, original_tool_schemas: Mapping[str, Any] | None = None
    ) -> Turn:
        """What to send instead of `params`, the keyword arguments of an OpenAI-compatible completion.

        The tools go into the system prompt, and calls and results of the history become text; all other arguments are
        kept. original_tool_schemas: name -> schema to read arguments by, where `tools` shows the model another.

        Raises BadMessage, UnknownToolCallId, BadToolSpec and BadToolChoice.
        """
        if params.get("functions") is not None or params.get("function_call") is not None:
            raise BadOptions("functions were replaced by tools", got="functions", expected="tools and tool_choice")
        told = self._told(params.get("tools"), params.get("tool_choice"), original_tool_schemas)
        offer = told.offer
        messages = rewrite_history(params.get("messages", ()), told.writer)
        for tool in offer.provider:
            told.writer.tell(_PROVIDER_TOOL, tool=dict(tool))
        sent = {k: v for k, v in params.items() if k not in _TAKEN}
        one_call = offer.active and not offer.forced and params.get("parallel_tool_calls") is False
        if offer.active:
            if offer.forced and self.tool_choice_by == "response_format":
                sent["response_format"] = response_format(offer.choice, offer.shown)
            prompt = told.prompt
            if prompt is None:
                prompt = self._prompt(offer)
                if self.tool_system_prompt_template is None:  # one of the user's may say something else each time
                    told.prompt = prompt
            if one_call:
                prompt = f"{prompt}\n\n{_ONE_CALL}"
            messages = _place(prompt, messages, self.placement)
        sent["messages"] = messages
        choice = offer.choice
        return Turn(sent, offer.tools, choice.kind, choice.name, offer.active, offer.forced, one_call, told)

    def wrap_generate(
        self,
        turn: Turn,
        content: Any,
        *,
        reasoning: str | None = None,
        finish_reason: str | None = "stop",
        tool_calls: Iterable[Mapping[str, Any]] = (),
        debug_summary: MutableMapping[str, str] | None = None,
    ) -> Answer:
        """What a whole answer says.

        content: its text, None, or a list of content parts, whose texts are read as one and whose images are kept.
        reasoning: what the provider said as reasoning. tool_calls: calls that the provider read itself, in OpenAI
        shape; they are kept, behind those of the text, with their arguments coerced. debug_summary: is filled with
        `original_text` and `tool_calls` (JSON text), and nothing is logged at level 'parse'. Raises UnreadableInput
        for a content that is none of these.
        """
        if not turn.active:
            return passed_through(content, finish_reason, tool_calls)
        native: tuple[dict[str, Any], ...] = ()
        if tool_calls:
            by_name = {t.name: t for t in turn.tools}
            native = tuple(coerce_call(c, by_name, self.ways.batch.coerce) for c in tool_calls)
        said = NOTHING_BESIDE if type(content) is str else read_content(content)
        text = content if said is NOTHING_BESIDE else said.text
        level = debug.debug_level()
        if level == "stream" or (level == "parse" and turn.forced and debug_summary is None):
            debug.log_raw(text)
        if turn.forced and (text.strip() or not native):
            result = self._read_forced(turn, text)
        else:
            result = self._readers(turn).whole.parse(text)
        if self.on_error is not None:
            self._tell(result, turn)
        thought = both_thoughts(reasoning, said.reasoning) if said.reasoning else reasoning
        answer = answer_of(
            result,
            finish_reason,
            CallIds(),
            unknown_tools=self.unknown_tools,
            one_call=turn.one_call,
            reasoning=thought,
            native=native,
        )
        if content is None or said.media:
            answer.message["content"] = said.beside(answer.message["content"])
        if level == "stream":
            debug.log_out(answer.message)
        if level != "off" or debug_summary is not None:
            _summarise(answer, level, debug_summary)
        return answer

    def wrap_stream(self, turn: Turn, *, debug_summary: MutableMapping[str, str] | None = None) -> AnswerStream:
        """The same for an answer that comes in pieces."""
        return AnswerStream(self, turn, debug_summary)

    def completion(self, **params: Any) -> Any:
        """litellm's `completion` with tool calls by this middleware: its arguments, its results, streams included."""
        return hooks.call("completion", self, **params)

    async def acompletion(self, **params: Any) -> Any:
        """litellm's `acompletion`, likewise."""
        return await hooks.call("acompletion", self, **params)

    def _told(self, tools: Any, tool_choice: Any, schemas: Mapping[str, Any] | None) -> _Told:
        """What the tools of a request come to; requests with the same ones are read once."""
        try:
            # Equal bytes are equal values; what is not plain JSON is read each time.
            asked: Any = (tools, tool_choice, schemas)
            key = marshal.dumps(asked, 2)
        except ValueError:
            return self._read(tools, tool_choice, schemas)
        known = self._kept.get(key)
        if known is None:
            # Read from the bytes, so that whoever changes the objects later does not change what is kept.
            known = self._read(*marshal.loads(key))  # noqa: S302 - bytes of our own
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = known
        return known

    def _read(self, tools: Any, tool_choice: Any, schemas: Mapping[str, Any] | None) -> _Told:
        offer = read_offer(tools, tool_choice, schemas, supports_none=self.ways.supports_none)
        by_name = {t.name: t for t in offer.shown}
        writer = Writer(self.protocol, by_name, self._write_result, self.on_error)
        return _Told(offer, writer, self.protocol, self.ways)

    def _readers_of(self, tools: tuple[ToolSpec, ...]) -> _Readers:
        protocol, ways = self.protocol, self.ways
        whole = Reader(protocol, tools, ways.batch)
        return _Readers(whole, whole if ways.stream == ways.batch else Reader(protocol, tools, ways.stream))

    def _readers(self, turn: Turn) -> _Readers:
        told = turn._told
        if (
            told is None or told.offer.tools is not turn.tools
            or told.protocol is not self.protocol or told.ways is not self.ways
        ):  # fmt: skip
            return self._readers_of(turn.tools)  # a turn made by hand, or by another middleware
        if told.readers is None:
            told.readers = self._readers_of(turn.tools)
        return told.readers

    def _prompt(self, offer: Offer) -> str:
        prompt = self.protocol.format_tools(offer.shown, self.tool_system_prompt_template)
        if offer.forced and self.tool_choice_by == "prompt":
            return f"{prompt}\n\n{forced_prompt(offer.choice, offer.shown)}"
        return prompt

    def _write_result(self, result: ToolResult) -> str:
        if callable(self.result_format):
            return self.result_format(result)
        compat: Literal["seed"] | None = "seed" if self.result_format == "seed" or self.ways.seed_results else None
        given = result if isinstance(self.protocol, Protocol) else _for_them(result)
        return self.protocol.format_tool_response(given, compat=compat)

    def _read_forced(self, turn: Turn, text: str) -> ParseResult:
        if self.ways.seed_choice:
            return parse_like_seed(text, self.protocol.id, turn.tools, self.ways.choice)
        return parse_forced(text, self.protocol, turn.tools, turn.allowed, self.ways.choice)

    def _tell(self, result: ParseResult, turn: Turn, *, streamed: bool = False) -> None:
        if self.on_error is None:
            return
        tell_failures(result, self.on_error, self.unknown_tools, streamed=streamed)
        if turn.one_call:
            tell_left_out(made_calls(result.calls, self.unknown_tools)[1:], result.raw, self.on_error)


class AnswerStream:
    """An answer that comes in pieces: feed it texts of any size, then close it.

    The contents of all deltas make the message's content, their tool calls its tool calls. Nothing is taken back. An
    answer that must be a call says nothing before its end.
    """

    def __init__(
        self, middleware: ToolCallMiddleware, turn: Turn, debug_summary: MutableMapping[str, str] | None = None
    ) -> None:
        self._middleware = middleware
        self._turn = turn
        self._summary = debug_summary
        self._level = debug.debug_level() if turn.active else "off"
        self._texts: list[str] = []
        self._ids = CallIds()
        self._closed: tuple[tuple[Delta, ...], Answer] | None = None
        self._parser = None
        if turn.active and not turn.forced:
            self._parser = middleware._readers(turn).pieces.stream()
            self._deltas = Deltas(
                middleware.protocol,
                turn.tools,
                self._parser.text_of,
                self._ids,
                middleware.unknown_tools,
                one_call=turn.one_call,
            )

    def feed(self, text: str) -> tuple[Delta, ...]:
        """The deltas that a piece of text settles. Raises ParserClosed after `close`."""
        if self._closed is not None:
            raise ParserClosed("this answer is closed", hint="make a new one with wrap_stream")
        if self._level == "stream" and text:
            debug.log_raw(text)
        if self._parser is not None:
            deltas = self._deltas.of(self._parser.feed(text))
        else:
            self._texts.append(text)
            deltas = ({"content": text},) if text and not self._turn.active else ()
        self._log(deltas)
        return deltas

    def close(self, finish_reason: str | None = None, *, called: bool = False) -> tuple[tuple[Delta, ...], Answer]:
        """The last deltas, and the whole.

        finish_reason: what the provider said, None where it said nothing. called: the provider made calls itself
        beside the text, so that a text that says nothing is no failure.
        """
        if self._closed is None:
            deltas, answer = self._finish(finish_reason, called)
            self._log(deltas)
            _summarise(answer, self._level, self._summary if self._turn.active else None)
            self._closed = deltas, answer
        return self._closed

    def _finish(self, finish_reason: str | None, called: bool) -> tuple[tuple[Delta, ...], Answer]:
        middleware, turn = self._middleware, self._turn
        if not turn.active:
            return (), passed_through("".join(self._texts), finish_reason)
        if self._parser is not None:
            result = self._parser.close()
            deltas = self._deltas.of(self._parser.last_events())
            deltas += self._deltas.end()
        else:
            text = "".join(self._texts)
            if called and not text.strip():
                return (), passed_through(text or None, finish_reason)
            result = middleware._read_forced(turn, text)
        middleware._tell(result, turn, streamed=True)
        answer = answer_of(
            result, finish_reason, self._ids, unknown_tools=middleware.unknown_tools, one_call=turn.one_call
        )
        return (deltas if self._parser is not None else deltas_of(answer)), answer

    def _log(self, deltas: Iterable[Delta]) -> None:
        if self._level == "stream":
            for delta in deltas:
                debug.log_out(delta)


def _summarise(answer: Answer, level: debug.Level, into: MutableMapping[str, str] | None) -> None:
    if into is None and level != "parse":
        return
    calls = [{"toolName": c["function"]["name"], "input": c["function"]["arguments"]} for c in answer.tool_calls]
    if into is not None:
        into["original_text"] = answer.original_text
        into["tool_calls"] = json.dumps(calls, separators=(",", ":"), ensure_ascii=False)
    else:
        debug.log_summary(answer.original_text, calls)


def _place(prompt: str, messages: list[Message], placement: Literal["first", "last"]) -> list[Message]:
    """The prompt in the system message at the beginning, or as one of its own, first or last."""
    if not prompt:
        return messages
    if messages and messages[0]["role"] in ("system", "developer"):
        head = messages[0]
        return [{**head, "content": merge_prompt(prompt, head.get("content"), placement)}, *messages[1:]]
    ours = {"role": "system", "content": prompt}
    return [ours, *messages] if placement == "first" else [*messages, ours]


def _for_them(result: ToolResult) -> dict[str, Any]:
    """A result as AI SDKs hand it to a protocol."""
    return {
        "type": "tool-result", "toolCallId": result.call_id, "toolName": result.name, "output": result.output,
        "result": result.output,
    }  # fmt: skip


def create_tool_middleware(
    protocol: Any,
    *,
    tool_system_prompt_template: Template | None = None,
    placement: Literal["first", "last"] = "first",
    on_error: OnError | None = None,
    compat: Literal["seed"] | None = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
    tool_choice_by: Literal["response_format", "prompt"] = "response_format",
    result_format: ResultFormat | None = None,
    unknown_tools: UnknownTools = "text",
) -> ToolCallMiddleware:
    """A middleware that gives tool calling to a model by one protocol.

    protocol: an id of `protocols()`, a Protocol, a factory, or a protocol object of your own. A
    tool_system_prompt_template is a function of the tools' JSON text, or text with placeholders as `{{tools_json}}`.
    placement: of the prompt before or behind the system message that is there, or the whole conversation. on_error:
    called as on_error(message, metadata) for each piece of text that could not be read; what it raises is ignored.
    compat: "seed" brings back the ways of the oldest version (see docs/middleware.md). options: ParseOptions or a
    mapping of them; coercion has the policy 'middleware' unless they say otherwise. tool_choice_by: a forced choice
    asks for its JSON by `response_format`, or in the system prompt. result_format: "seed", or a function that writes a
    ToolResult, instead of the protocol's own form. unknown_tools: whether a call of a tool that was not offered stays
    "text", or is a "call" like others, so that a loop can tell the model that there is no such tool.

    Raises UnknownProtocol and BadOptions.
    """
    known = adapt(protocol) if not isinstance(protocol, str) else None
    chosen = None if protocol == "auto" else known or protocol_of(protocol)
    if chosen is None or chosen.id == "auto":
        raise BadOptions("'auto' only reads", got="auto", hint="name the protocol that the model is to be told of")
    for name, value, allowed in (
        ("placement", placement, ("first", "last")),
        ("tool_choice_by", tool_choice_by, ("response_format", "prompt")),
        ("unknown_tools", unknown_tools, ("text", "call")),
    ):
        if value not in allowed:
            raise BadOptions(f"unknown {name}", got=value, expected=" or ".join(allowed))
    if result_format not in (None, "seed") and not callable(result_format):
        raise BadOptions("result_format writes a result", got=result_format, expected="None, 'seed' or a function")
    if on_error is not None and not callable(on_error):
        raise BadOptions("on_error is called as on_error(message, metadata)", got=type(on_error).__name__)
    return ToolCallMiddleware(
        protocol=chosen, ways=ways_of(compat, options, chosen),
        tool_system_prompt_template=tool_system_prompt_template, placement=placement, on_error=on_error,
        compat=compat, tool_choice_by=tool_choice_by, result_format=result_format,
        unknown_tools=unknown_tools,
    )  # fmt: skip
