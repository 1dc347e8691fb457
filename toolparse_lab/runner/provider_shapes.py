"""Answers in other providers' shapes, whole or line by line, read as OpenAI's."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from .failures import ReportedError

# Only what litellm loses on its way is read here: of Cohere the reasoning, the text next to calls
# and finish reasons; of Gemini the text that a filter has ended; of the Responses API refusals,
# reasoning content, and answers without any text; of Ollama the counts that were not made and the
# reason of /api/generate.

_Event = Mapping[str, Any]
_REASONS_OF_COHERE = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "MAX_TOKENS": "length",
    "TOOL_CALL": "tool_calls",
    "ERROR_TOXIC": "content_filter",
    "ERROR": "error",
    "TIMEOUT": "error",
}
_FILTERED = frozenset(
    {
        "refusal", "safety", "content_filtered", "guardrail_intervened", "sensitive",
        "prohibited_content", "error_toxic", "blocklist", "spii", "recitation", "image_safety",
    }
)  # fmt: skip


def finish_reason_of(reason: Any) -> str | None:
    """Return a finish reason as it is recorded: the provider's own, but that the many names of a
    filter that ended the answer are one, "content_filter"."""
    if not isinstance(reason, str) or not reason:
        return None
    return "content_filter" if reason.lower() in _FILTERED else reason


def as_chat(response: _Event) -> dict[str, Any] | None:
    """Return an answer of OpenAI, Cohere, Gemini or the Responses API in the shape of a chat
    completion, None for any other."""
    if isinstance(response.get("choices"), list):
        return dict(response)
    if isinstance(response.get("message"), Mapping) and "finish_reason" in response:
        return _of_cohere(response)
    if response.get("object") == "response" and isinstance(response.get("output"), list):
        return _of_responses(response)
    if any(name in response for name in ("candidates", "promptFeedback", "usageMetadata")):
        return _of_gemini(response)
    return None


def json_object(text: Any) -> dict[str, Any] | None:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _chat(message: _Event, finish: str | None, usage: Any, **ids: Any) -> dict[str, Any]:
    choices = [{"index": 0, "message": dict(message), "finish_reason": finish}]
    return {**ids, "choices": choices, "usage": usage}


def _chunk(delta: _Event, finish: str | None = None, **members: Any) -> _Event:
    return {**members, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _member(value: _Event, name: str) -> _Event:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _items(value: Any) -> Iterator[_Event]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            yield item


def _counts(sent: Any, received: Any) -> dict[str, Any] | None:
    # OpenAI's words for token counts, None where one of them is missing.
    if not isinstance(sent, (int, float)) or not isinstance(received, (int, float)):
        return None
    sent, received = int(sent), int(received)
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}


# -- whole answers


def is_of_ollama(response: _Event) -> bool:
    """Return True for a whole answer of /api/chat or /api/generate."""
    return "done" in response and ("message" in response or "response" in response)


def ollama_usage(response: _Event) -> dict[str, Any] | None:
    """Return Ollama's token counts in OpenAI's words, None where one of them is missing."""
    return _counts(response.get("prompt_eval_count"), response.get("eval_count"))


def _finish_of_cohere(reason: Any) -> str | None:
    # An unknown one as it is.
    return _REASONS_OF_COHERE.get(reason, reason) if isinstance(reason, str) else None


def _cohere_usage(usage: Any) -> dict[str, Any] | None:
    tokens = usage.get("tokens") if isinstance(usage, Mapping) else None
    if not isinstance(tokens, Mapping):
        return None
    counts = _counts(tokens.get("input_tokens"), tokens.get("output_tokens"))
    cached = usage.get("cached_tokens")
    if counts is not None and isinstance(cached, int):
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return counts


def _of_cohere(response: _Event) -> dict[str, Any]:
    message = dict(response["message"])
    plan = message.pop("tool_plan", None)
    if plan and isinstance(plan, str):
        content = message.get("content")
        texts = [content] if isinstance(content, str) else list(content or ())
        message["content"] = [*texts, {"type": "thinking", "thinking": plan}]
    finish = _finish_of_cohere(response.get("finish_reason"))
    return _chat(message, finish, _cohere_usage(response.get("usage")), id=response.get("id"))


def _of_responses(response: _Event) -> dict[str, Any]:
    thoughts: list[Any] = []
    texts: list[Any] = []
    for item in _items(response["output"]):
        if item.get("type") == "reasoning":
            parts = [*_items(item.get("summary")), *_items(item.get("content"))]
            thoughts += [part.get("text") for part in parts]
        elif item.get("type") == "message":
            texts += [part.get("text") or part.get("refusal") for part in _items(item["content"])]
    finish = "stop"
    if response.get("status") == "incomplete":
        reason = (response.get("incomplete_details") or {}).get("reason")
        finish = "length" if reason == "max_output_tokens" else str(reason)
    message = {
        "content": "".join(t for t in texts if isinstance(t, str)),
        "reasoning_content": "".join(t for t in thoughts if isinstance(t, str)),
    }
    usage = response.get("usage") or {}
    counts = _counts(usage.get("input_tokens"), usage.get("output_tokens"))
    if counts is not None:
        counts |= {
            "prompt_tokens_details": usage.get("input_tokens_details"),
            "completion_tokens_details": usage.get("output_tokens_details"),
        }
    return _chat(message, finish, counts, id=response.get("id"), model=response.get("model"))


def _of_gemini(response: _Event) -> dict[str, Any]:
    candidate: _Event = next(_items(response.get("candidates")), {})
    parts = list(_items((candidate.get("content") or {}).get("parts")))
    message = {
        "content": "".join(str(p.get("text") or "") for p in parts if not p.get("thought")),
        "reasoning_content": "".join(str(p.get("text") or "") for p in parts if p.get("thought")),
    }
    feedback = response.get("promptFeedback") or {}
    finish = candidate.get("finishReason") or ("SAFETY" if feedback.get("blockReason") else None)
    usage = response.get("usageMetadata") or {}
    thoughts, answer = usage.get("thoughtsTokenCount"), usage.get("candidatesTokenCount")
    counts = _counts(usage.get("promptTokenCount"), (answer or 0) + (thoughts or 0))
    if counts is not None:
        counts |= {
            "prompt_tokens_details": {"cached_tokens": usage.get("cachedContentTokenCount")},
            "completion_tokens_details": {"reasoning_tokens": thoughts},
        }
    finish = {"STOP": "stop", "MAX_TOKENS": "length"}.get(str(finish), finish)
    model = response.get("modelVersion")
    return _chat(message, finish, counts, id=response.get("responseId"), model=model)


# -- lines

# Why. litellm's readers of these streams take `[DONE]` for the reason "stop", end at a comment
# after the finish reason and so lose the token counts, rewrite finish reasons, drop reasoning of
# Cohere, take text of Ollama for a call, and give errors another kind. They are known by the names
# of their classes, or of one they derive from, and have the lines inside.

_Read = Callable[[_Event], Iterator[_Event]]


def lines_of(stream: Any) -> tuple[AsyncIterator[str], _Read] | None:
    """Return the lines inside litellm's stream and their reader, None where it is not read here."""
    inner = getattr(stream, "completion_stream", None)
    lines: Any = getattr(inner, "streaming_response", None)
    names = (c.__name__ for c in type(inner).__mro__)
    reader = next((_READERS[name] for name in names if name in _READERS), None)
    if reader is None or not hasattr(lines, "__aiter__"):
        return None
    return lines, reader()


