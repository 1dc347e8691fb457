"""Tool calls that came as such, not as text: their arguments brought to the tools' schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..schema.coerce import coerce
from ..toolspec import ToolSpec, tool_specs
from ..types import Policy
from ..values import read_strict, write_canonical

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
    """`fix_tool_call_with_schema` by any policy.

    call: `{toolName, input}`, or a tool call in OpenAI shape. It is not changed.
    tools: by name. policy: of the coercion.
    """
    fixed = dict(call)
    inner = fixed.get("function")
    # In OpenAI's shape the name and the arguments are one level down.
    body = dict(inner) if isinstance(inner, Mapping) else fixed
    tool = tools.get(str(body.get("toolName", body.get("name"))))
    key = "input" if "input" in body else "arguments"
    arguments = body.get(key)
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

    if isinstance(inner, Mapping):
        fixed["function"] = body

    return fixed


def was_run(call: Mapping[str, Any]) -> bool:
    """Return True if the provider ran the call itself, so that no one else is to run it.

    call: in any shape, with the mark of an AI SDK's spelling or of Python's.
    """
    return any(call.get(mark) for mark in _RUN_MARKS)
