"""The token counts of an answer beyond the two that every provider gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# The members of `usage` in the words of OpenAI, Anthropic, DeepSeek, Gemini and the Responses API,
# with a dot where one is inside another.
_MEMBERS = {
    "reasoning_tokens": (
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
        "reasoning_tokens",
        "thoughtsTokenCount",
    ),
    "cached_tokens": (
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "cache_read_input_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
        "cachedContentTokenCount",
    ),
    "cache_write_tokens": (
        "cache_creation_input_tokens",
        "prompt_tokens_details.cache_creation_tokens",
        "prompt_tokens_details.cache_write_tokens",
    ),
}


def token_details(response: Mapping[str, Any] | None) -> dict[str, int | None]:
    """Return reasoning, cached and cache-write tokens of a recorded response, None for what the
    provider did not count.

    >>> token_details({"usage": {"prompt_tokens_details": {"cached_tokens": 4}}})["cached_tokens"]
    4
    """
    usage = (response or {}).get("usage")
    return {name: _first_count(usage, paths) for name, paths in _MEMBERS.items()}


def _first_count(usage: Any, paths: Iterable[str]) -> int | None:
    for path in paths:
        value = usage
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None
