"""The sampling of an answer: temperature, seed, length and the like, as they were really sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
