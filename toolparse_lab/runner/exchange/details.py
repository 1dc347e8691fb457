"""What the record of an answer says of its sampling and tokens, in the words of any provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

SAMPLING = (
    "temperature", "top_p", "top_k", "min_p", "typical_p", "seed", "max_tokens", "min_tokens", "n",
    "stop", "frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias",
    "reasoning_effort", "thinking", "verbosity",
)  # fmt: skip
"""The parameters that decide how a model draws its answer, by one name each."""
# Where providers keep such parameters in a body, and what they call them.
_INSIDE = (
    "generationConfig", "generation_config", "inferenceConfig", "additionalModelRequestFields",
    "options", "parameters", "extra_body",
)  # fmt: skip
_NAMES = {
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_new_tokens": "max_tokens",
    "num_predict": "max_tokens",
    "random_seed": "seed",
    "topP": "top_p",
    "p": "top_p",
    "topK": "top_k",
    "k": "top_k",
    "stopSequences": "stop",
    "stop_sequences": "stop",
    "candidateCount": "n",
    "candidate_count": "n",
    "repeat_penalty": "repetition_penalty",
    "frequencyPenalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "thinkingConfig": "thinking",
    "thinking_config": "thinking",
}


def sampling_of(
    request: Mapping[str, Any], response: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return the sampling parameters of a recorded answer, by their names in `SAMPLING`.

    They are those of the body that was sent where the record has it, else those of the request.
    None if nothing is recorded of either.

    >>> sampling_of({}, {"sent": {"generationConfig": {"maxOutputTokens": 9, "temperature": 0}}})
    {'max_tokens': 9, 'temperature': 0}
    """
    body = (response or {}).get("sent")
    if not isinstance(body, Mapping):
        if "params" not in request:
            return None
        model = request.get("model")
        own = model.get("params") if isinstance(model, Mapping) else None
        body = {**(own or {}), **(request["params"] or {})}
    return dict(sorted(_found_in(body)))


def _found_in(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in body.items():
        own_name = _NAMES.get(name, name)
        if own_name in SAMPLING and value is not None:
            yield own_name, value
        elif name in _INSIDE and isinstance(value, Mapping):
            yield from _found_in(value)


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