async def chunks_of_lines(lines: AsyncIterator[str], read: _Read) -> AsyncIterator[_Event]:
    """Yield the chunks of what `lines_of` gives.

    What is no event (a comment, half a line at the end) is left out. A body without any event is
    given as one text, under "not_a_stream". Raises ReportedError for an error that the server
    wrote into the stream.
    """
    strange: list[str] | None = []
    closing: Any = contextlib.aclosing if hasattr(lines, "aclose") else contextlib.nullcontext
    async with closing(lines):
        async for line in lines:
            text = line.strip().removeprefix("data:").strip()
            event = json_object(text)
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


def _openai(event: _Event) -> Iterator[_Event]:
    yield event


def _cohere(event: _Event) -> Iterator[_Event]:
    # Version 2 of its chat.
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
        finish = _finish_of_cohere(delta.get("finish_reason"))
        yield _chunk({}, finish, usage=_cohere_usage(delta.get("usage")))


def _ollama() -> _Read:
    # Both /api/chat and /api/generate.
    count = 0

    def read(event: _Event) -> Iterator[_Event]:
        nonlocal count
        message = _member(event, "message") or {
            "content": event.get("response"), "thinking": event.get("thinking"),
        }  # fmt: skip
        pieces = []
        for call in _items(message.get("tool_calls")):
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


_READERS: Mapping[str, Callable[[], _Read]] = {
    "OpenAIChatCompletionStreamingHandler": lambda: _openai,
    "OpenRouterChatCompletionStreamingHandler": lambda: _openai,
    "CohereV2ModelResponseIterator": lambda: _cohere,
    "OllamaChatCompletionResponseIterator": _ollama,
    "OllamaTextCompletionResponseIterator": _ollama,
}
