"""The calls and texts of a message in OpenAI's shape, found in its JSON value.

A message has more than one shape: as the API has it today and as it had it before, a bare list of
calls, or one call alone. The functions here know them all, so that no one else has to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ...core.values import Value

_Kind: TypeAlias = Literal["text", "reasoning"]
_TEXTS: Mapping[str, _Kind] = {
    "content": "text",
    "refusal": "text",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
}
_ARGUMENTS = ("arguments", "input", "parameters", "args", "params")
_WRAPPERS = ("function", "custom")  # a call of either kind holds its name and arguments


def is_message(value: Value) -> bool:
    """Return True if a value is a message, with calls or without.

    Either its `tool_calls` are a list or null, as OpenAI has them, or it says that it is the
    assistant's.
    """
    if not isinstance(value, dict):
        return False
    # Without the key the default is neither a list nor null.
    return isinstance(value.get("tool_calls", 0), list | None) or value.get("role") == "assistant"


def calls_in(value: Value) -> dict[str, Value]:
    """Return JSON Pointer -> call, in order, or empty if the value holds none.

    They are those of a message (`tool_calls`, or the older `function_call`), of a list of calls, or
    one call alone, as models write it that leave the message out.

    >>> list(calls_in({"tool_calls": [{"name": "f"}]})), calls_in("text")
    (['/tool_calls/0'], {})
    """
    # Models that leave the message out write its list of calls alone.
    if isinstance(value, list):
        return {f"/{i}": item for i, item in enumerate(value)}
    if not isinstance(value, dict):
        return {}
    if isinstance(value.get("tool_calls"), list):
        return {f"/tool_calls/{i}": item for i, item in enumerate(value["tool_calls"])}
    # Clients of before 2023-11 have one call, without a list and without an id.
    if isinstance(value.get("function_call"), dict):
        return {"/function_call": value["function_call"]}
    # A message has a "name" too, of who speaks.
    names = isinstance(value.get("name"), str)
    if (names or any(isinstance(value.get(k), dict) for k in _WRAPPERS)) and not is_message(value):
        return {"": value}
    return {}


def texts_in(value: Value) -> dict[str, _Kind]:
    """Return JSON Pointer -> kind of each text of a message, content parts included.

    The order is that of the keys in `_TEXTS`, then of the parts. `Message` sorts them by place.

    >>> texts_in({"content": [{"text": "a"}, {"image": "b"}]})
    {'/content/0/text': 'text'}
    """
    if not isinstance(value, dict):
        return {}

    texts: dict[str, _Kind] = {}
    for key, kind in _TEXTS.items():
        if isinstance(value.get(key), str):
            texts[f"/{key}"] = kind
    if "/reasoning_content" in texts:  # some servers say it twice
        texts.pop("/reasoning", None)

    # Images and files among the parts of the content are markup.
    content = value.get("content")
    for i, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            texts[f"/content/{i}/text"] = "text"
    return texts


def inner_of(call: Value) -> tuple[Value, str]:
    """Return the object with name and arguments, and its path from the call."""
    if not isinstance(call, dict):
        return call, ""

    for key in _WRAPPERS:
        if isinstance(call.get(key), dict):
            return call[key], f"/{key}"
    return call, ""


def arguments_key(inner: dict[str, Value]) -> str | None:
    return next((key for key in _ARGUMENTS if key in inner), None)


def doubt_about(inner: dict[str, Value]) -> str:
    """Return why it is open what the arguments of a call are, "" where it is not.

    Objects are under two keys that may be theirs, or under a key that no one knows alone.

    >>> doubt_about({"name": "f", "kwargs": {"a": 1}})
    'no arguments, but another object: kwargs'
    """
    key = arguments_key(inner)
    first = inner[key] if key else None
    for other, value in inner.items():
        if other == key or not isinstance(value, dict) or not value:
            continue
        if key is None:
            return f"no arguments, but another object: {other}"
        if other in _ARGUMENTS and value != first and not is_definition(value):
            return f"arguments stand under two keys: {key} and {other}"
    return ""


def is_definition(value: Value) -> bool:
    """Return True if a value is the schema of a tool's parameters.

    Models repeat the tools on offer, with the name before them as in a call.

    >>> is_definition({"type": "object", "properties": {}}), is_definition({"properties": 1})
    (True, False)
    """
    if not isinstance(value, dict) or not isinstance(value.get("properties"), dict):
        return False
    return value.get("type") == "object" or "required" in value


def arguments_of(call: Value) -> Value:
    inner, _ = inner_of(call)
    if not isinstance(inner, dict):
        return None
    key = arguments_key(inner)
    return inner[key] if key else None
