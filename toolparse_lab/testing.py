"""Tests of how text is read: `assert_parses`, whose failure shows the text with its origins and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import BadOptions
from .flow import read_answer
from .render import render_ansi
from .render.show import shorten, visible
from .types import ParseResult, ToolCall
from .values import escape_token, read_strict, same, write_canonical

_SHOWN = 40  # differences
_VALUE = 120  # characters of a value


def assert_parses(
    raw: Any,
    protocol: Any = "auto",
    tools: Any = None,
    *,
    calls: Sequence[Any],
    text: str | None = None,
    options: Any = None,
    tool_choice: Any = "auto",
    color: bool = False,
) -> ParseResult:
    """Asserts that `raw` reads as these calls, and gives the result.

    calls: the wanted calls in order: names, `{"name", "arguments"}` or `(name, arguments)` for calls that are ok, or
    `(name, status, arguments)`. Arguments are values, of which 1 and 1.0 are one number, or canonical JSON text, which
    must be the same to the character; without them any will do. text: the text outside calls. protocol, tools, options:
    as for `parse`; tool_choice: as for `read_answer`. color: whether the failure's text is coloured.

    Raises AssertionError, and BadOptions for calls that cannot be read.

    >>> raw = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    >>> assert_parses(raw, "hermes", calls=[("f", {"a": 1})]).ok
    True
    """
    __tracebackhide__ = True
    wanted = [_Wanted.of(call) for call in calls]
    result = read_answer(raw, protocol, tools, options, tool_choice)
    found = list(_differences(wanted, result))
    if text is not None and result.text != text:
        found.append(f"text: wanted {_short(text)}, read {_short(result.text)}")
    if found:
        raise AssertionError(_message(found, result, color))
    return result


class _Wanted:
    """One call as it is wanted; `arguments` is a value, a canonical text, or None for any."""

    def __init__(self, name: str, status: str = "ok", arguments: Any = None) -> None:
        self.name, self.status, self.arguments = name, status, arguments

    @classmethod
    def of(cls, x: Any) -> _Wanted:
        if isinstance(x, str):
            return cls(x)
        if isinstance(x, Mapping) and isinstance(x.get("name"), str) and set(x) <= {"name", "arguments", "status"}:
            return cls(x["name"], x.get("status", "ok"), x.get("arguments"))
        if isinstance(x, (tuple, list)) and len(x) in (2, 3) and all(isinstance(part, str) for part in x[:-1]):
            return cls(x[0], x[1] if len(x) == 3 else "ok", x[-1])
        raise BadOptions(
            "this is no wanted call",
            got=x,
            expected="a name, {name, arguments}, (name, arguments) or (name, status, …)",
        )

    def __str__(self) -> str:
        arguments = self.arguments if isinstance(self.arguments, str) else write_canonical(self.arguments)
        return f"{self.name}({'…' if self.arguments is None else shorten(arguments, _VALUE)})"


def _differences(wanted: Sequence[_Wanted], result: ParseResult) -> Iterator[str]:
    for i, want in enumerate(wanted):
        if i >= len(result.calls):
            yield f"call {i}: wanted {want}, read nothing"
            continue
        call = result.calls[i]
        if call.name != want.name:
            yield f"call {i}: wanted the name {want.name!r}, read {call.name!r}{_where(call.name_span)}"
        if call.status != want.status:
            said = "; ".join(p.message for p in call.problems if p.severity == "error")
            yield f"call {i}: wanted the status {want.status}, read {call.status}{said and f' ({said})'}"
        if isinstance(want.arguments, str):
            if call.arguments_json != want.arguments:
                yield from _of_texts(i, want.arguments, call)
        elif want.arguments is not None:
            yield from (f"call {i} {line}" for line in _of_values(want.arguments, call))
    for call in result.calls[len(wanted) :]:
        yield f"call {call.index}: read {call.name}({shorten(call.arguments_json, _VALUE)}), wanted nothing"


def _of_texts(i: int, wanted: str, call: ToolCall) -> Iterator[str]:
    try:
        value = read_strict(wanted)
    except ValueError:
        value = wanted
    lines = [f"call {i} {line}" for line in _of_values(value, call)]
    yield from lines or [f"call {i}: wanted the arguments {_short(wanted)}, read {_short(call.arguments_json)}"]


def _of_values(wanted: Any, call: ToolCall) -> Iterator[str]:
    """Where two values differ, by path, without recursion."""
    stack = [("", wanted, read_strict(call.arguments_json))]
    while stack:
        path, want, got = stack.pop()
        if isinstance(want, Mapping) and isinstance(got, dict):
            for key in reversed(want):
                at = f"{path}/{escape_token(key)}"
                if key in got:
                    stack.append((at, want[key], got[key]))
                else:
                    yield f"{at}: wanted {_value(want[key])}, read nothing"
            for key in got:
                if key not in want:
                    at = f"{path}/{escape_token(key)}"
                    yield f"{at}: read {_value(got[key])}{_origin(call, at)}, wanted nothing"
        elif isinstance(want, (list, tuple)) and isinstance(got, list) and len(want) == len(got):
            stack += [(f"{path}/{n}", a, b) for n, (a, b) in reversed(list(enumerate(zip(want, got, strict=True))))]
        elif not same(list(want) if isinstance(want, tuple) else want, got):
            yield f"{path or '(arguments)'}: wanted {_value(want)}, read {_value(got)}{_origin(call, path)}"


def _origin(call: ToolCall, path: str) -> str:
    try:
        return _where(call.origin(path).span)
    except (BadOptions, KeyError):  # a call that cannot be read has no origins
        return ""


def _where(span: Any) -> str:
    return f" at {span.start}–{span.end}" if span is not None else ""


def _value(value: Any) -> str:
    return _short(write_canonical(value))


def _short(text: str) -> str:
    return shorten(visible(text), _VALUE)


def _message(found: Sequence[str], result: ParseResult, color: bool) -> str:
    lines = [f"the text reads otherwise ({len(found)} difference{'' if len(found) == 1 else 's'}):"]
    lines += [f"  {visible(line)}" for line in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"  … and {len(found) - _SHOWN} more")
    return "\n".join([*lines, "", render_ansi(result, color=color), "", *str(result.why()).splitlines()])
