"""Tool choice: the tools and the choice of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..core.errors import BadOptions, BadToolChoice
from ..core.toolspec import ToolSpec, tool_specs

Kind: TypeAlias = Literal["auto", "required", "none", "tool"]

_OURS = (None, "function", "custom")  # types of tools that the caller runs
_SCHEMAS = ("input_schema", "inputSchema", "parameters", "schema")
_KINDS: Mapping[str, Kind] = {
    "auto": "auto",
    "required": "required",
    "any": "required",
    "none": "none",
}
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
        """A call must be made.

        Such an answer is read as JSON from its first character to its last.
        """
        return self.kind in ("required", "tool")


def read_tools(tools: Any) -> Offered:
    """The tools of a request in any shape `ToolSpec.of` takes.

    Definitions of another type are the provider's.

    tools: one definition, a mapping of names, or a list in which each kind may stand.

    Raises BadToolSpec.

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
        if isinstance(tool, Mapping) and not _is_ours(tool):
            provider.append(tool)
        else:
            ours.append(tool)

    return Offered(tool_specs(ours), tuple(provider))


def _is_ours(tool: Mapping[str, Any]) -> bool:
    """Return True for a tool that takes JSON arguments, and run by the caller.

    OpenAI's custom tools take free text and only its own models call them. Anthropic writes
    `custom` for an ordinary tool with a schema.

    >>> _is_ours({"type": "custom", "input_schema": {}}), _is_ours({"type": "custom", "custom": {}})
    (True, False)
    """
    if tool.get("type") == "custom":
        return any(key in tool for key in _SCHEMAS)
    return tool.get("type") in _OURS


def with_schemas(
    tools: Sequence[ToolSpec], schemas: Mapping[str, Any] | None
) -> tuple[ToolSpec, ...]:
    """Return the tools with other schemas, by name.

    Raises BadOptions if they are no mapping, and BadToolSpec.

    schemas: name of a tool -> JSON Schema. None leaves all tools as they are.
    """
    if schemas is not None and not isinstance(schemas, Mapping):
        raise BadOptions(
            "original_tool_schemas is a mapping",
            got=type(schemas).__name__,
            expected="name: schema",
        )
    return tool_specs(tuple(_with_schema(t, schemas or {}) for t in tools))


def _with_schema(tool: ToolSpec, schemas: Mapping[str, Any]) -> ToolSpec:
    """Return the tool with the schema of its name, itself if there is none.

    schemas: name of a tool -> JSON Schema. The tool keeps its name and its description.
    """
    if tool.name not in schemas:
        return tool
    return ToolSpec.of(
        {"name": tool.name, "description": tool.description, "parameters": schemas[tool.name]}
    )


def read_choice(tool_choice: Any, offered: Offered, *, supports_none: bool = True) -> Choice:
    """Return the choice that `tool_choice` asks for, in the shape of OpenAI, Anthropic or an AI
    SDK.

    tool_choice: a word or a mapping. None is 'auto'.
    offered: the tools of the request.
    supports_none: False makes an error of 'none'.

    Raises BadToolChoice for anything that is none of them, for 'none' where it is not supported,
    where a call is required and there is no tool, and for a tool that cannot be the one to call.
    """
    kind, name = _kind_and_name(tool_choice)
    if kind == "none" and not supports_none:
        raise BadToolChoice(_NO_NONE)
    if kind == "required" and not offered.tools:
        raise _no_tools(offered)

    if kind == "tool":
        _check_tool(name, offered)

    return Choice(kind, name)


def _no_tools(offered: Offered) -> BadToolChoice:
    """Return the error of a required call without a tool.

    It says whether the provider has some.

    offered: the tools of the request, none of which the caller runs. The error comes back, for the
    caller to raise.
    """
    if offered.provider:
        return BadToolChoice(
            "Tool choice type 'required' is set, but no function tools are provided. "
            "Provider-defined tools are not supported by this middleware.",
            code="no-tools",
        )
    return BadToolChoice(
        "Tool choice type 'required' is set, but no tools are provided in params.tools.",
        code="no-tools",
    )


def _check_tool(name: str | None, offered: Offered) -> None:
    """Raise where the tool of this name cannot be the one to call.

    name: the tool that must be called.
    offered: the tools of the request.

    Raises BadToolChoice for one that only the provider can run, and BadToolChoice for a stranger.
    """
    # A provider's own tools go by their type, and some by an id.
    if any(name in (t.get("id"), t.get("type"), _tool_name(t)) for t in offered.provider):
        raise BadToolChoice(PROVIDER_TOOLS, code="provider-tool")
    if all(t.name != name for t in offered.tools):
        raise BadToolChoice(
            f"Tool with name '{name}' not found in params.tools.", code="tool-not-found"
        )


def _kind_and_name(choice: Any) -> tuple[Kind, str | None]:
    """Return the kind of a `tool_choice` and the tool it names.

    Raises BadToolChoice.

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
    """Return the tool that a choice names, in the shape of OpenAI or of an AI SDK.

    choice: a mapping, with the name in itself or in its member `function` or `custom`.
    """
    inner = choice.get("function", choice.get("custom"))
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
    """Return the tools and the choice of a request.

    Raises what `read_tools`, `with_schemas` and `read_choice` do.

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
