"""Tool choice: the tools and the choice of a request, and the JSON Schema that makes a model answer
with nothing but one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..errors import BadOptions, BadToolChoice, NoTools, ProviderTool, ToolNotFound
from ..toolspec import ToolSpec, tool_specs
from ..values import read_plain, write_canonical

Kind: TypeAlias = Literal["auto", "required", "none", "tool"]

_OURS = (None, "function", "custom")  # types of tools that the caller runs
_KINDS: Mapping[str, Kind] = {
    "auto": "auto",
    "required": "required",
    "any": "required",
    "none": "none",
}
_EXPECTED = '"auto", "required", "none" or {"type": "function", "function": {"name": …}}'
_PROVIDER_TOOLS = (
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
        """A call must be made.

        Such an answer is read as JSON from its first character to its last.
        """
        return self.kind in ("required", "tool")


def read_tools(tools: Any) -> Offered:
    """The tools of a request in any shape `ToolSpec.of` takes; definitions of another type are the
    provider's.

    tools: one definition, a mapping of names, or a list in which each kind may stand.

    Raises BadToolSpec.

    >>> [tool.name for tool in read_tools([{"name": "f", "parameters": {}}]).tools]
    ['f']
    """
    # A single definition, or a mapping of names, has no tools of the provider in it.
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


def with_schemas(
    tools: Sequence[ToolSpec], schemas: Mapping[str, Any] | None
) -> tuple[ToolSpec, ...]:
    """The tools with other schemas, by name; raises BadOptions where they are no mapping, and
    BadToolSpec.

    schemas: name of a tool -> JSON Schema; None leaves all tools as they are.
    """
    if schemas is not None and not isinstance(schemas, Mapping):
        raise BadOptions(
            "original_tool_schemas is a mapping",
            got=type(schemas).__name__,
            expected="name: schema",
        )
    return tool_specs(tuple(_with_schema(t, schemas or {}) for t in tools))


def _with_schema(tool: ToolSpec, schemas: Mapping[str, Any]) -> ToolSpec:
    """The tool with the schema of its name, itself where there is none.

    schemas: name of a tool -> JSON Schema. The tool keeps its name and its description.
    """
    if tool.name not in schemas:
        return tool
    return ToolSpec.of(
        {"name": tool.name, "description": tool.description, "parameters": schemas[tool.name]}
    )


def read_choice(tool_choice: Any, offered: Offered, *, supports_none: bool = True) -> Choice:
    """The choice that `tool_choice` asks for, in the shape of OpenAI, Anthropic or an AI SDK.

    tool_choice: a word or a mapping; None is 'auto'.
    offered: the tools of the request.
    supports_none: False makes an error of 'none'.

    Raises BadToolChoice for what is none of them and for 'none' where it is not supported, NoTools
    where a call is required and there is no tool, ToolNotFound and ProviderTool for a tool that
    cannot be the one to call.
    """
    kind, name = _kind_and_name(tool_choice)
    if kind == "none" and not supports_none:
        raise BadToolChoice(_NO_NONE)
    if kind == "required" and not offered.tools:
        raise _no_tools(offered)

    if kind == "tool":
        _check_tool(name, offered)

    return Choice(kind, name)


def _no_tools(offered: Offered) -> NoTools:
    """The error of a required call without a tool; it says whether the provider has some.

    offered: the tools of the request, none of which the caller runs. The error is returned, for the
    caller to raise.
    """
    if offered.provider:
        return NoTools(
            "Tool choice type 'required' is set, but no function tools are provided. "
            "Provider-defined tools are not supported by this middleware."
        )
    return NoTools("Tool choice type 'required' is set, but no tools are provided in params.tools.")


def _check_tool(name: str | None, offered: Offered) -> None:
    """Raise where the tool of this name cannot be the one to call.

    name: the tool that must be called.
    offered: the tools of the request.

    Raises ProviderTool for one that only the provider can run, and ToolNotFound for a stranger.
    """
    # A provider's own tools go by their type, and some by an id.
    if any(name in (t.get("id"), t.get("name"), t.get("type")) for t in offered.provider):
        raise ProviderTool(_PROVIDER_TOOLS)
    if all(t.name != name for t in offered.tools):
        raise ToolNotFound(f"Tool with name '{name}' not found in params.tools.")


def _kind_and_name(choice: Any) -> tuple[Kind, str | None]:
    """The kind of a `tool_choice` and the tool it names; raises BadToolChoice.

    choice: a word, or a mapping in the shape of OpenAI, Anthropic or an AI SDK.

    >>> _kind_and_name("any"), _kind_and_name({"type": "tool", "name": "f"})
    (('required', None), ('tool', 'f'))
    """
    if choice is None:
        return "auto", None
    if isinstance(choice, str) and choice in _KINDS:
        return _KINDS[choice], None
    if not isinstance(choice, Mapping):
        raise BadToolChoice("this is no tool choice", got=choice, expected=_EXPECTED)

    kind = choice.get("type")
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind], None

    name = _tool_name(choice)
    if name is None and isinstance(kind, str) and kind not in ("tool", *_OURS):
        name = kind  # a tool of the provider's, by its type

    if name is None:
        raise BadToolChoice("a tool choice names the tool", got=dict(choice), expected=_EXPECTED)

    return "tool", name


def _tool_name(choice: Mapping[str, Any]) -> str | None:
    """The tool that a choice names, in the shape of OpenAI or of an AI SDK.

    choice: a mapping, with the name in itself or in its member `function`.
    """
    inner = choice.get("function")
    body = inner if isinstance(inner, Mapping) else choice
    for key in ("name", "toolName", "tool_name"):
        name = body.get(key)
        if isinstance(name, str) and name:
            return name

    return None


@dataclass(frozen=True, slots=True)
class Offer:
    """A request's tools and tool choice, read.

    for_model: the tools as the model is told of them. tools: the same with the schemas to read
    arguments by. provider: those that only the provider can run. active: there are tools that may
    be called. forced: one must be.
    """

    for_model: tuple[ToolSpec, ...]
    tools: tuple[ToolSpec, ...]
    provider: tuple[Mapping[str, Any], ...]
    choice: Choice
    active: bool
    forced: bool


def read_offer(
    tools: Any, tool_choice: Any, schemas: Mapping[str, Any] | None, *, supports_none: bool
) -> Offer:
    """The tools and the choice of a request; raises what `read_tools`, `with_schemas` and
    `read_choice` do.

    tools: as for `read_tools`. tool_choice: as for `read_choice`.
    schemas: name of a tool -> the schema to read its arguments by, None for those of the tools.
    supports_none: False makes an error of the choice 'none'.
    """
    offered = read_tools(tools)
    read_by = with_schemas(offered.tools, schemas)
    choice = read_choice(tool_choice, offered, supports_none=supports_none)
    # With 'none' the model is told of no tool, and its text is not parsed.
    active = bool(offered.tools) and choice.kind != "none"
    return Offer(offered.tools, read_by, offered.provider, choice, active, active and choice.forced)


def create_dynamic_if_then_else_schema(tools: Any) -> dict[str, Any]:
    """A JSON Schema for one call of any of the tools: `{name, arguments}`, the arguments' schema by
    the name.

    tools: in any shape that `read_tools` takes.

    Raises NoTools for none, and ProviderTool for a tool that only the provider can run.
    """
    offered = read_tools(tools)
    if offered.provider:
        raise ProviderTool(_PROVIDER_TOOLS)
    if not offered.tools:
        raise NoTools("there is no tool to write a schema for")

    return _any_of(offered.tools)


def _any_of(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The schema of one call of any of the tools: a chain of conditions on the name.

    tools: at least one. A provider that does not know `if` still sees the names in `enum`.
    """
    # Built from the last tool on: each condition holds the rest of the chain as its else.
    chain: dict[str, Any] = {}
    for tool in reversed(tools):
        condition = {"properties": {"name": {"const": tool.name}}, "required": ["name"]}
        otherwise = {"else": chain} if chain else {}
        chain = {"if": condition, "then": _call_of(tool), **otherwise}

    return {
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": "Name of the tool to call",
                "enum": [t.name for t in tools],
            },
            "arguments": {
                "type": "object",
                "description": "Argument object to be passed to the tool",
            },
        },
        "required": ["name", "arguments"],
        **chain,
    }


