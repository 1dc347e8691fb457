"""Response objects of clients, their dicts, stream chunks and event-stream dumps, as the model's
own text.

`capture` is duck-typed: it knows the shapes in the table of `known`, whole or streamed, and imports
no client. Like the runner it keeps a
provider's own tool calls as they came, broken argument strings included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ...core.errors import BadOptions, UnreadableInput
from ...core.types.call_pieces import joined
from ...core.types.call_pieces import member as get
from ...core.types.options import RawLike, TokenizerLike
from ...core.types.server import ServerReading
from ...core.types.tokens import Tokens
from ...core.values import read_strict, write_canonical
from .assembly import Assembly, keys_of
from .bedrock import events_in, passed_on
from .frames import events_of, frames_in
from .gemini import is_gemini
from .known import is_event, is_piece_alone, is_written, nearest_shape, take_chunk, take_response
from .parts import end_partial
from .shapes import eats, is_ollama, items

# Server-sent events. Nothing here raises on account of the text: a line that ended early, an event
# that is not JSON, comments and unknown fields are part of real dumps. The unreadable part counts,
# so that no one takes the rest for the whole.
#
# A dump is cut into lines at any of the three line ends of the format; an empty line ends an event,
# whose `data:` lines are joined. Some servers leave out the empty line. So a `data:` line that
# begins a JSON object also begins an event, where the lines before it are one whole object already:
# data of one event may be spread over several lines. Each line is parsed at most twice.

_BREAK = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"(?:data|event|id|retry)(?::|\Z)|:")
_FIRST = re.compile(r"\ufeff?\s*(?:(?:data|event|id|retry):|:)")
_FIELDS = ("data:", "event:", "id:", "retry:")
DONE = "[DONE]"


def is_event_stream(text: str) -> bool:
    """Return True for a dump of an event stream, False for a model's words about one.

    Every line must be one of the format (`data:`, `event:`, `id:`, `retry:`, a comment that begins
    with a colon, or empty, the last one may be cut off), and the first event's data must be
    `[DONE]` or a JSON object of a known stream (`choices`, `type`, `error`, `output`, `candidates`,
    …). Prose before, between or after the lines makes it text.

    >>> is_event_stream('data: {"choices": []}\\n\\ndata: [DONE]\\n\\n')
    True
    >>> is_event_stream('A stream looks like this:\\ndata: {"choices": []}')
    False
    """
    # Strict: a text taken for a stream by mistake loses everything that the model wrote around it.
    if not _FIRST.match(text):
        return False
    lines = _BREAK.split(text.removeprefix("\ufeff"))
    # White space alone counts as empty, as servers behind proxies write it. The last line may have
    # ended anywhere, also in the middle of a field's name.
    odd = next((i for i, line in enumerate(lines) if line.strip() and not _LINE.match(line)), None)
    if odd is not None:
        is_last = odd == len(lines) - 1
        if not is_last or not any(name.startswith(lines[odd]) for name in _FIELDS):
            return False

    # The first event decides; a dump of comments alone has none, and tells nothing.
    first = next(iter(_data_of_events(lines)), None)
    if first is None:
        return False
    if first.strip() == DONE:
        return True
    message = _read(first)
    return message is not None and is_event(message)


def _captured_events(text: str, choice: int, tokenizer: Any) -> Captured:
    # Lines of no known form are skipped. What comes after the end mark is read too: joined dumps
    # have several of them. unreadable: also data that ended early at the very end.
    events = _data_of_events(_BREAK.split(text.removeprefix("\ufeff")))
    data = [event for event in events if event.strip() != DONE]
    read = [_read(event) for event in data]
    messages = [message for message in read if message is not None]
    unreadable = [event for event, message in zip(data, read, strict=True) if message is None]
    done = len(data) < len(events)
    return _streamed(messages, choice, tokenizer, "wire", done, tuple(unreadable))


def _data_of_events(lines: list[str]) -> list[str]:
    events: list[str] = []
    parts: list[str] = []
    for line in (*lines, ""):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        ends = not line.strip()
        if parts and name == "data" and (value.lstrip()[:1] == "{" or value.strip() == DONE):
            ends = _read("\n".join(parts)) is not None
        if ends and parts:
            events.append("\n".join(parts))
            parts.clear()
        if name == "data":
            parts.append(value)
    return events


def _read(data: str) -> Mapping[str, Any] | None:
    # Only an object can be a message of a chat stream.
    try:
        value = read_strict(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


EndpointKind: TypeAlias = Literal["chat_text", "native_tools", "raw_completion"]
Fidelity: TypeAlias = Literal["wire", "sdk", "replayed", "logprobs", "token_ids", "raw_messages"]
CapturedChunk: TypeAlias = tuple[Literal["content", "reasoning"], str]
"""What a piece of a stream belongs to, and its text; pieces of tool calls are content."""

_EXPECTED = (
    "a text, a chat completion, a text completion, a Responses API object, an Anthropic message, a "
    "Gemini, Bedrock or Cohere response, a result of the AI SDK, one of their choices or messages, "
    "a list of stream chunks, or a Captured"
)
_MOST_UNREAD = 20  # kinds of parts
# The end of the canonical JSON of calls: closing quote, function, call, list, message.
_END_OF_CALL = '"}}]}'
_FIRST_PIECE = 2000  # characters in which the first of several lines ends


@dataclass(frozen=True, slots=True)
class Captured:
    """One answer of a response.

    Attributes:
        content: the model's text.
        tool_calls: the provider's own calls in OpenAI's shape, arguments as they came.
        reasoning: reasoning that the client or server separated from the text. It is not in `raw`.
        refusal: a refusal that came separately from the text.
        finish_reason: as the provider wrote it, Gemini's, Bedrock's and Cohere's in OpenAI's
            words; or None.
        chunks: the pieces of a stream.
        cut: a stream that ended without a finish part.
        error: the message of an error that came in the answer's place or broke the stream off.
        unreadable: events that were not JSON, and what is wrong with binary frames.
        unread: what is of a kind that nobody knows, as its kind and its keys: parts, items, events,
            and the members of a message that says nothing else. A call may be in them.
        choices: the number of answers in the response.
        offers_tools: read as a provider's own tool calling even if it makes no call (`as_native`).
        token_text: the model's own text from the response's tokens, if a server's parser removed a
            part of it from the content, else ''.
        prompt: the text of the prompt, where its token ids are given with a tokenizer.
        fidelity: 'wire' for event-stream text, 'sdk' for objects of a client, 'replayed' for a
            string that someone kept. 'logprobs', 'token_ids' or 'raw_messages' for the source of
            `token_text`.
        shares_an_index: True if several calls of a stream had the same index.
        provider: who answered behind a router, where the body says so.
        tokens: the tokens of `raw`, with their ids and log probabilities as far as they were given.

    >>> import toolparse_lab as tp
    >>> tp.Captured.of({"choices": [{"message": {"content": "Hello"}}]}).content
    'Hello'
    """

    content: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    reasoning: str = ""
    refusal: str = ""
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    id: str | None = None
    system_fingerprint: str | None = None
    chunks: tuple[CapturedChunk, ...] = ()
    stream: bool = False
    cut: bool = False
    error: str | None = None
    unreadable: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    choices: int = 1
    completion: bool = field(default=False, repr=False)
    offers_tools: bool = field(default=False, repr=False)
    fidelity: Fidelity = "sdk"
    token_text: str = ""
    prompt: str = field(default="", repr=False)
    shares_an_index: bool = field(default=False, repr=False, compare=False)
    tokens: Tokens | None = field(default=None, repr=False, compare=False)
    provider: str | None = field(default=None, repr=False)

    @property
    def native(self) -> bool:
        """True if `raw` is the canonical JSON that the protocol `openai_json` reads.

        It depends on the request too: an answer without calls is native where tools were offered,
        which only the caller knows (`as_native`).
        """
        if self.token_text:
            return False
        return bool(self.tool_calls) or self.offers_tools

    @property
    def raw(self) -> str:
        """The text to parse.

        The text of the tokens if the content lacks a part of it, else the content. For native
        calls, canonical JSON of `content` and `tool_calls`. For a stream that ended early, only the
        beginning of that JSON, so that the parser reads its last call as cut off.
        """
        if self.token_text:
            return self.token_text
        text = self.content or self.refusal
        if not self.native:
            return text
        whole = write_canonical(
            {"content": text or None, "tool_calls": [dict(c) for c in self.tool_calls]}
        )
        return whole.removesuffix(_END_OF_CALL) if self.cut else whole

    @property
    def endpoint_kind(self) -> EndpointKind:
        """The kind of endpoint of the answer: native_tools, chat_text or raw_completion.

        It is derived, and may differ from the request's purpose: a model that answers a request
        with native tools in plain text is chat text.
        """
        if self.native:
            return "native_tools"
        return "raw_completion" if self.completion else "chat_text"

    @classmethod
    def of(
        cls, obj: RawLike | bytes, choice: int = 0, tokenizer: TokenizerLike | None = None
    ) -> Captured:
        """Return one answer of a response of any client, or of a recorded string.

        The same as `capture`, with its errors.
        """
        return capture(obj, choice, tokenizer)

    def as_native(self) -> Captured:
        """Return the same answer in the form of native calls.

        `raw` then has this form even without calls, and whatever the tokens say.
        """
        fidelity: Fidelity = "sdk" if self.token_text else self.fidelity
        native = replace(self, offers_tools=True, token_text="", fidelity=fidelity)
        # What was drawn is another text than the JSON of calls.
        return replace(native, tokens=self.tokens and self.tokens.of_text(native.raw))

    def server(self) -> ServerReading | None:
        """Return the provider's own calls, or None for a recorded string.

        `ParseResult.blame` compares them with the parsed calls.
        """
        if self.fidelity == "replayed":
            return None
        return ServerReading.of(self.tool_calls, self.fidelity, not self.native)


def capture(
    obj: RawLike | bytes, choice: int = 0, tokenizer: TokenizerLike | None = None
) -> Captured:
    """Return a response of any client, in one shape.

    obj: a chat completion, text completion, Responses API object or Anthropic message, as an object
    of any client or as a dict. One of its choices or messages. A list of stream chunks. A text. A
    text is read as an event stream or as a response's JSON only under the rules of
    `is_event_stream` and `response_in`, otherwise it is a model's words. bytes are UTF-8, or the
    binary event stream of AWS, whose base64 is read as well.
    choice: which answer of several, counted from 0. tokenizer: a function from a list of token ids
    to text, or an object whose `decode` is one, for responses that hold ids.

    Raises UnreadableInput for an object that is none of these, and for a choice that is not there.
    The content of an answer never raises.

    >>> capture({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).raw
    'Hi'
    >>> call = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{1"}}
    >>> capture({"role": "assistant", "content": None, "tool_calls": [call]}).raw
    '{"content":null,"tool_calls":[{"id":"c0",...,"function":{"name":"f","arguments":"{1"}}]}'
    """
    if isinstance(choice, bool) or not isinstance(choice, int) or choice < 0:
        raise BadOptions("a choice is the number of an answer", got=choice, expected="0, 1, …")

    # Whatever was captured before passes through, so that callers need not ask.
    if isinstance(obj, Captured):
        return obj
    if isinstance(obj, (str, bytes, bytearray, memoryview)):
        given = obj if isinstance(obj, str) else bytes(obj)
        if (frames := frames_in(given)) is not None:
            events, damaged = events_of(frames)
            return _streamed(events, choice, tokenizer, "wire", unreadable=tuple(damaged))
        # What is no UTF-8 becomes lone surrogates, which every parser here takes.
        obj = given if isinstance(given, str) else given.decode("utf-8", "surrogateescape")
    if isinstance(obj, str):
        # The order matters: the JSON of a response is one line that is not an event.
        response = response_in(obj)
        if response is not None:
            return capture(response, choice, tokenizer)
        if not is_event_stream(obj):
            return Captured(obj, fidelity="replayed")
        return _captured_events(obj, choice, tokenizer)
    if isinstance(obj, (list, tuple)):
        if not obj or not all(map(_may_hold, obj)):
            wrong = next((chunk for chunk in obj if not _may_hold(chunk)), None)
            raise UnreadableInput(
                "this is no list of stream chunks",
                got=_name(wrong) if obj else "an empty list",
                expected="the chunks of one stream, each an object or a dict",
            )
        return _streamed(obj, choice, tokenizer)
    # A single chunk counts as a stream of one.
    if any(get(c, "delta") is not None for c in items(get(obj, "choices"))):
        return _streamed((obj,), choice, tokenizer)

    assembly = Assembly(choice)
    if _may_hold(obj) and take_response(obj, assembly):
        return _finished(assembly, tokenizer, stream=False)
    if _may_hold(obj):
        # An answer that is passed on inside of another object, or a piece of a stream alone.
        if (inner := passed_on(obj)) is not None:
            with suppress(RecursionError, UnreadableInput):  # bodies in bodies, without an end
                return capture(inner, choice, tokenizer)
        if events := events_in(obj):
            return _streamed(events, choice, tokenizer)
        if is_piece_alone(obj):
            return _streamed((obj,), choice, tokenizer)
    # Whether an iterator holds chunks cannot be seen without consuming it.
    is_iterator = hasattr(obj, "__next__")
    near = nearest_shape(obj) if isinstance(obj, Mapping) else None
    raise UnreadableInput(
        "this holds no answer of a model",
        got=_name(obj),
        expected=_EXPECTED,
        hint="a stream that is still under way is read by list(stream)"
        if is_iterator
        else near and f"of the known shapes {near} is nearest",
    )


def response_in(text: str) -> Any:
    """Return the response whose JSON a text is, or the chunks of one, or None.

    It has to be one JSON object whose `choices` hold a message, a delta or a text, a Responses API
    object with its `output`, an answer of Gemini's or Bedrock's, or an array of Gemini's chunks. A
    message or a call alone is not enough: models write these themselves.

    >>> response_in('{"choices": [{"message": {"content": "Hi"}}]}') is None
    False
    >>> response_in('{"content": "Hi", "tool_calls": []}') is None
    True
    """
    begin = text.lstrip("\ufeff \t\r\n")[:1]
    if not begin or begin not in "{[":
        return None
    try:
        response = read_strict(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return _pieces_of_ollama(text)
    if isinstance(response, list):
        is_stream = response and all(
            isinstance(chunk, dict) and (is_gemini(chunk) or set(chunk) == {"error"})
            for chunk in response
        )
        return response if is_stream and any(map(is_written, response)) else None
    return response if is_written(response) else None


def _pieces_of_ollama(text: str) -> list[Mapping[str, Any]] | None:
    # A line for each piece, as its server sends them.
    lines = text.split("\n") if '"done"' in text[:_FIRST_PIECE] else []
    pieces = [_read(line) for line in lines if line.strip()]
    known = [piece for piece in pieces if piece is not None and is_ollama(piece)]
    return known if len(known) > 1 and len(known) == len(pieces) else None


def _streamed(
    messages: Iterable[Any],
    choice: int,
    tokenizer: Any,
    fidelity: Fidelity = "sdk",
    done: bool = False,
    unreadable: tuple[str, ...] = (),
) -> Captured:
    # done: the end mark was seen. unreadable: data that is not a JSON object, or frames.
    assembly = Assembly(choice, streamed=True)
    count = 0
    for message in messages:
        inner = passed_on(message) if get(message, "chunk") is not None else None
        message = message if inner is None else inner
        if take_chunk(message, assembly):
            count += 1
        # What is of no known shape is missed, as long as there is something that is.
        elif set(keys_of(message)) - {"role"}:
            assembly.miss(get(message, "type") or "event", message)
    end_partial(assembly)
    if not count and not done and not unreadable:
        raise UnreadableInput("none of these is a chunk of a stream", expected=_EXPECTED)

    captured = _finished(assembly, tokenizer, stream=True)
    return replace(
        captured,
        # Either mark will do: some servers send no finish reason, others no `[DONE]`.
        cut=assembly.finish_reason is None and not done,
        unreadable=unreadable,
        unread=(*captured.unread, *map(_shown, unreadable))[:_MOST_UNREAD],
        fidelity=captured.fidelity if captured.token_text else fidelity,
    )


def _shown(event: str) -> str:
    return f"unreadable event ({event[:80]})"


def _finished(assembly: Assembly, tokenizer: Any, *, stream: bool) -> Captured:
    if assembly.choice and assembly.choice >= max(assembly.choices, 1):
        raise UnreadableInput(
            "this response has no such choice",
            got=assembly.choice,
            expected=f"0 to {max(assembly.choices, 1) - 1}",
        )
    content, refusal = joined(assembly.content), joined(assembly.refusal)
    token_text, evidence = assembly.tokens.text(tokenizer)
    if evidence is None or not eats(token_text, content or refusal):
        token_text, evidence = "", None
    captured = Captured(
        content=content,
        tool_calls=tuple(assembly.calls.to_list()),
        reasoning=joined(assembly.reasoning),
        refusal=refusal,
        finish_reason=assembly.finish_reason,
        usage=assembly.usage,
        model=assembly.ids.get("model"),
        id=assembly.ids.get("id"),
        system_fingerprint=assembly.ids.get("system_fingerprint"),
        provider=assembly.ids.get("provider"),
        chunks=tuple(assembly.chunks),
        stream=stream,
        error=assembly.error,
        unread=tuple(assembly.unread())[:_MOST_UNREAD],
        choices=max(assembly.choices, 1),
        completion=assembly.completion,
        fidelity=evidence or "sdk",
        token_text=token_text,
        prompt=assembly.tokens.prompt(tokenizer),
        shares_an_index=assembly.calls.shares_an_index,
    )
    tokens = assembly.tokens.tokens(captured.raw, tokenizer)
    return captured if tokens is None else replace(captured, tokens=tokens)


# Values that hold no answer, whatever is in them.
_PLAIN_VALUES = (str, bytes, bool, int, float, list, tuple, type)


def _may_hold(x: Any) -> bool:
    # Keeps strings and numbers from being asked for attributes; reading finds out the rest.
    if isinstance(x, Mapping):
        return True
    return x is not None and not isinstance(x, _PLAIN_VALUES)


def _name(x: Any) -> str:
    # At most 80 characters, or eight members: an answer may be long, and may be confidential.
    if isinstance(x, Mapping):
        members = ", ".join(map(str, list(x)[:8]))
        return f"a dict with {members or 'nothing in it'}"
    if x is None or isinstance(x, (bool, int, float, str)):
        return f"{type(x).__name__} {repr(x)[:80]}".strip()
    return type(x).__name__
