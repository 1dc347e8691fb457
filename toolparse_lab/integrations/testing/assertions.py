"""`assert_parses`: a test of how a text is read, whose failure shows the text with its origins and
the differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ...core.errors import BadOptions
from ...core.toolspec import ToolsLike
from ...core.types import ParseOptions, ParseResult, ToolCall
from ...core.values import escape_token, read_strict, same, write_canonical
from ...formats.like import ProtocolLike
from ...middleware.flow import read_answer
from ...views import render_ansi
from ...views.show import shorten, visible

_MOST_DIFFERENCES = 40
_LONGEST_VALUE = 120  # characters

Expected: TypeAlias = "str | tuple[object, ...] | Mapping[str, Any]"
"""A wanted call: its name, `{"name", "arguments"}`, `(name, arguments)`, or `(name, status,
arguments)`."""


def assert_parses(
    raw: str,
    protocol: ProtocolLike = "auto",
    tools: ToolsLike = None,
    *,
    calls: Sequence[Expected],
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
    expected = [_Wanted.of(call) for call in calls]
    result = read_answer(raw, protocol, tools, options, tool_choice)
    differences = list(_differences(expected, result))
    if text is not None and result.text != text:
        differences.append(f"text: wanted {_short(text)}, read {_short(result.text)}")

    if differences:
        raise AssertionError(_message(differences, result, color))

    return result


class _Wanted:
    """One call as it is wanted.

    `arguments` is a value, a canonical text, or None for any.
    """

    def __init__(self, name: str, status: str = "ok", arguments: Any = None) -> None:
        self.name, self.status, self.arguments = name, status, arguments

    @classmethod
    def of(cls, x: Any) -> _Wanted:
        """Return a wanted call in any of its forms.

        Raises BadOptions.

        x: a name, a mapping with `name`, or a tuple of two or three. `assert_parses` gives the
        meaning of each.
        """
        if isinstance(x, str):
            return cls(x)
        if _is_named(x):
            return cls(x["name"], x.get("status", "ok"), x.get("arguments"))
        if _is_tuple(x):
            return cls(x[0], x[1] if len(x) == 3 else "ok", x[-1])

        raise BadOptions(
            "this is no wanted call",
            got=x,
            expected="a name, {name, arguments}, (name, arguments) or (name, status, …)",
        )

    def __str__(self) -> str:
        """Return the call with its arguments, an ellipsis for any."""
        if self.arguments is None:
            return f"{self.name}(…)"

        text = self.arguments
        if not isinstance(text, str):
            text = write_canonical(text)

        return f"{self.name}({shorten(text, _LONGEST_VALUE)})"


def _is_named(x: Any) -> bool:
    """Return True for `{"name", "arguments", "status"}`, the last two of which may be absent.

    A key that is none of these makes it no wanted call, because it is most likely misspelt.
    """
    if not isinstance(x, Mapping) or not isinstance(x.get("name"), str):
        return False
    return set(x) <= {"name", "arguments", "status"}


def _is_tuple(x: Any) -> bool:
    """Return True for `(name, arguments)` and `(name, status, arguments)`.

    >>> _is_tuple(("f", {})), _is_tuple(("f", "ok", {})), _is_tuple(("f",))
    (True, True, False)
    """
    if not isinstance(x, (tuple, list)) or len(x) not in (2, 3):
        return False
    return all(isinstance(part, str) for part in x[:-1])


def _differences(expected: Sequence[_Wanted], result: ParseResult) -> Iterator[str]:
    """Yield a sentence for each difference of the calls.

    expected: the wanted calls, in order.
    result: the parse, whose calls are compared one to one by their place.

    A call that is too many or too few is one sentence of its own.
    """
    for i, want in enumerate(expected):
        if i < len(result.calls):
            yield from _of_call(i, want, result.calls[i])
        else:
            yield f"call {i}: wanted {want}, read nothing"

    for call in result.calls[len(expected) :]:
        arguments = shorten(call.arguments_json, _LONGEST_VALUE)
        yield f"call {call.index}: read {call.name}({arguments}), wanted nothing"


def _of_call(i: int, want: _Wanted, call: ToolCall) -> Iterator[str]:
    """Yield the differences of one call: its name, its status, its arguments.

    i: the place of the call, for the sentence.
    want: the call as it is wanted.
    call: the call read in its place.

    Of arguments as a text the spelling counts, of arguments as values only the meaning.
    """
    if call.name != want.name:
        place = _where(call.name_span)
        yield f"call {i}: wanted the name {want.name!r}, read {call.name!r}{place}"

    if call.status != want.status:
        reasons = "; ".join(p.message for p in call.problems if p.severity == "error")
        why = f" ({reasons})" if reasons else ""
        yield f"call {i}: wanted the status {want.status}, read {call.status}{why}"

    if isinstance(want.arguments, str):
        if call.arguments_json != want.arguments:
            yield from _of_texts(i, want.arguments, call)
    elif want.arguments is not None:
        yield from (f"call {i} {line}" for line in _of_values(want.arguments, call))


def _of_texts(i: int, expected: str, call: ToolCall) -> Iterator[str]:
    """Yield the differences of arguments as JSON text.

    Where only the spelling differs, both texts.

    i: the place of the call, for the sentence.
    expected: the wanted arguments, which should be canonical JSON.
    call: the call that was read. Its canonical JSON is another text.
    """
    # Text that is no JSON differs as a whole.
    try:
        value = read_strict(expected)
    except ValueError:
        value = expected

    lines = [f"call {i} {line}" for line in _of_values(value, call)]
    yield from lines or [
        f"call {i}: wanted the arguments {_short(expected)}, read {_short(call.arguments_json)}"
    ]


def _of_values(expected: Any, call: ToolCall) -> Iterator[str]:
    """Yield the differences of two values, by path, in the order of the expected one.

    Without recursion, because arguments may nest deeper than Python's stack.

    expected: the wanted arguments. Tuples count as lists.
    call: the call that was read, whose origins say where each value stands.

    Lists of different lengths differ as a whole: without a match of their items a comparison one by
    one would only confuse.
    """
    stack = [("", expected, read_strict(call.arguments_json))]
    while stack:
        path, want, got = stack.pop()
        if isinstance(want, Mapping) and isinstance(got, dict):
            yield from _of_keys(path, want, got, call)
            stack += [
                (_at(path, key), want[key], got[key]) for key in reversed(list(want)) if key in got
            ]
        elif isinstance(want, (list, tuple)) and isinstance(got, list) and len(want) == len(got):
            # A stack gives back the last first.
            items = list(enumerate(zip(want, got, strict=True)))
            stack += [(f"{path}/{n}", a, b) for n, (a, b) in reversed(items)]
        elif not _is_same(want, got):
            place = path or "(arguments)"
            yield f"{place}: wanted {_value(want)}, read {_value(got)}{_origin(call, path)}"


def _is_same(want: Any, got: Any) -> bool:
    """Return True for two values that JSON does not tell apart.

    >>> _is_same((1, 2), [1, 2]), _is_same("1", 1)
    (True, False)
    """
    # JSON knows no tuples, and people write them for lists.
    if isinstance(want, tuple):
        want = list(want)

    return same(want, got)


def _of_keys(
    path: str, want: Mapping[str, Any], got: Mapping[str, Any], call: ToolCall
) -> Iterator[str]:
    """Yield the keys that only one of two objects has.

    path: the JSON Pointer of the two objects.
    want, got: the wanted object, and the one that was read.
    call: the call, whose origins say where a value stands.

    The values of keys that both have are compared by `_of_values` itself.
    """
    for key in reversed(list(want)):
        if key not in got:
            yield f"{_at(path, key)}: wanted {_value(want[key])}, read nothing"

    for key in got:
        if key not in want:
            at = _at(path, key)
            yield f"{at}: read {_value(got[key])}{_origin(call, at)}, wanted nothing"


def _at(path: str, key: str) -> str:
    """Return the JSON Pointer of a member.

    >>> _at("/a", "b/c")
    '/a/b~1c'
    """
    return f"{path}/{escape_token(key)}"


def _origin(call: ToolCall, path: str) -> str:
    """Return the offsets that a value was read from, '' where it has none.

    call: the call that was read. path: the JSON Pointer of a value in its arguments.
    """
    try:
        return _where(call.origin(path).span)
    except (BadOptions, KeyError):  # a call that cannot be read has no origins
        return ""


def _where(span: Any) -> str:
    """Return the offsets of a span in words.

    span: a Span, or None for a value without a place in the text, which gives ''.
    """
    return f" at {span.start}–{span.end}" if span is not None else ""


def _value(value: Any) -> str:
    """Return a value as short JSON.

    value: any JSON value, or one that `write_canonical` can make one of. Longer ones are cut to
    `_LONGEST_VALUE` characters.
    """
    return _short(write_canonical(value))


def _short(text: str) -> str:
    """Return a text that fits a line, its control characters visible.

    Longer texts are cut to `_LONGEST_VALUE` characters. The message has one line for each.
    """
    return shorten(visible(text), _LONGEST_VALUE)


def _message(differences: Sequence[str], result: ParseResult, color: bool) -> str:
    """Return the failure: the differences, the marked text, and why it was read so.

    differences: one sentence each. Of many, the first `_MOST_DIFFERENCES` appear.
    result: the parse, which is drawn with the places of its calls and explains itself.
    color: whether the drawing may hold escape sequences of a terminal.
    """
    n = len(differences)
    lines = [f"the text reads otherwise ({n} difference{'' if n == 1 else 's'}):"]
    lines += [f"  {visible(line)}" for line in differences[:_MOST_DIFFERENCES]]
    if n > _MOST_DIFFERENCES:
        lines.append(f"  … and {n - _MOST_DIFFERENCES} more")

    lines += ["", render_ansi(result, color=color), ""]
    lines += str(result.why()).splitlines()
    return "\n".join(lines)
