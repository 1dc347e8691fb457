"""The calls that a regex and `json.loads` would find: the script that people write first."""

from __future__ import annotations

import json
from typing import Any


def naive_calls(raw: str, *, native: bool = False) -> list[tuple[str, Any]]:
    """Return the calls that a regex for a JSON object and `json.loads` would find, none if that
    fails.

    native: `raw` is a native message, whose calls need no regex.

    >>> naive_calls('Sure: {"name": "f", "arguments": {"a": 1}}')
    [('f', {'a': 1})]
    >>> naive_calls("{'name': 'f', 'arguments': {}}")
    []
    """
    try:
        return _native_calls(raw) if native else _object_call(raw)
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []


def _native_calls(raw: str) -> list[tuple[str, Any]]:
    # Raises whatever is not as a script expects it.
    message = json.loads(raw)
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def _object_call(raw: str) -> list[tuple[str, Any]]:
    # From the first brace to the last. None without braces, and for an object whose two members are
    # of other types than a call's.
    start = raw.find("{")
    end = raw.rfind("}")
    if start < 0 or end < start:
        return []

    call = json.loads(raw[start : end + 1])
    name = call["name"]
    arguments = call["arguments"]
    if isinstance(name, str) and isinstance(arguments, dict):
        return [(name, arguments)]
    return []
