"""Streams read from their lines, below litellm's readers of them, as chunks of OpenAI's shape."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from .failures import ReportedError
from .whole_answer import cohere_usage, finish_of_cohere, ollama_usage

# Why. litellm's readers of these streams take `[DONE]` for the reason "stop", end at a comment
# behind the finish reason and so lose the token counts, rewrite finish reasons, drop reasoning of
# Cohere, take text of Ollama for a call, and give errors another kind. They are known by the names
# of their classes, or of one they derive from, and have the lines inside.

_Event = Mapping[str, Any]


def lines_of(stream: Any) -> AsyncIterator[str] | None:
    """Return the lines inside litellm's stream, None where it is not read here."""
    inner = getattr(stream, "completion_stream", None)
    lines = getattr(inner, "streaming_response", None)
    if _reader_of(inner) is None or not hasattr(lines, "__aiter__"):
        return None
    return lines


async def chunks_of_lines(stream: Any) -> AsyncIterator[_Event]:
    """Yield the chunks of a stream that `lines_of` knows.

    What is no event (a comment, half a line at the end) is left out. A body without any event is
    given as one text, under "not_a_stream". Raises ReportedError for an error that the server
    wrote into the stream.
    """
    lines, reader = lines_of(stream), _reader_of(stream.completion_stream)
    if lines is None or reader is None:
        return
    read = reader()
    strange: list[str] | None = []
    async with contextlib.aclosing(_closable(lines)) as closable:
        async for line in closable:
            text = line.strip().removeprefix("data:").strip()
            event = _object(text)
            if event is None:
                if strange is not None and text and not line.startswith((":", "data:", "event:")):
                    strange.append(line)
                continue
            strange = None
            if event.get("error"):
                raise ReportedError(event["error"], event)
            for chunk in read(event):
                yield chunk
    if strange:
        yield {"not_a_stream": "\n".join(strange)}


async def _closable(lines: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    try:
        async for line in lines:
            yield line
    finally:
        close = getattr(lines, "aclose", None)
        if close is not None:
            await close()


def _object(text: str) -> _Event | None:
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_Read = Callable[[_Event], Iterator[_Event]]


def _openai() -> _Read:
    return lambda event: iter((event,))


def _chunk(delta: _Event, finish: str | None = None, **members: Any) -> _Event:
    return {**members, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _cohere() -> _Read:
    # Version 2 of its chat.
    def read(event: _Event) -> Iterator[_Event]:
        delta = _member(event, "delta")
        message = _member(delta, "message")
        kind = event.get("type")
        if kind == "message-start":
            yield _chunk({}, id=event.get("id"))
        elif kind in ("content-start", "content-delta"):
            content = message.get("content")
            if isinstance(content, str):
                content = {"text": content}
            content = content if isinstance(content, Mapping) else {}
            thought = content.get("thinking")
            yield _chunk({"content": content.get("text"), "reasoning_content": thought})
        elif kind == "tool-plan-delta":
            yield _chunk({"reasoning_content": message.get("tool_plan")})
        elif kind in ("tool-call-start", "tool-call-delta"):
            calls = message.get("tool_calls")
            call = calls[0] if isinstance(calls, list) and calls else calls
            if isinstance(call, Mapping):
                yield _chunk({"tool_calls": [{**call, "index": event.get("index", 0)}]})
        elif kind == "message-end":
            if delta.get("error"):
                raise ReportedError(delta["error"], event)
            finish = finish_of_cohere(delta.get("finish_reason"))
            yield _chunk({}, finish, usage=cohere_usage(delta.get("usage")))

    return read


def _ollama() -> _Read:
    # Both /api/chat and /api/generate.
    count = 0

    def read(event: _Event) -> Iterator[_Event]:
        nonlocal count
        message = _member(event, "message") or {
            "content": event.get("response"), "thinking": event.get("thinking"),
        }  # fmt: skip
        calls = message.get("tool_calls")
        pieces = []
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, Mapping):
                # Its calls come whole; older servers give no id, and results need one.
                pieces.append({"id": f"call_{uuid.uuid4().hex}", **call, "index": count})
                count += 1
        finish = None
        if event.get("done"):
            finish = str(event.get("done_reason") or "stop")
            finish = "tool_calls" if count and finish == "stop" else finish
        delta = {**message, "tool_calls": pieces}
        yield _chunk(delta, finish, model=event.get("model"), usage=ollama_usage(event))

    return read


def _member(value: _Event, name: str) -> _Event:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


_READERS: Mapping[str, Callable[[], _Read]] = {
    "OpenAIChatCompletionStreamingHandler": _openai,
    "OpenRouterChatCompletionStreamingHandler": _openai,
    "CohereV2ModelResponseIterator": _cohere,
    "OllamaChatCompletionResponseIterator": _ollama,
    "OllamaTextCompletionResponseIterator": _ollama,
}


def _reader_of(inner: Any) -> Callable[[], _Read] | None:
    names = (c.__name__ for c in type(inner).__mro__)
    return next((_READERS[name] for name in names if name in _READERS), None)
