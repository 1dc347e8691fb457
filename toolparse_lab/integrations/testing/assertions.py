"""`assert_parses`: a test of how a text is read, whose failure shows the text with its origins and
the differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from ...core.errors import BadOptions
from ...core.toolspec import ToolsLike
from ...core.types import ParseOptions, ParseResult, ToolCall
from ...core.values import escape_token, read_strict, same, write_canonical
from ...evals.cases.case import read_case
from ...evals.scoring.score import score_text
from ...formats.like import ProtocolLike
from ...middleware.flow import read_answer
from ...views import render_ansi
from ...views.show import shorten, visible

_MOST_DIFFERENCES = 40
_LONGEST_VALUE = 120  # characters

Expected: TypeAlias = "str | tuple[object, ...] | Mapping[str, Any]"
"""A wanted call: a name, `{"name", "arguments"}`, or a tuple of name, status and arguments."""


def assert_parses(
    raw: str,
    protocol: ProtocolLike = "auto",
    tools: ToolsLike = None,
    *,
    calls: Sequence[Expected] | None = None,
    target: Any = None,
    text: str | None = None,
    options: ParseOptions | Mapping[str, Any] | None = None,
    tool_choice: str | Mapping[str, Any] = "auto",
    color: bool = False,
) -> ParseResult:
    """Assert that `raw` reads as these calls, and return the result.

    Args:
        calls: the wanted calls in order: names, `{"name", "arguments"}` or `(name, arguments)` for
            calls that are ok, or `(name, status, arguments)`. Arguments are values, of which 1 and
            1.0 are one number, or canonical JSON text, which must be the same to the character.
            Without them any will do.
        target: what the calls have to be, as a case says it: in any order, with alternatives and
            rules such as {"$at_least": [...]}. In the place of `calls`, or beside them.
        text: the text outside calls.
        protocol, tools, options: as for `parse`.
        tool_choice: as for `read_answer`.
        color: whether the failure's text is coloured.

    Raises AssertionError, and BadOptions for unreadable calls.

    >>> raw = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    >>> assert_parses(raw, "hermes", calls=[("f", {"a": 1})]).ok
    True
    """
    __tracebackhide__ = True  # pytest shows the caller's line instead of this one
    if calls is None and target is None:
        raise BadOptions(
            "a test says what the calls are", got="neither", expected="calls=[…] or target=[…]"
        )
    expected = [_Wanted.of(call) for call in calls or ()]
    result = read_answer(raw, protocol, tools, options, tool_choice)
    differences = list(_differences(expected, result)) if calls is not None else []
    if target is not None:
        differences += _held_to(target, result)
    if text is not None and result.text != text:
        differences.append(f"text: wanted {_short(text)}, read {_short(result.text)}")

    if differences:
        raise AssertionError(_message(differences, result, color))

    return result


def _held_to(target: Any, result: ParseResult) -> list[str]:
    # By the score, so that a test and a run never come to different verdicts.
    case = read_case({"id": "target", "input": "", "target": target})
    case = replace(case, tools=result.tools)
    score = score_text(case, result)
    return [] if score.success else score.why


class _Wanted:
    # `arguments` is a value, a canonical text, or None for any.
    def __init__(self, name: str, status: str = "ok", arguments: Any = None) -> None:
        self.name, self.status, self.arguments = name, status, arguments

    @classmethod
    def of(cls, x: Any) -> _Wanted:
        """Return a wanted call in any of its forms. Raises BadOptions."""
        if isinstance(x, str):
            return cls(x)
        # Another key is most likely a misspelt one.
        keys = {"name", "arguments", "status"}
        if isinstance(x, Mapping) and isinstance(x.get("name"), str) and set(x) <= keys:
            return cls(x["name"], x.get("status", "ok"), x.get("arguments"))
        if (
            isinstance(x, (tuple, list))
            and len(x) in (2, 3)
            and all(isinstance(part, str) for part in x[:-1])
        ):
            return cls(x[0], x[1] if len(x) == 3 else "ok", x[-1])
        raise BadOptions(
            "this is no wanted call",
            got=x,
            expected="a name, {name, arguments}, (name, arguments) or (name, status, …)",
        )

    def __str__(self) -> str:
        if self.arguments is None:
            return f"{self.name}(…)"
        text = self.arguments
        if not isinstance(text, str):
            text = write_canonical(text)
        return f"{self.name}({shorten(text, _LONGEST_VALUE)})"


def _differences(expected: Sequence[_Wanted], result: ParseResult) -> Iterator[str]:
    """Yield a sentence for each difference of the calls, which are compared by their place."""
    for i, want in enumerate(expected):
        if i < len(result.calls):
            yield from _of_call(i, want, result.calls[i])
        else:
            yield f"call {i}: wanted {want}, read nothing"
    for call in result.calls[len(expected) :]:
        arguments = shorten(call.arguments_json, _LONGEST_VALUE)
        yield f"call {call.index}: read {call.name}({arguments}), wanted nothing"


def _of_call(i: int, want: _Wanted, call: ToolCall) -> Iterator[str]:
    # Of arguments as text the spelling counts, of arguments as values only the meaning.
    if call.name != want.name:
        place = _where(call.name_span)
        yield f"call {i}: wanted the name {want.name!r}, read {call.name!r}{place}"
    if call.status != want.status:
        reasons = "; ".join(p.message for p in call.problems if p.severity == "error")
        why = f" ({reasons})" if reasons else ""
        yield f"call {i}: wanted the status {want.status}, read {call.status}{why}"
    if not isinstance(want.arguments, str):
        if want.arguments is not None:
            yield from (f"call {i} {line}" for line in _of_values(want.arguments, call))
    elif call.arguments_json != want.arguments:
        # Text that is not JSON differs as a whole.
        try:
            value = read_strict(want.arguments)
        except ValueError:
            value = want.arguments
        lines = [f"call {i} {line}" for line in _of_values(value, call)]
        # Only the spelling differs where the values do not.
        yield from lines or [
            f"call {i}: wanted the arguments {_short(want.arguments)}, "
            f"read {_short(call.arguments_json)}"
        ]


def _of_values(expected: Any, call: ToolCall) -> Iterator[str]:
    """Yield the differences of two values, by JSON Pointer, in the order of the expected one.

    Lists of different lengths differ as a whole: without a match of their items a comparison one by
    one would only confuse.
    """
    # Without recursion, because arguments may nest deeper than Python's stack, which gives back the
    # last first.
    stack = [("", expected, read_strict(call.arguments_json))]
    while stack:
        path, want, got = stack.pop()
        if isinstance(want, Mapping) and isinstance(got, dict):
            for key in reversed(list(want)):
                if key not in got:
                    yield f"{_at(path, key)}: wanted {_value(want[key])}, read nothing"
            for key in got:
                if key not in want:
                    at = _at(path, key)
                    yield f"{at}: read {_value(got[key])}{_origin(call, at)}, wanted nothing"
            stack += [
                (_at(path, key), want[key], got[key]) for key in reversed(list(want)) if key in got
            ]
        elif isinstance(want, (list, tuple)) and isinstance(got, list) and len(want) == len(got):
            items = list(enumerate(zip(want, got, strict=True)))
            stack += [(f"{path}/{n}", a, b) for n, (a, b) in reversed(items)]
        # JSON knows no tuples, and people write them for lists.
        elif not same(list(want) if isinstance(want, tuple) else want, got):
            place = path or "(arguments)"
            yield f"{place}: wanted {_value(want)}, read {_value(got)}{_origin(call, path)}"


def _at(path: str, key: str) -> str:
    return f"{path}/{escape_token(key)}"


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
    # Control characters are visible: the message has one line for each difference.
    return shorten(visible(text), _LONGEST_VALUE)


def _message(differences: Sequence[str], result: ParseResult, color: bool) -> str:
    """Return the failure: the first differences, the marked text, and why it was read so."""
    n = len(differences)
    lines = [f"the text reads otherwise ({n} difference{'' if n == 1 else 's'}):"]
    lines += [f"  {visible(line)}" for line in differences[:_MOST_DIFFERENCES]]
    if n > _MOST_DIFFERENCES:
        lines.append(f"  … and {n - _MOST_DIFFERENCES} more")
    lines += ["", render_ansi(result, color=color), ""]
    lines += str(result.why()).splitlines()
    return "\n".join(lines)
