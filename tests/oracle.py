"""The answer of a perfect model: a case's target as the calls that meet it, written in a format.

Everything written so has to score `correct` in every format, or the format cannot carry the call
and its writer refuses it. Anything else is a fault of this package and not of a model.
"""

# How it works. A target leaves choices open; `right_calls` takes one of them at each place, by a
# number, so that numbers from 0 upward go through the alternatives. A value that only a pattern
# describes is not made up.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolparse_lab.core.errors import UnwritableCall
from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.core.values import Value, write_canonical
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.cases.target import is_optional, is_wish
from toolparse_lab.formats.base import Protocol

_LEFT_OUT: Any = object()
# Matchers that say a value is right only by a rule, and those that any value fits.
_BY_RULE = frozenset(("regex",))


def right_calls(case: Case, choice: int = 0) -> list[tuple[str, Value]]:
    """Return calls that meet the target of a case, as (name, arguments). [] where none is wanted.

    choice: which alternative is taken where there are several, modulo their number. Anything that
    may be left out is written under even numbers and left out under odd ones.

    Raises UnwritableCall if a value is described by a pattern alone.

    >>> target = [{"name": "f", "arguments": {"a": {"$any": [1, 2]}, "b": {"$optional": True}}}]
    >>> right_calls(Case("c", "?", (), target), 1)
    [('f', {'a': 2})]
    """
    calls = []
    for want in case.target or ():
        call = _call_of(want, choice)
        if call is not None:
            calls.append(call)
    return calls


def write_right_answer(case: Case, protocol: Protocol, choice: int = 0) -> str:
    """Return the answer of a perfect model to a case in a format, '' where no call is wanted.

    choice: see `right_calls`.

    Raises UnwritableCall if the format cannot carry a value, or no value is known.

    >>> from toolparse_lab.formats.registry import protocols
    >>> case = Case("c", "?", (), [{"name": "f", "arguments": {"a": 1}}])
    >>> write_right_answer(case, protocols()["pythonic"])
    '[f(a=1)]'
    """
    calls = right_calls(case, choice)
    tools = {tool.name: tool for tool in case.tools}
    texts = [_write(protocol, name, value, tools.get(name)) for name, value in calls]
    return protocol.join_calls(texts) if texts else ""


def _write(protocol: Protocol, name: str, value: Value, tool: ToolSpec | None) -> str:
    return protocol.write_call(name, write_canonical(value), tool)


def _call_of(want: Mapping[str, Any], choice: int) -> tuple[str, Value] | None:
    if is_optional(want) and choice % 2:
        return None
    if "$any" in want:
        return _call_of(_pick(want["$any"], choice), choice)

    name = want["name"]
    if isinstance(name, Mapping):
        name = _pick(name["$any"], choice)
    # Where any arguments will do, none are written.
    arguments = _value_of(want.get("arguments", {}), choice)
    return name, {} if arguments is _LEFT_OUT or arguments is None else arguments


def _pick(alternatives: list[Any], choice: int) -> Any:
    return alternatives[choice % len(alternatives)]


def _value_of(want: Any, choice: int) -> Any:
    # `_LEFT_OUT` for a value that may be left out and is.
    if is_wish(want):
        return _granted(want, choice)
    if isinstance(want, Mapping):
        members = {key: _value_of(inner, choice) for key, inner in want.items()}
        return {key: value for key, value in members.items() if value is not _LEFT_OUT}
    if isinstance(want, list):
        return [_value_of(inner, choice) for inner in want]
    return want


def _granted(wish: Mapping[str, Any], choice: int) -> Any:
    # Where any value will do, none is the only one that suits every schema.
    is_open = not {"$any", "$value", "$match"} & wish.keys()
    if is_optional(wish) and (choice % 2 or is_open):
        return _LEFT_OUT

    if wish.get("$match") in _BY_RULE:
        raise UnwritableCall(
            "a value that only a pattern describes cannot be written",
            got=write_canonical(dict(wish)),
            hint="name a value that is right beside it, with $any",
        )
    if "$any" in wish:
        return _value_of(_pick(wish["$any"], choice), choice)
    return wish.get("$value")  # read as it stands: nothing in it is a wish
