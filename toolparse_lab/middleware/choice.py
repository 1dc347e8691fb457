"""Tool choice: what was asked for, and the JSON Schema that makes a model answer with nothing but one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..errors import BadOptions, BadToolChoice, NoTools, ProviderTool, ToolNotFound
from ..toolspec import ToolSpec, tool_specs
from ..values import read_plain, write_canonical

Kind: TypeAlias = Literal["auto", "required", "none", "tool"]

_OURS = (None, "function", "custom")  # types of tools that the caller runs
_KINDS: Mapping[str, Kind] = {"auto": "auto", "required": "required", "any": "required", "none": "none"}
_EXPECTED = '"auto", "required", "none" or {"type": "function", "function": {"name": …}}'
_PROVIDER_TOOLS = "Provider-defined tools are not supported by this middleware. Please use custom tools."
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
    """What the model may do. name: of the tool that must be called."""

    kind: Kind
    name: str | None = None

    @property
    def forced(self) -> bool:
        """A call must be made."""
        return self.kind in ("required", "tool")


def read_tools(tools: Any) -> Offered:
    """The tools of a request in any shape `ToolSpec.of` takes; definitions of another type are the provider's.

    Raises BadToolSpec.
    """
    if not isinstance(tools, Iterable) or isinstance(tools, (str, bytes, Mapping, type)):
        return Offered(tool_specs(tools))
    ours: list[Any] = []
    provider: list[Mapping[str, Any]] = []
    for tool in tools:
        if isinstance(tool, Mapping) and tool.get("type") not in _OURS:
            provider.append(tool)
        else:
            ours.append(tool)
    return Offered(tool_specs(ours), tuple(provider))


def with_schemas(tools: Sequence[ToolSpec], schemas: Mapping[str, Any] | None) -> tuple[ToolSpec, ...]:
    """The tools with other schemas, by name; raises BadOptions where they are no mapping, and BadToolSpec."""
    if schemas is not None and not isinstance(schemas, Mapping):
        raise BadOptions("original_tool_schemas is a mapping", got=type(schemas).__name__, expected="name: schema")
    return tool_specs(
        tuple(
            ToolSpec.of({"name": t.name, "description": t.description, "parameters": schemas[t.name]})
            if schemas and t.name in schemas
            else t
            for t in tools
        )
    )


def read_choice(given: Any, offered: Offered, *, supports_none: bool = True) -> Choice:
    """The choice that `tool_choice` asks for, in the shape of OpenAI, Anthropic or an AI SDK.

    Raises BadToolChoice for what is none of them and for 'none' where it is not supported, NoTools where a call is
    required and there is no tool, ToolNotFound and ProviderTool for a tool that cannot be the one to call.
    """
    kind, name = _kind_and_name(given)
    if kind == "none" and not supports_none:
        raise BadToolChoice(_NO_NONE)
    if kind == "required" and not offered.tools:
        if offered.provider:
            raise NoTools(
                "Tool choice type 'required' is set, but no function tools are provided. "
                "Provider-defined tools are not supported by this middleware."
            )
        raise NoTools("Tool choice type 'required' is set, but no tools are provided in params.tools.")
    if kind == "tool":
        if any(name in (t.get("id"), t.get("name"), t.get("type")) for t in offered.provider):
            raise ProviderTool(_PROVIDER_TOOLS)
        if all(t.name != name for t in offered.tools):
            raise ToolNotFound(f"Tool with name '{name}' not found in params.tools.")
    return Choice(kind, name)


def _kind_and_name(given: Any) -> tuple[Kind, str | None]:
    if given is None:
        return "auto", None
    if isinstance(given, str) and given in _KINDS:
        return _KINDS[given], None
    if not isinstance(given, Mapping):
        raise BadToolChoice("this is no tool choice", got=given, expected=_EXPECTED)
    kind = given.get("type")
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind], None
    inner = given.get("function")
    body = inner if isinstance(inner, Mapping) else given
    name = next((n for k in ("name", "toolName", "tool_name") if isinstance(n := body.get(k), str) and n), None)
    if name is None and isinstance(kind, str) and kind not in ("tool", *_OURS):
        name = kind  # a tool of the provider's, by its type
    if name is None:
        raise BadToolChoice("a tool choice names the tool", got=dict(given), expected=_EXPECTED)
    return "tool", name


@dataclass(frozen=True, slots=True)
class Offer:
    """What a request's tools and tool choice come to.

    shown: the tools as the model is told of them. tools: the same with the schemas to read arguments by. provider:
    those that only the provider can run. active: there are tools that may be called. forced: one must be.
    """

    shown: tuple[ToolSpec, ...]
    tools: tuple[ToolSpec, ...]
    provider: tuple[Mapping[str, Any], ...]
    choice: Choice
    active: bool
    forced: bool


def read_offer(tools: Any, tool_choice: Any, schemas: Mapping[str, Any] | None, *, supports_none: bool) -> Offer:
    """The tools and the choice of a request; raises what `read_tools`, `with_schemas` and `read_choice` do."""
    offered = read_tools(tools)
    read_by = with_schemas(offered.tools, schemas)
    choice = read_choice(tool_choice, offered, supports_none=supports_none)
    active = bool(offered.tools) and choice.kind != "none"
    return Offer(offered.tools, read_by, offered.provider, choice, active, active and choice.forced)


def create_dynamic_if_then_else_schema(tools: Any) -> dict[str, Any]:
    """A JSON Schema for one call of any of the tools: `{name, arguments}`, the arguments' schema by the name.

    Raises NoTools for none, and ProviderTool for a tool that only the provider can run.
    """
    offered = read_tools(tools)
    if offered.provider:
        raise ProviderTool(_PROVIDER_TOOLS)
    if not offered.tools:
        raise NoTools("there is no tool to write a schema for")
    return _any_of(offered.tools)


def _any_of(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    chain: dict[str, Any] = {}
    for tool in reversed(tools):
        condition = {"properties": {"name": {"const": tool.name}}, "required": ["name"]}
        chain = {"if": condition, "then": _call_of(tool), **({"else": chain} if chain else {})}
    return {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of the tool to call", "enum": [t.name for t in tools]},
            "arguments": {"type": "object", "description": "Argument object to be passed to the tool"},
        },
        "required": ["name", "arguments"],
        **chain,
    }


def _call_of(tool: ToolSpec) -> dict[str, Any]:
    return {
        "properties": {"name": {"const": tool.name}, "arguments": read_plain(tool.schema_json)},
        "required": ["name", "arguments"],
    }


def forced_schema(choice: Choice, tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """What an answer must be where a call is forced."""
    if choice.kind == "required":
        return _any_of(tools)
    return {"type": "object", **_call_of(next(t for t in tools if t.name == choice.name))}


def response_format(choice: Choice, tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The `response_format` that asks an OpenAI-compatible provider for the forced call."""
    named = next((t for t in tools if t.name == choice.name), None)
    schema: dict[str, Any] = {"name": named.name if named else "tool_call"}
    if named and named.description:
        schema["description"] = named.description
    return {"type": "json_schema", "json_schema": {**schema, "schema": forced_schema(choice, tools)}}


def forced_prompt(choice: Choice, tools: Sequence[ToolSpec]) -> str:
    """The same as a request in words, for providers that know no `response_format`."""
    return (
        "Answer with exactly one tool call, and nothing else: a single JSON object, without any tags, code fence or "
        f"explanation, that satisfies this JSON Schema:\n{write_canonical(forced_schema(choice, tools))}"
    )
