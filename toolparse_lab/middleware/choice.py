"""Tool choice: the tools and the choice of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from ..arguments.schema.sound import unwrap_json_schema
from ..arguments.schema.view import resolve
from ..core.errors import BadOptions, BadToolChoice
from ..core.toolspec import ToolSpec, tool_specs
from ..core.values import read_plain, write_canonical

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


# How it works. Two forms say the same. "if_then_else" is that of the package this was modelled on:
# a chain of conditions on the name. Engines that decode by a schema leave conditions out, so that
# it constrains no arguments. "any_of" says one branch a tool, which all of them follow. With
# "any_of_many" a required choice may be several calls: a list of them, where the request asks for
# parallel calls by name, and else one, because not every model ends a list. The references of a
# tool's schema are written from its own root, which is deeper here: they get the path to that place
# in front, in a place of their own under `$defs`.


ChoiceSchema: TypeAlias = Literal["if_then_else", "any_of", "any_of_many"]
CHOICE_SCHEMAS: tuple[ChoiceSchema, ...] = ("if_then_else", "any_of", "any_of_many")
Schema: TypeAlias = dict[str, Any]

# Members with schemas by name, those with values, and those that say a type.
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VALUES = ("const", "enum", "default", "examples", "required")
_TYPES = ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")


class ChoiceForm(NamedTuple):
    """The form in which a forced choice is asked for.

    schema: how the schema says it. The module explains them. many: as a list of calls, where any
    tool may be called.
    """

    schema: ChoiceSchema = "if_then_else"
    many: bool = False

    @classmethod
    def of(cls, schema: ChoiceSchema, parallel: Any) -> ChoiceForm:
        """Return the form for a request. One that asks for parallel calls by name gets a list."""
        return cls(schema, schema == "any_of_many" and parallel is True)


PLAIN = ChoiceForm()  # as the package asked that this was modelled on

_ONE_CALL = (
    "Answer with exactly one tool call, and nothing else: a single JSON object, without any tags, "
    "code fence or explanation, that satisfies this JSON Schema:"
)
_CALLS = (
    "Answer with tool calls, and nothing else: a JSON array of one or more of them, without any "
    "tags, code fence or explanation, that satisfies this JSON Schema:"
)


def create_dynamic_if_then_else_schema(tools: Any) -> Schema:
    """Return a JSON Schema for one call of any of the tools.

    The call is `{name, arguments}`, with the arguments' schema by the name.

    Args:
        tools: in any shape that `read_tools` takes.

    Raises BadToolChoice without tools, and for a tool that only the provider can run.

    >>> schema = create_dynamic_if_then_else_schema([{"name": "f"}])
    >>> sorted(schema)
    ['if', 'properties', 'required', 'then', 'type']
    """
    offered = read_tools(tools)
    if offered.provider:
        raise BadToolChoice(PROVIDER_TOOLS, code="provider-tool")
    if not offered.tools:
        raise BadToolChoice("there is no tool to write a schema for", code="no-tools")
    return _chain(offered.tools)


def _chain(tools: Sequence[ToolSpec]) -> Schema:
    # A provider that does not know `if` still sees the names in `enum`. Built from the last tool
    # on: each condition has the rest of the chain as its else.
    chain: Schema = {}
    for tool in reversed(tools):
        condition = {"properties": {"name": {"const": tool.name}}, "required": ["name"]}
        otherwise = {"else": chain} if chain else {}
        chain = {"if": condition, "then": _call_of(tool), **otherwise}
    names = {"enum": [t.name for t in tools]}
    properties = {
        "name": {"type": "string", "description": "Name of the tool to call", **names},
        "arguments": {"type": "object", "description": "Argument object to be passed to the tool"},
    }
    required = {"required": ["name", "arguments"]}
    return {"type": "object", "properties": properties, **required, **chain}


def _call_of(tool: ToolSpec) -> Schema:
    # Says nothing of `type`, so that it can be a branch of a larger schema.
    return {
        "properties": {"name": {"const": tool.name}, "arguments": read_plain(tool.schema_json)},
        "required": ["name", "arguments"],
    }


def any_of_schema(tools: Sequence[ToolSpec], *, many: bool = False, answer: Any = None) -> Schema:
    """Return a JSON Schema for one call of any of the tools, one branch a tool.

    tools: at least one. many: for a list of calls instead. answer: the schema of the words allowed
    instead of a call, None if a call must be made.

    >>> schema = any_of_schema([ToolSpec.of({"name": "f", "parameters": {}})])
    >>> schema["properties"]["name"]
    {'const': 'f'}
    """
    definitions: Schema = {}
    branches = [_branch(tool, i, definitions) for i, tool in enumerate(tools)]
    if many and answer is None:
        schema: Schema = {"type": "array", "items": _one_of(branches), "minItems": 1}
    elif answer is None:
        schema = _one_of(branches)
    else:
        schema = {"anyOf": [*branches, _placed(answer, "answer", definitions)]}
    return {**schema, "$defs": definitions} if definitions else schema


def _one_of(branches: list[Schema]) -> Schema:
    # Some providers want to see at the root that it is an object.
    return branches[0] if len(branches) == 1 else {"type": "object", "anyOf": branches}


def _branch(tool: ToolSpec, index: int, definitions: Schema) -> Schema:
    arguments = _placed(read_plain(tool.schema_json), f"arguments_{index}", definitions)
    if not isinstance(arguments, Mapping):  # `true`: anything goes
        arguments = {}
    if not any(keyword in arguments for keyword in _TYPES):
        arguments = {"type": "object", **arguments}
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _placed(schema: Any, name: str, definitions: Schema) -> Any:
    # Itself, or a reference to where it went: under `definitions`, if it refers to parts of
    # itself.
    schema = unwrap_json_schema(schema)
    moved = _moved(schema, f"#/$defs/{name}")
    if moved == schema:
        return schema
    definitions[name] = moved
    return {"$ref": f"#/$defs/{name}"}


def _moved(node: Any, root: str) -> Any:
    # With its references written from another root, in place of its own '#'.
    if isinstance(node, list):
        return [_moved(item, root) for item in node]
    if not isinstance(node, Mapping):
        return node
    moved: Schema = {}
    for key, value in node.items():
        if key == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/")):
            moved[key] = root + value[1:]
        elif key in _NAMED and isinstance(value, Mapping):
            # The keys are names here: a property may be called `$ref`.
            moved[key] = {name: _moved(inner, root) for name, inner in value.items()}
        else:
            moved[key] = value if key in _VALUES else _moved(value, root)
    return moved


def forced_schema(choice: Choice, tools: Sequence[ToolSpec], form: ChoiceForm = PLAIN) -> Schema:
    """Return the JSON Schema of an answer where a call is forced."""
    named = [t for t in tools if t.name == choice.name] if choice.kind == "tool" else []
    if form.schema != "if_then_else":
        return any_of_schema(named or tools, many=form.many and not named)
    return {"type": "object", **_call_of(named[0])} if named else _chain(tools)


def response_format(choice: Choice, tools: Sequence[ToolSpec], form: ChoiceForm = PLAIN) -> Schema:
    """Return the `response_format` that asks an OpenAI-compatible provider for the forced call.

    It has the name of the tool, where the choice names one.
    """
    named = next((t for t in tools if t.name == choice.name), None)
    schema: Schema = {"name": named.name if named else "tool_call"}
    if named and named.description:
        schema["description"] = named.description
    return {
        "type": "json_schema",
        "json_schema": {**schema, "schema": forced_schema(choice, tools, form)},
    }


def forced_prompt(choice: Choice, tools: Sequence[ToolSpec], form: ChoiceForm = PLAIN) -> str:
    """Return the same as a request in words, for providers that know no `response_format`."""
    schema = forced_schema(choice, tools, form)
    words = _CALLS if form.many and choice.kind == "required" else _ONE_CALL
    return f"{words}\n{write_canonical(schema)}"


# a `response_format` of the caller's own, next to tools

# A caller's own format that was sent as it is would forbid calls: the first answer would have the
# caller's shape, and no tool would ever be called. So what is sent admits both, by a schema whose
# branches are the calls and the caller's own, and the answer is read as the one or the other. A
# call in such an answer is exactly `{name, arguments}` of a tool that was offered; no reading that
# is kind to other keys applies, since everything else may be the caller's own.

_FORMATS = (
    '{"type": "json_schema", "json_schema": {"name": …, "schema": …}}, {"type": "json_object"}, '
    '{"type": "text"} or a pydantic model'
)
_EITHER = (
    "Your whole answer is a single JSON value without any tags, code fence or explanation: either "
    'one tool call, {"name": <tool>, "arguments": {…}}, or, when you need no tool, the answer '
    "itself"
)
_ANSWER = (
    "When you answer without calling a tool, your whole answer is a single JSON value, without any "
    "code fence or explanation"
)


def _read_format(response_format: Any) -> tuple[Any, str] | None:
    # The schema, None for any JSON object, and its name; None if nothing is asked for.
    kind = inner = None
    if isinstance(response_format, Mapping):
        kind, inner = response_format.get("type"), response_format.get("json_schema")
    if response_format is None or kind == "text":
        return None
    if callable(getattr(response_format, "model_json_schema", None)):
        schema, name = (
            response_format.model_json_schema(),
            getattr(response_format, "__name__", "answer"),
        )
    elif kind == "json_schema" and isinstance(inner, Mapping) and "schema" in inner:
        schema, name = inner["schema"], inner.get("name") or "answer"
    elif kind == "json_object":
        # Some providers take the schema next to the type.
        schemas = (response_format.get(key) for key in ("response_schema", "schema"))
        schema, name = next((schema for schema in schemas if schema is not None), None), "answer"
        if schema is None:
            return None, name
    else:
        raise BadOptions(
            "this response_format cannot stand beside tools",
            got=response_format,
            expected=_FORMATS,
            hint="send it without tools, in a last turn of its own",
        )
    node = resolve(schema, unwrap_json_schema(schema))
    properties = node.get("properties") if isinstance(node, Mapping) else None
    if isinstance(properties, Mapping) and {"name", "arguments"} <= properties.keys():
        raise BadOptions(
            "an answer of this response_format cannot be told from a tool call",
            got=sorted(properties),
            expected="a schema without the properties name and arguments beside each other",
            hint="rename one of them, or send the format without tools, in a last turn of its own",
        )
    return schema, str(name)


def add_format(request: Schema, tools: Sequence[ToolSpec], *, by_prompt: bool) -> tuple[str, bool]:
    """Make the `response_format` of a request, which is changed, one that admits calls.

    by_prompt: the provider takes no `response_format`, so that it drops out. Returns what the model
    is told of it, and whether it decodes by it. Raises BadOptions for a format that cannot be used
    with tools: of an unknown type, or one whose answers may look like calls.
    """
    form = _read_format(request.get("response_format"))
    if form is None:
        return "", False
    schema, name = form
    words = "as a JSON object."
    if schema is not None:
        words = f"which satisfies this JSON Schema:\n{write_canonical(schema)}"
    if by_prompt:
        del request["response_format"]
        return f"{_ANSWER}, {words}", False
    if schema is not None:  # without one a call is a JSON object, too
        both = {"name": name, "schema": any_of_schema(tools, answer=schema)}
        request["response_format"] = {"type": "json_schema", "json_schema": both}
    return f"{_EITHER}, {words}", True
