"""Calls that another's parser returned, whichever of the usual shapes they have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...core.errors import UnreadableInput
from ...core.values import read_strict, write_canonical

# The first of these that a call has is its name, or its arguments.
_NAMES = ("name", "toolName", "tool_name")
_ARGUMENTS = ("arguments", "args", "input", "parameters")
_PROSE = ("text", "thinking", "redacted_thinking")
_MOST = 1_000  # calls taken of one text, since a parser may return a generator without an end
_SHAPE = (
    "a list of {'name': …, 'arguments': …} (OpenAI tool calls, content blocks of Anthropic, "
    "objects with such attributes, or pairs of name and arguments will do), "
    "something with `tool_calls`, or None"
)


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call that a parser returned: its name, and its arguments as canonical JSON."""

    name: str
    arguments_json: str


def outside_calls(returned: Any) -> tuple[OutsideCall, ...]:
    """Return the calls in a parser's return value.

    Raises UnreadableInput for an object without calls that can be made out.

    >>> outside_calls([{"function": {"name": "f", "arguments": '{"a": 1}'}}])
    (OutsideCall(name='f', arguments_json='{"a":1}'),)
    """
    if returned is None:
        return ()

    calls = _list_of(returned)
    # A text is iterable, too, and would be taken for a list of letters.
    if isinstance(calls, (str, bytes)) or not isinstance(calls, Iterable):
        raise UnreadableInput("this is no list of calls", got=type(calls).__name__, expected=_SHAPE)
    return tuple(_outside_call(call) for call in islice(calls, _MOST) if not _is_prose(call))


def _list_of(returned: Any) -> Any:
    inner = _member(returned, "tool_calls")
    # A mapping may well be one call with a member `calls` of its own.
    if inner is None and not isinstance(returned, Mapping):
        inner = _member(returned, "calls")
    if inner is not None:
        return inner

    # An empty mapping is how some parsers say that there is no call.
    if isinstance(returned, Mapping):
        if _first(returned, _NAMES) is None and _member(returned, "role") is not None:
            content = _member(returned, "content")
            return content if isinstance(content, list) else []
        return [returned] if returned else []
    if _is_pair(returned):
        return [returned]
    if _first(returned, _NAMES) is not None:
        return [returned] if returned else []
    return returned


def _is_prose(item: Any) -> bool:
    # The text of a message, or its thoughts.
    return isinstance(item, Mapping) and item.get("type") in _PROSE


def _is_pair(item: Any) -> bool:
    is_pair = isinstance(item, tuple) and len(item) == 2
    return is_pair and isinstance(item[0], str) and isinstance(item[1], (str, Mapping))


def _outside_call(item: Any) -> OutsideCall:
    if _is_pair(item):
        item = {"name": item[0], "arguments": item[1]}
    body = _member(item, "function")
    # Some formats call the name `function`, and then it is a text.
    if body is None or isinstance(body, str):
        body = item
    name = _first(body, _NAMES)
    if not isinstance(name, str):
        raise UnreadableInput("a call without a name", got=repr(item)[:200], expected=_SHAPE)

    arguments = _first(body, _ARGUMENTS)
    try:
        return OutsideCall(name, _canonical(arguments))
    except (TypeError, ValueError, RecursionError) as e:
        raise UnreadableInput(
            f"the arguments of {name!r} are no JSON",
            got=repr(arguments)[:200],
            expected="an object, or JSON text of one",
        ) from e


def _canonical(arguments: Any) -> str:
    # None and a blank string are no arguments, which is an object without members.
    if isinstance(arguments, str):
        arguments = read_strict(arguments) if arguments.strip() else None
    if arguments is None:
        return "{}"
    return write_canonical(arguments)


def _first(x: Any, names: Iterable[str]) -> Any:
    for name in names:
        value = _member(x, name)
        if value is not None:
            return value
    return None


def _member(x: Any, name: str) -> Any:
    # A key of a mapping or an attribute of an object, but for methods.
    if isinstance(x, Mapping):
        value = x.get(name)
    else:
        value = getattr(x, name, None)

    # Many objects have methods of such names, `index` and `input` among them.
    return None if callable(value) else value
