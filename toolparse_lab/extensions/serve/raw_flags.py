"""Flags that make a server show the text that its model wrote, added only if somebody says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...core.errors import BadOptions, near

# Server -> the members of a request, as its sources have them. docs/running.md says where each was
# read, and what it changes for whoever asks.
RAW_FLAGS: Mapping[str, Mapping[str, Any]] = {
    "vllm": {
        "skip_special_tokens": False,
        "include_stop_str_in_output": True,
        "return_token_ids": True,
        "logprobs": True,
    },
    "sglang": {
        "skip_special_tokens": False,
        "no_stop_trim": True,
        "separate_reasoning": False,
        "return_token_ids": True,
    },
    "llama.cpp": {"parse_tool_calls": False, "reasoning_format": "none"},
}
# Of /v1/completions, whose `logprobs` is a number.
_OF_COMPLETIONS = {"logprobs": 1}


def raw_flags(wanted: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the members that a request gets.

    wanted: the name of a server, a JSON object or a mapping, None for none. Raises BadOptions.
    """
    if wanted is None:
        return {}
    if isinstance(wanted, Mapping):
        return dict(wanted)
    if wanted in RAW_FLAGS:
        return dict(RAW_FLAGS[wanted])
    try:
        members = json.loads(wanted)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        raise BadOptions(
            "the text is asked for by a server's flags, or by your own",
            got=wanted,
            expected=f"{', '.join(RAW_FLAGS)}, or a JSON object of request members",
            hint=near(wanted, RAW_FLAGS),
        )
    return members


def with_flags(path: str, body: bytes, flags: Mapping[str, Any]) -> tuple[bytes, Mapping[str, Any]]:
    """Return the body of a request with these members, and those of them that it did not have.

    A body that is not a JSON object comes back as it is.
    """
    try:
        members = json.loads(body)
    except (ValueError, RecursionError):
        return body, {}
    if not isinstance(members, dict):
        return body, {}
    if not path.endswith("/chat/completions") and path.endswith("/completions"):
        flags = {**flags, **{k: v for k, v in _OF_COMPLETIONS.items() if flags.get(k) is True}}
    added = {name: value for name, value in flags.items() if name not in members}
    if not added:
        return body, {}
    return json.dumps({**members, **added}, ensure_ascii=True).encode(), added
