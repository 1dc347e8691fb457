"""What somebody else's parser gives back as a list of calls, whichever of the usual shapes it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...errors import UnreadableInput
from ...values import read_strict, write_canonical

_NAMES = ("name", "toolName", "tool_name")
_ARGUMENTS = ("arguments", "args", "input", "parameters")
_MOST = 1_000
_SHAPE = (
    "a list of {'name': …, 'arguments': …} (OpenAI tool calls, or objects with such attributes, will do), "
    "something with `tool_calls`, or None"
)


@dataclass(frozen=True, slots=True)
class SaidCall:
    """A call that a parser says: its name, and its arguments as canonical JSON."""

    name: str
    arguments_json: str


def said_calls(said: Any) -> tuple[SaidCall, ...]:
    """The calls of what a parser returned; raises UnreadableInput for what holds none that can be told.

    >>> said_calls([{"function": {"name": "f", "arguments": '{"a": 1}'}}])
    (SaidCall(name='f', arguments_json='{"a":1}'),)
    """
    if said is None:
        return ()
    inner = _member(said, "tool_calls")
    if inner is None and not isinstance(said, Mapping):
        inner = _member(said, "calls")
    if inner is not None:
        said = inner
    elif isinstance(said, Mapping) or _first(said, _NAMES) is not None:
        said = [said] if said else []
    if isinstance(said, (str, bytes)) or not isinstance(said, Iterable):
        raise UnreadableInput("this is no list of calls", got=type(said).__name__, expected=_SHAPE)
    return tuple(_said_call(item) for item in islice(said, _MOST))


def _said_call(item: Any) -> SaidCall:
    body = _member(item, "function")
    if body is None or isinstance(body, str):
        body = item
    name = _first(body, _NAMES)
    if not isinstance(name, str):
        raise UnreadableInput("a call without a name", got=repr(item)[:200], expected=_SHAPE)
    given = _first(body, _ARGUMENTS)
    try:
        if isinstance(given, str):
            given = read_strict(given) if given.strip() else None
        return SaidCall(name, write_canonical({} if given is None else given))
    except (TypeError, ValueError, RecursionError) as e:
        raise UnreadableInput(
            f"the arguments of {name!r} are no JSON", got=repr(given)[:200], expected="an object, or JSON text of one"
        ) from e


def _first(x: Any, names: Iterable[str]) -> Any:
    return next((v for n in names if (v := _member(x, n)) is not None), None)


def _member(x: Any, name: str) -> Any:
    found = x.get(name) if isinstance(x, Mapping) else getattr(x, name, None)
    return None if callable(found) else found
