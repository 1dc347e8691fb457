"""A whole answer of a provider, as a chat completion of OpenAI's shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# Only what litellm loses on its way is read here: of Cohere the reasoning, the text beside calls
# and finish reasons; of Gemini the text that a filter has ended; of the Responses API refusals,
# reasoning content, and answers without any text; of Ollama the counts that were not made and the
# reason of /api/generate.

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


def as_chat(response: Mapping[str, Any]) -> dict[str, Any] | None:
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


def _chat(message: Mapping[str, Any], finish: str | None, usage: Any, **ids: Any) -> dict[str, Any]:
    choices = [{"index": 0, "message": dict(message), "finish_reason": finish}]
    return {**ids, "choices": choices, "usage": usage}


def finish_of_cohere(reason: Any) -> str | None:
    """Return a finish reason of Cohere in OpenAI's words, an unknown one as it is."""
    return _REASONS_OF_COHERE.get(reason, reason) if isinstance(reason, str) else None


def cohere_usage(usage: Any) -> dict[str, Any] | None:
    """Return Cohere's token counts in OpenAI's words, None where there are none."""
    tokens = usage.get("tokens") if isinstance(usage, Mapping) else None
    if not isinstance(tokens, Mapping):
        return None
    counts = _counts(tokens.get("input_tokens"), tokens.get("output_tokens"))
    cached = usage.get("cached_tokens")
    if counts is not None and isinstance(cached, int):
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return counts


def ollama_usage(response: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return Ollama's token counts in OpenAI's words, None where one of them is missing."""
    return _counts(response.get("prompt_eval_count"), response.get("eval_count"))


def is_of_ollama(response: Mapping[str, Any]) -> bool:
    """True for a whole answer of /api/chat or /api/generate."""
    return "done" in response and ("message" in response or "response" in response)


def _counts(sent: Any, received: Any) -> dict[str, Any] | None:
    if not isinstance(sent, (int, float)) or not isinstance(received, (int, float)):
        return None
    sent, received = int(sent), int(received)
    return {
        "prompt_tokens": sent,
        "completion_tokens": received,
        "total_tokens": sent + received,
    }


def _of_cohere(response: Mapping[str, Any]) -> dict[str, Any]:
    message = dict(response["message"])
    plan = message.pop("tool_plan", None)
    if plan and isinstance(plan, str):
        content = message.get("content")
        texts = [content] if isinstance(content, str) else list(content or ())
        message["content"] = [*texts, {"type": "thinking", "thinking": plan}]
    finish = finish_of_cohere(response.get("finish_reason"))
    return _chat(message, finish, cohere_usage(response.get("usage")), id=response.get("id"))


def _items(value: Any) -> Iterator[Mapping[str, Any]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, Mapping):
            yield item


def _of_responses(response: Mapping[str, Any]) -> dict[str, Any]:
    thoughts: list[Any] = []
    texts: list[Any] = []
    for item in _items(response["output"]):
        if item.get("type") == "reasoning":
            parts = [*_items(item.get("summary")), *_items(item.get("content"))]
            thoughts += [part.get("text") for part in parts]
        elif item.get("type") == "message":
            texts += [part.get("text") or part.get("refusal") for part in _items(item["content"])]
    details = response.get("incomplete_details") or {}
    finish = "stop"
    if response.get("status") == "incomplete":
        reason = details.get("reason")
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
    ids = {"id": response.get("id"), "model": response.get("model")}
    return _chat(message, finish, counts, **ids)


def _of_gemini(response: Mapping[str, Any]) -> dict[str, Any]:
    candidate: Mapping[str, Any] = next(_items(response.get("candidates")), {})
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
    return _chat(message, finish, counts, id=response.get("responseId"))
