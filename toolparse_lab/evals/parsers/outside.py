"""Readers: whatever turns the text of an answer into calls, with the one interface of protocols.

How it works. A plain function becomes a protocol object with the one method that reading needs.
From there on it goes the way of every foreign protocol: its calls are placed in the text, coerced
by the policy, validated and scored. An error of its own is a problem of that one answer.
Whoever wants to judge exactly the calls that a reader gave compares under the policy "none".
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ...core import VERSION
from ...core.errors import BadOptions, UnreadableInput
from ...core.values import read_strict, write_canonical
from ...entry.foreign.protocol import AnyProtocol, ForeignProtocol, any_protocol
from ...formats.registry import is_shipped

_OURS = ("auto", "native")
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


def parser_of(x: Any, *, name: str = "", version: str = "") -> AnyProtocol:
    """Return a reader: a parser for recorded answers.

    Args:
        x: a protocol's id or object, or a function of the raw text, or of the text and the tools,
            that returns calls in any of the usual shapes (`outside_calls`).
        name, version: its name in frames and diffs. By default a function's own name and the
            version of its package, or a digest of its code.

    Raises BadOptions for anything that is none of these, and UnknownProtocol.

    >>> import toolparse_lab as tp
    >>> mine = parser_of(lambda text: [{"name": text, "arguments": {}}], name="mine", version="2")
    >>> tp.parse("f", mine, [{"name": "f"}]).calls[0].name
    'f'
    """
    is_function = callable(x) and not isinstance(x, type) and _takes_text(x)
    if is_function and not hasattr(x, "parse_generated_text"):
        function = FunctionParser(x)
        own_name, own_version = function.identity()
        return foreign_parser(function, name or own_name, version or own_version)
    if x is None or is_function or isinstance(x, (list, tuple)):
        raise BadOptions(
            "this is no reader", got=x, expected="a protocol, or a function of the text"
        )
    chosen = any_protocol(x)
    if isinstance(chosen, ForeignProtocol) and (name or version):
        chosen = replace(chosen, id=name or chosen.id, version=version or chosen.version)
    return chosen


def foreign_parser(subject: Any, name: str, version: str) -> ForeignProtocol:
    """Return the protocol object of a reader with the method `parse_generated_text`."""
    return ForeignProtocol(name, subject, title="a reader of one's own", version=version)


def version_of(protocol: Any) -> str | None:
    """Return the version of the reader of an answer, an object or its id, or None."""
    # The id of a released parser may say its version: vllm==0.33.0:hermes.
    if isinstance(protocol, str) and (stated := protocol.partition(":")[0].partition("==")[2]):
        return stated
    if isinstance(protocol, ForeignProtocol):
        return protocol.version or None
    protocol_id = protocol if isinstance(protocol, str) else getattr(protocol, "id", "")
    return VERSION if protocol_id in _OURS or is_shipped(protocol_id) else None


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _takes_text(function: Callable[..., Any]) -> bool:
    # A factory of a protocol takes nothing. A builtin without a signature is taken for a reader.
    parameters = _parameters(function)
    return parameters is None or any(
        p.default is p.empty and p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters
    )


@dataclass(frozen=True, eq=False)
class FunctionParser:
    """A function from a text, or a text and the tools, to calls, as a protocol object."""

    function: Callable[..., Any]

    def identity(self) -> tuple[str, str]:
        """Return the function's name, and the version of its package or a digest of its code."""
        function = self.function
        name = str(getattr(function, "__name__", "") or type(function).__name__)
        root = str(getattr(function, "__module__", "") or "").partition(".")[0]
        version = getattr(function, "__version__", None)
        version = version or getattr(sys.modules.get(root), "__version__", None)
        if isinstance(version, str) and version:
            return name, version
        # Changes with the function's code; '' where it has none to see.
        code = getattr(function, "__code__", None)
        if code is None:
            return name, ""
        constants = [c for c in code.co_consts if isinstance(c, str)]
        text = repr((code.co_code, code.co_names, constants))
        return name, hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:8]

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> list[Any]:
        """Return the calls as parts. Raises the error that the function raises."""
        # The tools, too, for a second place without a default, or one named tools.
        second = (_parameters(self.function) or [])[1:2]
        takes_tools = any(
            (p.name == "tools" or p.default is p.empty)
            and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
            for p in second
        )
        return parts_of(self.function(text, tools) if takes_tools else self.function(text), text)


def parts_of(returned: Any, text: str) -> list[Any]:
    """Return what a parser returned as parts. Without a call all of it is text."""
    try:
        calls = outside_calls(returned)
    except UnreadableInput as e:
        raise ValueError(str(e)) from e
    return [
        {"type": "tool-call", "toolName": call.name, "input": call.arguments_json} for call in calls
    ] or [text]


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call that a parser returned: its name, and its arguments as canonical JSON."""

    name: str
    arguments_json: str


def outside_calls(returned: Any) -> tuple[OutsideCall, ...]:
    """Return the calls in a parser's return value, whichever of the usual shapes they have.

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

    out = []
    for item in islice(calls, _MOST):
        # The text of a message, or its thoughts.
        if isinstance(item, Mapping) and item.get("type") in _PROSE:
            continue
        if _is_pair(item):
            item = {"name": item[0], "arguments": item[1]}
        body = _member(item, "function")
        # Some formats call the name `function`, and then it is a text.
        if body is None or isinstance(body, str):
            body = item
        name = _first(body, _NAMES)
        if not isinstance(name, str):
            raise UnreadableInput("a call without a name", got=repr(item)[:200], expected=_SHAPE)
        arguments = value = _first(body, _ARGUMENTS)
        try:
            # None and a blank string are no arguments, which is an object without members.
            if isinstance(value, str):
                value = read_strict(value) if value.strip() else None
            out.append(OutsideCall(name, "{}" if value is None else write_canonical(value)))
        except (TypeError, ValueError, RecursionError) as e:
            raise UnreadableInput(
                f"the arguments of {name!r} are no JSON",
                got=repr(arguments)[:200],
                expected="an object, or JSON text of one",
            ) from e
    return tuple(out)


def _list_of(returned: Any) -> Any:
    inner = _member(returned, "tool_calls")
    # A mapping may well be one call with a member `calls` of its own.
    if inner is None and not isinstance(returned, Mapping):
        inner = _member(returned, "calls")
    if inner is not None:
        return inner

    has_name = _first(returned, _NAMES) is not None
    if isinstance(returned, Mapping) and not has_name and _member(returned, "role") is not None:
        content = _member(returned, "content")
        return content if isinstance(content, list) else []
    # An empty mapping is how some parsers say that there is no call.
    if isinstance(returned, Mapping) or _is_pair(returned) or has_name:
        return [returned] if returned else []
    return returned


def _is_pair(item: Any) -> bool:
    is_pair = isinstance(item, tuple) and len(item) == 2
    return is_pair and isinstance(item[0], str) and isinstance(item[1], (str, Mapping))


def _first(x: Any, names: Iterable[str]) -> Any:
    return next((value for name in names if (value := _member(x, name)) is not None), None)


def _member(x: Any, name: str) -> Any:
    # A key of a mapping or an attribute of an object. Many objects have methods of such names,
    # `index` and `input` among them.
    value = x.get(name) if isinstance(x, Mapping) else getattr(x, name, None)
    return None if callable(value) else value
