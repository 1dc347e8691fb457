"""Tool calls that came as such, not as text: their arguments brought to the tools' schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..arguments.schema.coerce import coerce
from ..core.toolspec import ToolSpec, tool_specs
from ..core.types import Policy, ToolCall
from ..core.types.server import same_arguments
from ..core.values import read_strict, write_canonical
from ..formats.tool_names import offered_name

_RUN_MARKS = ("providerExecuted", "provider_executed")


def fix_tool_call_with_schema(call: Mapping[str, Any], tools: Any) -> dict[str, Any]:
    """Return the call with its arguments coerced to its tool's schema.

    The policy is 'middleware'. The arguments are JSON text.

    Args:
        call: `{toolName, input}`, or a tool call in OpenAI shape. Its other members stay. Calls
            that the provider ran itself, calls of unknown tools and arguments that are not JSON or
            fit already stay as they are.

    Raises BadToolSpec.

    >>> tool = {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}
    >>> fix_tool_call_with_schema({"toolName": "f", "input": '{"a": "1"}'}, [tool])
    {'toolName': 'f', 'input': '{"a":1}'}
    """
    return coerce_call(call, {t.name: t for t in tool_specs(tools)}, "middleware")


def coerce_call(
    call: Mapping[str, Any], tools: Mapping[str, ToolSpec], policy: Policy
) -> dict[str, Any]:
    """`fix_tool_call_with_schema` by any policy, with the tools by name."""
    fixed = dict(call)
    inner = fixed.get("function")
    # In OpenAI's shape the name and the arguments are one level down.
    body = dict(inner) if isinstance(inner, Mapping) else fixed
    key = "toolName" if "toolName" in body else "name"
    name = str(body.get(key))
    if name not in tools and not was_run(fixed) and (offered := offered_name(name, tools)):
        name = body[key] = offered.name
    tool = tools.get(name)
    key = "input" if "input" in body else "arguments"
    arguments = body.get(key)
    if body is not fixed:
        fixed["function"] = body
    if tool is None or arguments is None or was_run(fixed):
        return fixed
    is_text = isinstance(arguments, str)
    try:
        value = read_strict(arguments if is_text else write_canonical(arguments))
    except (TypeError, ValueError, RecursionError):
        return fixed
    coerced = coerce(value, tool.schema_json, policy)
    # Arguments that fit keep their own spelling; only objects always become text.
    if coerced.steps or not is_text:
        body[key] = write_canonical(coerced.value)
    return fixed


def written_too(native: Sequence[Mapping[str, Any]], calls: Iterable[ToolCall]) -> frozenset[int]:
    """Return the numbers of a provider's own calls that the text next to them contains as well.

    A server that reads calls and leaves them in the content gives each of them twice. One that
    could not read the arguments gives the call without any.

    native: in OpenAI's shape. calls: those of the text, good or not.
    """
    waiting, numbers = list(calls), set()
    for is_blank in (False, True):
        for number, call in enumerate(native):
            inner = call.get("function")
            if number in numbers or not isinstance(inner, Mapping) or was_run(call):
                continue
            name, text = str(inner.get("name")), inner.get("arguments")
            text = text if isinstance(text, str) else write_canonical(text or {})
            if is_blank and text.strip() not in ("", "{}"):
                continue
            for own in waiting:
                equal = is_blank or (own.ok and same_arguments(text, own))
                if own.name == name and equal:
                    waiting.remove(own)
                    numbers.add(number)
                    break
    return frozenset(numbers)


def was_run(call: Mapping[str, Any]) -> bool:
    """Return True if the provider ran the call itself, so that no one else is to run it."""
    return any(call.get(mark) for mark in _RUN_MARKS)
