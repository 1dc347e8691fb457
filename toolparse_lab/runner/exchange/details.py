"""What the record of an answer says of its sampling, its tokens and who gave it, in the words of
any provider.
"""

from __future__ import annotations

import re
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
    "options", "parameters", "extra_body", "reasoning", "output_config", "text",
)  # fmt: skip
# Members of a body that are the question, or how it is sent and kept, or what binds the answer's
# form, which the arm says. Every other one was sent to change the answer.
_OF_THE_QUESTION = frozenset(
    {
        "model", "model_id", "messages", "prompt", "input", "contents", "system", "instructions",
        "system_instruction", "systemInstruction", "message", "chat_history", "inputs", "raw",
        "tools", "tool_choice", "functions", "function_call", "parallel_tool_calls", "toolConfig",
        "tool_config", "toolChoice", "stream", "stream_options", "response_format", "format",
        "responseMimeType", "responseSchema", "response_mime_type", "response_schema", "grammar",
        "guided_choice", "guided_grammar", "guided_json", "guided_regex", "structured_outputs",
        "json_schema", "user", "metadata", "store", "include", "previous_response_id",
        "anthropic_version", "anthropic_beta", "keep_alive", "safetySettings", "safety_settings",
        "project_id", "space_id", "prompt_cache_key", "safety_identifier", "cachedContent",
        "stream_response", "litellm_metadata", "litellm_call_id",
    }
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
    "effort": "reasoning_effort",
}


def sampling_of(
    request: Mapping[str, Any], response: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Return what a recorded answer was asked with beside its question, by the names in `SAMPLING`
    where they have one there.

    It is what went out, `extra_body` included, where the record has the body that was sent. Else
    these are the parameters of the request. None if nothing is recorded of either.

    >>> sampling_of({}, {"sent": {"generationConfig": {"maxOutputTokens": 9, "temperature": 0}}})
    {'max_tokens': 9, 'temperature': 0}
    >>> sampling_of({}, {"sent": {"input": "Hi", "reasoning": {"effort": "low"}, "top_a": 0.1}})
    {'reasoning_effort': 'low', 'top_a': 0.1}
    """
    body, sent = (response or {}).get("sent"), True
    if not isinstance(body, Mapping):
        if "params" not in request:
            return None
        model = request.get("model")
        model = model if isinstance(model, Mapping) else {}
        # Of a log, whose requests hold much that was never sent to a model.
        sent = False
        body = {**(model.get("params") or {}), **(request["params"] or {})}
        if extra := {**(body.get("extra_body") or {}), **(model.get("extra_body") or {})}:
            body["extra_body"] = extra
    return dict(sorted(_found_in(body, sent)))


def _found_in(body: Mapping[str, Any], sent: bool) -> Iterator[tuple[str, Any]]:
    # sent: every member is a parameter, known or not, but for those of the question.
    for name, value in body.items():
        own_name = _NAMES.get(name, name)
        if value is None or name in _OF_THE_QUESTION:
            continue
        if own_name in SAMPLING:
            yield own_name, value
        elif name in _INSIDE and isinstance(value, Mapping):
            yield from _found_in(value, sent or name == "extra_body")
        elif sent:
            yield name, value


# -- who answered

# What follows a model's name in that of one of its versions: a date, a number, or the newest.
_VERSION = re.compile(
    r"[-@:_.](?:latest|default|v?\d{3,8}|v\d+(?::\d+)?|\d{4}-\d{2}-\d{2}|\d{2}-\d{2,4}"
    r"|free|nitro|floor|online|fastest|cheapest)$"
)
_NEWEST = re.compile(r"[-@:_.](?:latest|default|free|nitro|floor|online|fastest|cheapest)$")


def is_same_model(asked: str, served: str) -> bool:
    """Return True if the name that an answer gives is that of the model that was asked, or of a
    version of it.

    >>> is_same_model("openai/gpt-4o", "gpt-4o-2024-08-06")
    True
    >>> is_same_model("openai/gpt-4o", "gpt-4o-mini")
    False
    >>> is_same_model("gpt-4o-2024-05-13", "gpt-4o-2024-08-06")
    False
    >>> is_same_model("vertex_ai/claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620")
    True
    """
    one, other = _last(asked), _last(served)
    if one == other:
        return True
    bare_one, bare_other = _without_version(one), _without_version(other)
    # Of two versions one must be any, or the newest, or both are of one day.
    day = _day_of(one)
    return bare_one == bare_other and bool(
        bare_one in (one, other)
        or _NEWEST.search(one)
        or _NEWEST.search(other)
        or (day and day == _day_of(other))
    )


# What Bedrock puts before a model's own name: a region, and who made it.
_MAKER = re.compile(
    r"(?:[a-z]{2,6}(?:-gov)?\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\."
)
_DAY = re.compile(r"(20\d{2})-?(\d{2})-?(\d{2})(?!\d)")


def _last(name: str) -> str:
    last = name.lower().rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf")
    return _MAKER.sub("", last, count=1) if _MAKER.match(last) else last


def _day_of(name: str) -> str:
    found = _DAY.search(name)
    return "".join(found.groups()) if found else ""


def _without_version(name: str) -> str:
    while (shorter := _VERSION.sub("", name)) not in ("", name):
        name = shorter
    return name


_OF_PROVIDER = re.compile(
    r"(?:.*-)?request-?id|.*ratelimit.*|retry-after|openai-processing-ms|openai-version|cf-ray"
    r"|x-amzn-bedrock-.*|.*service-tier|.*-region"
)
_ROUTERS = (
    "x-inference-provider", "x-portkey-provider", "x-litellm-model-api-base", "x-litellm-model-id",
)  # fmt: skip


def told_by_headers(headers: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    """Return what the headers of a response say of the request and its limits, as `headers`, and
    who answered behind a router, as `provider`.

    >>> told_by_headers([("x-request-id", "r1"), ("Date", "today")])
    {'headers': {'x-request-id': 'r1'}}
    """
    by_name = {str(name).lower(): str(value) for name, value in headers}
    found = {name: value for name, value in by_name.items() if _OF_PROVIDER.fullmatch(name)}
    told: dict[str, Any] = {"headers": dict(sorted(found.items()))} if found else {}
    router = next((by_name[name] for name in _ROUTERS if name in by_name), None)
    return {**told, "provider": router} if router else told


def provider_words(response: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a provider sent with a recorded answer beside it: ids, tier and headers."""
    names = ("id", "system_fingerprint", "service_tier", "headers")
    return {name: value for name in names if (value := (response or {}).get(name))}


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
