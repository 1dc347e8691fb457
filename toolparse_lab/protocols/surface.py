"""What a protocol writes for the model: its tools, calls and results, in the shapes that chat front ends hand over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import BadOptions
from ..toolspec import ToolSpec, tool_specs
from ..types import ToolCall
from ..values import Value, read_strict, write_canonical
from .results import ToolResult

if TYPE_CHECKING:
    from .base import Protocol

Template: TypeAlias = str | Callable[[str], str]
"""A system prompt: a function of the tools' JSON text, or text with `{{tools_json}}` and its like."""

_EXPECTED_CALL = "{toolName, input}, {name, arguments}, an OpenAI tool call or a ToolCall"


def format_tools(protocol: Protocol, tools: Any, template: Template | None) -> str:
    from ..prompt.messages import fill_template
    from ..prompt.signatures import write_tools_json

    specs = tool_specs(tools)
    if template is None:
        return _built_in(protocol, specs)
    if isinstance(template, str):
        return fill_template(protocol.id, template, specs, write_call=protocol.write_call)
    if not callable(template):
        raise BadOptions(
            "tool_system_prompt_template makes the prompt", got=type(template).__name__, expected="a function or text"
        )
    text: object = template(write_tools_json(specs))
    if not isinstance(text, str):
        raise BadOptions("tool_system_prompt_template returned no text", got=type(text).__name__, expected="str")
    return text


@lru_cache(maxsize=256)
def _built_in(protocol: Protocol, specs: tuple[ToolSpec, ...]) -> str:
    from ..prompt.messages import render_system

    return render_system(protocol.id, specs, write_call=protocol.write_call)


def format_tool_call(protocol: Protocol, call: Any, tool: ToolSpec | None) -> str:
    name, given = _name_and_input(call)
    if isinstance(given, str):
        try:
            value: Value = read_strict(given)
        except (ValueError, RecursionError):
            value = given
    else:
        value = given
    if isinstance(value, Mapping):
        return protocol.write_call(name, write_canonical(dict(value)), tool)
    # What was never an object cannot read back as one: it is shown as it is, for the model to see its mistake.
    return protocol.codec.write(name, write_canonical(value), tool)


def _name_and_input(call: Any) -> tuple[str, Any]:
    if isinstance(call, ToolCall):
        return call.name, call.arguments_json or "{}"
    if not isinstance(call, Mapping):
        raise BadOptions("this is no tool call", got=type(call).__name__, expected=_EXPECTED_CALL)
    inner = call.get("function")
    body: Mapping[Any, Any] = inner if isinstance(inner, Mapping) else call
    name = next((body[k] for k in ("toolName", "tool_name", "name") if k in body), None)
    if not isinstance(name, str) or not name:
        raise BadOptions("a tool call names its tool", got=sorted(map(str, body)), expected=_EXPECTED_CALL)
    given = next((body[k] for k in ("input", "arguments", "args") if k in body), None)
    return name, {} if given is None or given == "" else given


def format_tool_response(protocol: Protocol, result: Any, compat: str | None) -> str:
    if compat not in (None, "seed"):
        raise BadOptions("compat is a set of old shapes", got=compat, expected="None or 'seed'")
    literals = (*protocol.envelope.heads({}), *getattr(protocol.envelope, "closers", ()))
    return protocol.results.write(ToolResult.of(result), literals, compat == "seed")
