"""Response objects of clients, their dicts, stream chunks and event-stream dumps, as what the model wrote.

`capture` is duck-typed: it knows the shapes of chat completions, text completions, the Responses API and Anthropic's
messages, whole or streamed, and imports no client. Like the runner it keeps a provider's own tool calls as they came,
broken argument strings included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ..errors import BadOptions, UnreadableInput
from ..values import read_strict, write_canonical
from .assembly import Assembly, get, items
from .chunks import take_chunk
from .responses import take_response
from .sse import is_event_stream, read_events

EndpointKind: TypeAlias = Literal["chat_text", "native_tools", "raw_completion"]
Fidelity: TypeAlias = Literal["wire", "sdk", "replayed"]
CapturedChunk: TypeAlias = tuple[Literal["content", "reasoning"], str]
"""What a piece of a stream is of, and its text; pieces of tool calls are content."""

_EXPECTED = (
    "a text, a chat completion, a text completion, a Responses API object, an Anthropic message, one of their choices "
    "or messages, a list of stream chunks, or a Captured"
)


_END_OF_CALL = '"}}]}'


@dataclass(frozen=True, slots=True)
class Captured:
    """One answer, as far as a response says.

    content: the model's text. tool_calls: the provider's own calls in OpenAI's shape, arguments as they came.
    reasoning: what the client or server split off the text; it is no part of `raw`. refusal: a refusal that stood
    apart from the text. finish_reason: in the provider's own word, None where none was given. chunks: the pieces of a
    stream. cut: a stream that ended without a finish part. error: the message of an error that stood in the answer's
    place or broke the stream off. unreadable: events that were no JSON. choices: how many answers there were, of which
    this is one. offers_tools: read as a provider's own tool calling even where no call was made (`as_native`).

    endpoint_kind: native_tools, chat_text or raw_completion. fidelity: 'wire' for event-stream text, 'sdk' for objects
    that a client made, 'replayed' for a text that somebody kept.
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
    choices: int = 1
    completion: bool = field(default=False, repr=False)
    offers_tools: bool = field(default=False, repr=False)
    fidelity: Fidelity = "sdk"

    @property
    def native(self) -> bool:
        """Whether `raw` is the canonical JSON that the protocol `openai_json` reads."""
        return bool(self.tool_calls) or self.offers_tools

    @property
    def raw(self) -> str:
        """What is parsed: the text, or for native calls canonical JSON of `content` and `tool_calls`. Of a stream that
        was cut it is the beginning of that JSON, so that its last call is read as cut off."""
        text = self.content or self.refusal
        if not self.native:
            return text
        whole = write_canonical({"content": text or None, "tool_calls": [dict(c) for c in self.tool_calls]})
        return whole.removesuffix(_END_OF_CALL) if self.cut else whole

    @property
    def endpoint_kind(self) -> EndpointKind:
        if self.native:
            return "native_tools"
        return "raw_completion" if self.completion else "chat_text"

    @classmethod
    def of(cls, obj: Any, choice: int = 0) -> Captured:
        """`capture`."""
        return capture(obj, choice)

    def as_native(self) -> Captured:
        """The same answer, its `raw` in the form of native calls even where there are none."""
        return replace(self, offers_tools=True)