def _call_of(tool: ToolSpec) -> dict[str, Any]:
    """The schema of a call of one tool.

    The schema says nothing of `type`, so that it can be a branch of a larger one.
    """
    return {
        "properties": {"name": {"const": tool.name}, "arguments": read_plain(tool.schema_json)},
        "required": ["name", "arguments"],
    }


def forced_schema(choice: Choice, tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON Schema of an answer where a call is forced.

    choice: 'required', or the name of one of the tools.
    tools: those that the model is told of.
    """
    if choice.kind == "required":
        return _any_of(tools)
    return {"type": "object", **_call_of(next(t for t in tools if t.name == choice.name))}


def response_format(choice: Choice, tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The `response_format` that asks an OpenAI-compatible provider for the forced call.

    choice: 'required', or the name of one of the tools.
    tools: those that the model is told of.

    The format is named after the tool, where the choice names one.
    """
    named = next((t for t in tools if t.name == choice.name), None)
    schema: dict[str, Any] = {"name": named.name if named else "tool_call"}
    if named and named.description:
        schema["description"] = named.description

    return {
        "type": "json_schema",
        "json_schema": {**schema, "schema": forced_schema(choice, tools)},
    }


def forced_prompt(choice: Choice, tools: Sequence[ToolSpec]) -> str:
    """The same as a request in words, for providers that know no `response_format`.

    choice: 'required', or the name of one of the tools.
    tools: those that the model is told of.
    """
    return (
        "Answer with exactly one tool call, and nothing else: a single JSON object, without any "
        "tags, code fence or "
        "explanation, that satisfies this JSON "
        f"Schema:\n{write_canonical(forced_schema(choice, tools))}"
    )
