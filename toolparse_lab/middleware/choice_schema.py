"""The JSON Schema that makes a model answer with nothing but calls, and how it is asked for."""

# How it works. Two forms say the same. "if_then_else" is that of the package this was modelled on:
# a chain of conditions on the name. Engines that decode by a schema leave conditions out, so that
# it constrains no arguments. "any_of" says one branch a tool, which all of them follow. With
# "any_of_many" a required choice may be several calls: a list of them, where the request asks for
# parallel calls by name, and else one, because not every model ends a list. The references of a
# tool's schema are written from its own root, which is deeper here: they get the path to that place
# in front, in a place of their own under `$defs`.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from ..arguments.schema.references import unwrap_json_schema
from ..core.errors import BadToolChoice
from ..core.toolspec import ToolSpec
from ..core.values import read_plain, write_canonical
from .choice import PROVIDER_TOOLS, Choice, read_tools

ChoiceSchema: TypeAlias = Literal["if_then_else", "any_of", "any_of_many"]
CHOICE_SCHEMAS: tuple[ChoiceSchema, ...] = ("if_then_else", "any_of", "any_of_many")
Schema: TypeAlias = dict[str, Any]

# Members that hold schemas by name, those that hold values, and those that say a type.
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
        """Return the form for a request. parallel: its `parallel_tool_calls`, None if it does not
        say.

        Only a request that asks for parallel calls by name gets a list.
        """
        return cls(schema, schema == "any_of_many" and parallel is True)


PLAIN = ChoiceForm()
"""as the package asked that this was modelled on"""

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

    Raises BadToolChoice for none, and BadToolChoice for a tool that only the provider can run.

    >>> import toolparse_lab as tp
    >>> schema = tp.create_dynamic_if_then_else_schema([{"name": "f"}])
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
    """Return the schema of one call of any of the tools: a chain of conditions on the name.

    tools: at least one. A provider that does not know `if` still sees the names in `enum`.
    """
    # Built from the last tool on: each condition holds the rest of the chain as its else.
    chain: Schema = {}
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


def _call_of(tool: ToolSpec) -> Schema:
    """Return the schema of a call of one tool.

    The schema says nothing of `type`, so that it can be a branch of a larger one.
    """
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
    """Return the schema of an object that satisfies one of the branches.

    The branch itself if it is the only one.
    """
    # Some providers want to see at the root that it is an object.
    return branches[0] if len(branches) == 1 else {"type": "object", "anyOf": branches}


def _branch(tool: ToolSpec, index: int, definitions: Schema) -> Schema:
    """Return the schema of a call of one tool, whole.

    index: of the tool. definitions: those of the whole schema, which may be added to.
    """
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
    """Return a schema for a place inside another: itself, or a reference to where it went.

    name: for its place under `definitions`, where it goes if it refers to parts of itself.
    """
    schema = unwrap_json_schema(schema)
    moved = _moved(schema, f"#/$defs/{name}")
    if moved == schema:
        return schema
    definitions[name] = moved
    return {"$ref": f"#/$defs/{name}"}


def _moved(node: Any, root: str) -> Any:
    """Return a schema with its references written from another root.

    root: the pointer to where the schema will stand, in place of its own '#'.

    >>> _moved({"items": {"$ref": "#"}, "enum": [{"$ref": "#"}]}, "#/a")
    {'items': {'$ref': '#/a'}, 'enum': [{'$ref': '#'}]}
    """
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


def forced_schema(
    choice: Choice,
    tools: Sequence[ToolSpec],
    form: ChoiceForm = PLAIN,
) -> Schema:
    """Return the JSON Schema of an answer where a call is forced.

    choice: 'required', or the name of one of the tools. tools: those that the model is told of.
    form: how the schema says it.
    """
    named = [t for t in tools if t.name == choice.name] if choice.kind == "tool" else []
    if form.schema != "if_then_else":
        return any_of_schema(named or tools, many=form.many and not named)
    return {"type": "object", **_call_of(named[0])} if named else _chain(tools)


def response_format(
    choice: Choice,
    tools: Sequence[ToolSpec],
    form: ChoiceForm = PLAIN,
) -> Schema:
    """Return the `response_format` that asks an OpenAI-compatible provider for the forced call.

    choice, tools, form: as for `forced_schema`.

    The format is named after the tool, where the choice names one.
    """
    named = next((t for t in tools if t.name == choice.name), None)
    schema: Schema = {"name": named.name if named else "tool_call"}
    if named and named.description:
        schema["description"] = named.description

    return {
        "type": "json_schema",
        "json_schema": {**schema, "schema": forced_schema(choice, tools, form)},
    }


def forced_prompt(
    choice: Choice,
    tools: Sequence[ToolSpec],
    form: ChoiceForm = PLAIN,
) -> str:
    """Return the same as a request in words, for providers that know no `response_format`.

    choice, tools, form: as for `forced_schema`.
    """
    schema = forced_schema(choice, tools, form)
    words = _CALLS if form.many and choice.kind == "required" else _ONE_CALL
    return f"{words}\n{write_canonical(schema)}"