def capture(obj: Any, choice: int = 0) -> Captured:
    """What a response says, in one shape.

    obj: a chat completion, text completion, Responses API object or Anthropic message, as an object of any client or
    as a dict; one of its choices or messages; a list of stream chunks; a text. A text is read as an event stream or as
    a response's JSON only under the rules of `sse.is_event_stream` and `response_in`, otherwise it is a model's words.
    bytes are UTF-8. choice: which answer of several, counted from 0.

    Raises UnreadableInput for an object that is none of these, and for a choice that is not there. What the answer
    says never raises.

    >>> capture({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).raw
    'Hi'
    >>> call = {"id": "c0", "type": "function", "function": {"name": "f", "arguments": "{1"}}
    >>> capture({"role": "assistant", "content": None, "tool_calls": [call]}).raw
    '{"content":null,"tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{1"}}]}'
    """
    if isinstance(choice, bool) or not isinstance(choice, int) or choice < 0:
        raise BadOptions("a choice is the number of an answer", got=choice, expected="0, 1, …")
    if isinstance(obj, Captured):
        return obj
    if isinstance(obj, (bytes, bytearray, memoryview)):
        obj = bytes(obj).decode("utf-8", "surrogateescape")
    if isinstance(obj, str):
        response = response_in(obj)
        if response is not None:
            return capture(response, choice)
        if not is_event_stream(obj):
            return Captured(obj, fidelity="replayed")
        events = read_events(obj)
        return _streamed(events.messages, choice, done=events.done, unreadable=events.unreadable, fidelity="wire")
    if isinstance(obj, (list, tuple)):
        if not obj or not all(_may_hold(x) for x in obj):
            wrong = next((x for x in obj if not _may_hold(x)), None)
            raise UnreadableInput(
                "this is no list of stream chunks", got="an empty list" if not obj else _name(wrong),
                expected="the chunks of one stream, each an object or a dict",
            )  # fmt: skip
        return _streamed(obj, choice)
    if any(get(c, "delta") is not None for c in items(get(obj, "choices"))):
        return _streamed([obj], choice)
    made = Assembly(choice)
    if not _may_hold(obj) or not take_response(obj, made):
        hint = "a stream that is still under way is read by list(stream)" if hasattr(obj, "__next__") else None
        raise UnreadableInput("this holds no answer of a model", got=_name(obj), expected=_EXPECTED, hint=hint)
    return _finished(made, stream=False)


def response_in(text: str) -> Mapping[str, Any] | None:
    """The response that a text is the JSON of, or None.

    It has to be one JSON object whose `choices` hold a message, a delta or a text, or a Responses API object with its
    `output`. A message or a call alone is not enough: models write these themselves.

    >>> response_in('{"choices": [{"message": {"content": "Hi"}}]}') is None
    False
    >>> response_in('{"content": "Hi", "tool_calls": []}') is None
    True
    """
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return None
    try:
        found = read_strict(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    choices = found.get("choices")
    if isinstance(choices, list) and any(isinstance(c, dict) and _SAID.intersection(c) for c in choices):
        return found
    return found if found.get("object") == "response" and isinstance(found.get("output"), list) else None


_SAID = frozenset(("message", "delta", "text"))


def _streamed(
    messages: Iterable[Any],
    choice: int,
    *,
    done: bool = False,
    unreadable: tuple[str, ...] = (),
    fidelity: Fidelity = "sdk",
) -> Captured:
    made = Assembly(choice, streamed=True)
    known = 0
    for message in messages:
        known += take_chunk(message, made)
    if not known and not done and not unreadable:
        raise UnreadableInput("none of these is a chunk of a stream", expected=_EXPECTED)
    found = _finished(made, stream=True)
    return replace(found, cut=made.finish_reason is None and not done, unreadable=unreadable, fidelity=fidelity)


def _finished(made: Assembly, *, stream: bool) -> Captured:
    if made.choice and made.choice >= max(made.choices, 1):
        raise UnreadableInput(
            "this response has no such choice", got=made.choice, expected=f"0 to {max(made.choices, 1) - 1}"
        )
    return Captured(
        content=made.content, tool_calls=made.tool_calls, reasoning=made.reasoning, refusal=made.refusal,
        finish_reason=made.finish_reason, usage=made.usage, model=made.ids.get("model"), id=made.ids.get("id"),
        system_fingerprint=made.ids.get("system_fingerprint"), chunks=tuple(made.chunks), stream=stream,
        error=made.error, choices=max(made.choices, 1), completion=made.completion,
    )  # fmt: skip


def _may_hold(x: Any) -> bool:
    """Whether an object may be a response or a part of one: no text, number or other plain value."""
    return isinstance(x, Mapping) or not (x is None or isinstance(x, (str, bytes, bool, int, float, list, tuple, type)))


def _name(x: Any) -> str:
    if isinstance(x, Mapping):
        return f"a dict with {', '.join(map(str, list(x)[:8])) or 'nothing in it'}"
    shown = repr(x) if x is None or isinstance(x, (bool, int, float, str)) else ""
    return f"{type(x).__name__} {shown[:80]}".strip()
