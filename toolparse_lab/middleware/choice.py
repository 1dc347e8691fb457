"""Tool choice: the tools and the choice of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..core.errors import BadOptions, BadToolChoice
from ..core.toolspec import ToolSpec, tool_specs

Kind: TypeAlias = Literal["auto", "required", "none", "tool"]

_OURS = (None, "function", "custom")  # types of tools that the caller runs
_NAMES = ("name", "toolName", "tool_name")
_SCHEMAS = ("input_schema", "inputSchema", "parameters", "schema")
_KINDS: Mapping[str, Kind] = {
    "auto": "auto", "required": "required", "any": "required", "none": "none",
}  # fmt: skip
_EXPECTED = '"auto", "required", "none" or {"type": "function", "function": {"name": …}}'
PROVIDER_TOOLS = (
    "Provider-defined tools are not supported by this middleware. Please use custom tools."
)
_NO_NONE = (
    "The 'none' toolChoice type is not supported by this middleware. "
    "Please use 'auto', 'required', or specify a tool name."
)


@dataclass(frozen=True, slots=True)
class Offered:
    """The tools of a request: those that the caller runs, and those that only the provider can."""

    tools: tuple[ToolSpec, ...]
    provider: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """The calls that a model may make. name: of the tool that must be called."""

    kind: Kind
    name: str | None = None

    @property
    def forced(self) -> bool:
        """A call must be made: such an answer is read as JSON from its first character on."""
        return self.kind in ("required", "tool")


def read_tools(tools: Any) -> Offered:
    """The tools of a request, one or several, in any shape `ToolSpec.of` takes.

    Definitions of another type are the provider's. Raises BadToolSpec.

    >>> [tool.name for tool in read_tools([{"name": "f", "parameters": {}}]).tools]
    ['f']
    """
    # A single definition, or a mapping of names, has no tools of the provider in it.
    if not isinstance(tools, Iterable) or isinstance(tools, (str, bytes, Mapping, type)):
        one: Any = tools
        return Offered(tool_specs(one))
    ours: list[Any] = []
    provider: list[Mapping[str, Any]] = []
    for tool in tools:
        is_ours = True
        if isinstance(tool, Mapping):
            is_ours = tool.get("type") in _OURS
            # OpenAI's custom tools take free text and only its own models call them. Anthropic
            # writes `custom` for an ordinary tool with a schema.
            if tool.get("type") == "custom":
                is_ours = any(key in tool for key in _SCHEMAS)
        (ours if is_ours else provider).append(tool)
    return Offered(tool_specs(ours), tuple(provider))


def with_schemas(
    tools: Sequence[ToolSpec], schemas: Mapping[str, Any] | None
) -> tuple[ToolSpec, ...]:
    """Return the tools with other schemas, by name.

    Raises BadOptions if they are not a mapping, and BadToolSpec.
    """
    if schemas is not None and not isinstance(schemas, Mapping):
        raise BadOptions(
            "original_tool_schemas is a mapping",
            got=type(schemas).__name__,
            expected="name: schema",
        )
    own = schemas or {}
    return tool_specs(
        tuple(
            ToolSpec.of({"name": t.name, "description": t.description, "parameters": own[t.name]})
            if t.name in own
            else t
            for t in tools
        )
    )


def read_choice(tool_choice: Any, offered: Offered, *, supports_none: bool = True) -> Choice:
    """Return the choice that `tool_choice` asks for, in the shape of OpenAI, Anthropic or an AI
    SDK. None is 'auto'.

    supports_none: False makes an error of 'none'.

    Raises BadToolChoice for anything else, for 'none' where it is not supported, where a call is
    required and there is no tool, and for a tool that cannot be the one to call.
    """
    kind, name = _kind_and_name(tool_choice)
    if kind == "none" and not supports_none:
        raise BadToolChoice(_NO_NONE)
    if kind == "required" and not offered.tools:
        if offered.provider:
            raise BadToolChoice(
                "Tool choice type 'required' is set, but no function tools are provided. "
                "Provider-defined tools are not supported by this middleware.",
                code="no-tools",
            )
        raise BadToolChoice(
            "Tool choice type 'required' is set, but no tools are provided in params.tools.",
            code="no-tools",
        )
    if kind == "tool":
        # A provider's own tools go by their type, and some by an id.
        if any(name in (t.get("id"), t.get("type"), name_in(t)) for t in offered.provider):
            raise BadToolChoice(PROVIDER_TOOLS, code="provider-tool")
        if all(t.name != name for t in offered.tools):
            raise BadToolChoice(
                f"Tool with name '{name}' not found in params.tools.", code="tool-not-found"
            )
    return Choice(kind, name)


def _kind_and_name(choice: Any) -> tuple[Kind, str | None]:
    if choice is None:
        return "auto", None
    if isinstance(choice, str) and choice in _KINDS:
        return _KINDS[choice], None
    if not isinstance(choice, Mapping):
        raise BadToolChoice("this is no tool choice", got=choice, expected=_EXPECTED)
    kind = choice.get("type")
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind], None
    name = name_in(choice)
    if name is None and isinstance(kind, str) and kind not in ("tool", *_OURS):
        name = kind  # a tool of the provider's, by its type
    if name is None:
        raise BadToolChoice("a tool choice names the tool", got=dict(choice), expected=_EXPECTED)
    return "tool", name


def name_in(call: Mapping[str, Any], keys: Iterable[str] = _NAMES) -> str | None:
    """Return the tool's name in a call or a choice of any shape: the first text under `keys`."""
    inner = call.get("function", call.get("custom"))
    body = inner if isinstance(inner, Mapping) else call
    return next((name for key in keys if isinstance(name := body.get(key), str) and name), None)
