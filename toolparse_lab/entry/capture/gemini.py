"""Answers of Gemini's generateContent, and Vertex's, whole and in chunks of the same shape."""

from __future__ import annotations

from typing import Any

from ...core.types.call_pieces import member as get
from .assembly import Assembly, plain
from .parts import end_partial, first_of, take_part
from .shapes import counts_of_usage, items, parts_in, place_of

# Python's client writes names with underscores, and finish reasons as words of an enum or numbers.
_FEEDBACK = ("promptFeedback", "prompt_feedback")
_USAGE = ("usageMetadata", "usage_metadata")
_FINISH = ("finishReason", "finish_reason")
_MODEL = ("modelVersion", "model_version")
_ID = ("responseId", "response_id")
NEEDS = frozenset(("candidates", *_FEEDBACK, *_USAGE))
_REASONS = {
    "STOP": "stop", "1": "stop", "MAX_TOKENS": "length", "2": "length",
    **dict.fromkeys(("3", "4", "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
                     "LANGUAGE", "IMAGE_SAFETY", "MODEL_ARMOR"), "content_filter"),
}  # fmt: skip
_UNSAID = ("", "0", "FINISH_REASON_UNSPECIFIED")
_OF_CANDIDATE = frozenset((
    "content", "finishReason", "finish_reason", "finishMessage", "finish_message", "index",
    "safetyRatings", "safety_ratings", "citationMetadata", "citation_metadata", "tokenCount",
    "token_count", "avgLogprobs", "avg_logprobs", "logprobsResult", "logprobs_result",
    "groundingMetadata", "grounding_metadata", "groundingAttributions", "urlContextMetadata",
    "url_context_metadata",
))  # fmt: skip
_OF_CONTENT = frozenset(("role", "parts"))


def is_gemini(obj: Any) -> bool:
    """Return True for an answer of Gemini's, or a chunk of one."""
    if isinstance(get(obj, "candidates"), (list, tuple)) or first_of(obj, _FEEDBACK) is not None:
        return True
    # A last chunk may have counts alone.
    return get(obj, "usageMetadata") is not None or (
        get(obj, "usage_metadata") is not None and first_of(obj, _MODEL) is not None
    )


def ends(obj: Any) -> bool:
    """Return True for a chunk that says why its answer ended."""
    return any(first_of(c, _FINISH) is not None for c in items(get(obj, "candidates")))


def take_gemini(obj: Any, assembly: Assembly) -> bool:
    """Take in a whole answer. False for one without a candidate that is not a block either."""
    take_gemini_chunk(obj, assembly)
    has_any = bool(items(get(obj, "candidates"))) or first_of(obj, _FEEDBACK) is not None
    return has_any or assembly.error is not None


def take_gemini_chunk(obj: Any, assembly: Assembly) -> bool:
    """Take in a chunk, or a whole answer."""
    for name, value in (("model", first_of(obj, _MODEL)), ("id", first_of(obj, _ID))):
        if isinstance(value, str) and value:
            assembly.ids.setdefault(name, value)
    _count(first_of(obj, _USAGE), assembly)
    if (error := get(obj, "error")) is not None:
        assembly.fail(error)
    candidates = items(get(obj, "candidates"))
    for number, candidate in enumerate(candidates):
        place = place_of(candidate, number) if len(candidates) == 1 else number
        assembly.choices = max(assembly.choices, place + 1)
        if place == assembly.choice:
            _take_candidate(candidate, assembly)
    blocked = first_of(first_of(obj, _FEEDBACK), ("blockReason", "block_reason"))
    if blocked and _word(blocked) not in ("0", "BLOCK_REASON_UNSPECIFIED"):
        assembly.choices = max(assembly.choices, 1)
        assembly.finish("content_filter")
    return True


def _take_candidate(candidate: Any, assembly: Assembly) -> None:
    content = get(candidate, "content")
    for part in content if isinstance(content, (list, tuple)) else parts_in(get(content, "parts")):
        take_part(part, assembly, assembly.next_index())
    if isinstance(content, str):
        assembly.say(content)
    elif content is not None:
        assembly.doubt(content, _OF_CONTENT)
    assembly.doubt(candidate, _OF_CANDIDATE)
    reason = first_of(candidate, _FINISH)
    word = "" if reason is None else _word(reason)
    if word not in _UNSAID:
        end_partial(assembly)
        said = _REASONS.get(word, word.lower())
        # Gemini says STOP after calls, too.
        assembly.finish("tool_calls" if said == "stop" and assembly.calls else said)


def _word(reason: Any) -> str:
    value = getattr(reason, "value", reason)
    return str(value).rpartition(".")[2].upper()


def _count(usage: Any, assembly: Assembly) -> None:
    counts = plain(usage)
    if not isinstance(counts, dict) or not counts:
        return

    def of(name: str, snake: str) -> Any:
        return counts.get(name, counts.get(snake))

    thoughts = of("thoughtsTokenCount", "thoughts_token_count")
    received = of("candidatesTokenCount", "candidates_token_count")
    if isinstance(thoughts, int):
        received = thoughts + (received if isinstance(received, int) else 0)
    counted = counts_of_usage(
        of("promptTokenCount", "prompt_token_count"),
        received,
        of("totalTokenCount", "total_token_count"),
        cached=of("cachedContentTokenCount", "cached_content_token_count"),
        reasoning=thoughts,
    )
    assembly.usage = {**(assembly.usage or {}), **counted} or None
