"""The texts that a protocol writes for a model: tools, calls and results of a conversation.

Arguments come in the shapes of chat front ends. Each function accepts several. They are the methods
of the same names of `Protocol`, which imports this module when one is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.errors import BadOptions
from ..core.toolspec import ToolSpec, tool_specs
from ..core.types import ToolCall
from ..core.values import Value, read_strict, write_canonical
from .prompt.messages import fill_template, render_system
from .prompt.signatures import write_tools_json
from .results import ToolResult

if TYPE_CHECKING:
    from .base import Protocol

Template: TypeAlias = str | Callable[[str], str]
"""A system prompt: a function of the tools' JSON text, or text with placeholders."""

# Keys of the name and of the arguments in the shapes of a call, the first one present counts.
_NAME_KEYS = ("toolName", "tool_name", "name")
_INPUT_KEYS = ("input", "arguments", "args")
_EXPECTED_CALL = "{toolName, input}, {name, arguments}, an OpenAI tool call or a ToolCall"


def format_tools(protocol: Protocol, tools: Any, template: Template | None) -> str:
    """Return the system prompt that explains the tools. See `Protocol.format_tools`."""
    specs = tool_specs(tools)
    if template is None:
        return _built_in(protocol, specs)
    if isinstance(template, str):
        return fill_template(protocol, template, specs)
    if not callable(template):
        raise BadOptions(
            "tool_system_prompt_template makes the prompt",
            got=type(template).__name__,
            expected="a function or text",
        )

    text: object = template(write_tools_json(specs, examples=True))
    if not isinstance(text, str):
        raise BadOptions(
            "tool_system_prompt_template returned no text", got=type(text).__name__, expected="str"
        )
    return text


@lru_cache(maxsize=256)  # a conversation explains the same tools at every turn
def _built_in(protocol: Protocol, specs: tuple[ToolSpec, ...]) -> str:
    return render_system(protocol, specs)


def format_tool_call(protocol: Protocol, call: Any, tool: ToolSpec | None) -> str:
    """Return a call as the model would have written it.

    See `Protocol.format_tool_call`.
    """
    name, arguments = _name_and_input(call)
    value = _read_json(arguments) if isinstance(arguments, str) else arguments
    if isinstance(value, Mapping):
        return protocol.write_call(name, write_canonical(dict(value)), tool)
    # A value that was never an object cannot read back as one: it is shown as it is, for the model
    # to see its mistake.
    return protocol.codec.write(name, write_canonical(value), tool)


def _read_json(text: str) -> Value:
    try:
        return read_strict(text)
    except (ValueError, RecursionError):
        return text


def _name_and_input(call: Any) -> tuple[str, Any]:
    # {} where it has no arguments
    if isinstance(call, ToolCall):
        return call.name, call.arguments_json or "{}"
    if not isinstance(call, Mapping):
        raise BadOptions("this is no tool call", got=type(call).__name__, expected=_EXPECTED_CALL)

    # OpenAI's shape has name and arguments one level down.
    function = call.get("function")
    body: Mapping[Any, Any] = function if isinstance(function, Mapping) else call
    name = _first_member(body, _NAME_KEYS)
    if not isinstance(name, str) or not name:
        raise BadOptions(
            "a tool call names its tool", got=sorted(map(str, body)), expected=_EXPECTED_CALL
        )

    arguments = _first_member(body, _INPUT_KEYS)
    has_none = arguments is None or arguments == ""  # but 0 and [] are shown to the model
    return name, {} if has_none else arguments


def _first_member(mapping: Mapping[Any, Any], keys: Iterable[str]) -> Any:
    for key in keys:
        if key in mapping:
            return mapping[key]
    return None


def format_tool_response(protocol: Protocol, result: Any, compat: str | None) -> str:
    """Return a tool's result as the model knows it.

    See `Protocol.format_tool_response`.
    """
    if compat not in (None, "seed"):
        raise BadOptions("compat is a set of old shapes", got=compat, expected="None or 'seed'")
    # Inside a result, the format's own delimiters would be read as a call of the model.
    literals = (*protocol.envelope.heads({}), *protocol.envelope.closers)
    return protocol.results.write(ToolResult.of(result), literals, compat == "seed")
