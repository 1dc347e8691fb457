"""ToolSpec: a tool that the model may call.

`ToolSpec.of` is the one door for every shape a tool definition comes in.
"""

from __future__ import annotations

import enum
import inspect
import marshal
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from .errors import BadToolSpec
from .remote import local_path
from .values import read_plain, write_canonical

_SHAPES = (
    "an OpenAI tool dict, {name, parameters | inputSchema}, "
    "{name, capabilities/parameters with type hints}, "
    "a function with annotations, a pydantic model, or a ToolSpec"
)
ToolLike: TypeAlias = "ToolSpec | Mapping[str, Any] | Callable[..., Any] | type[Any]"
"""A tool in any shape that `ToolSpec.of` takes."""

ToolsLike: TypeAlias = "ToolLike | Iterable[ToolLike] | str | Path | None"
"""One tool, several, a mapping of name to tool, the path of their JSON, or None for no tools."""

EMPTY_SCHEMA = '{"type":"object","properties":{}}'


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool: its name, its description, its arguments' schema as JSON text.

    The text is canonical JSON of a JSON Schema. `examples` are inputs that the tool's author gives
    for the prompt, each as JSON text. They are not checked here.

    >>> ToolSpec.of({"name": "f", "parameters": {"type": "object"}})
    ToolSpec(name='f', description='', schema_json='{"type":"object"}')
    """

    name: str
    description: str = ""
    schema_json: str = EMPTY_SCHEMA
    examples: tuple[str, ...] = field(default=(), repr=False)

    @property
    def schema(self) -> Any:
        """The schema as a shared, cached object: read it, never change it."""
        return _schema(self.schema_json)

    @classmethod
    def of(cls, x: ToolLike) -> ToolSpec:
        """Return a ToolSpec from any accepted shape. Raises BadToolSpec naming the bad value."""
        if isinstance(x, ToolSpec):
            return x

        if isinstance(x, Mapping):
            try:
                definition: Any = x
                return _from_bytes(marshal.dumps(definition, 2))  # equal bytes are equal values
            except ValueError:  # what is not plain JSON is read each time
                return _from_mapping(x)
        if isinstance(x, type) and hasattr(x, "model_json_schema"):
            schema = x.model_json_schema()
            description = schema.get("description") or inspect.getdoc(x) or ""
            return ToolSpec(x.__name__, description, write_canonical(schema))
        if callable(x):
            return _from_callable(x)
        raise BadToolSpec("this is no tool definition", got=x, expected=_SHAPES)

    def to_dict(self) -> dict[str, Any]:
        """Return the tool as `{name, description, parameters}`.

        The schema is a new object. A tool with examples has `inputExamples` as well.
        """
        tool: dict[str, Any] = self.to_openai()["function"]
        if self.examples:
            tool["inputExamples"] = [{"input": read_plain(text)} for text in self.examples]
        return tool

    def to_openai(self) -> dict[str, Any]:
        """Return the tool in the shape that OpenAI-compatible endpoints take."""
        written = _schema_bytes(self.schema_json)
        # A new object each time: the caller may change it.
        if written is None:
            schema = read_plain(self.schema_json)
        else:
            schema = marshal.loads(written)  # noqa: S302 - bytes of our own
        function = {"name": self.name, "description": self.description, "parameters": schema}
        return {"type": "function", "function": function}


@lru_cache(maxsize=4096)
def _schema(schema_json: str) -> Any:
    return read_plain(schema_json)


@lru_cache(maxsize=4096)
def _schema_bytes(schema_json: str) -> bytes | None:
    try:
        return marshal.dumps(_schema(schema_json), 2)
    except ValueError:
        return None


def tool_specs(tools: ToolsLike) -> tuple[ToolSpec, ...]:
    """Tools from None, one definition or an iterable (or a mapping name -> definition). Names must
    differ.

    >>> [t.name for t in tool_specs([{"name": "a"}, {"name": "b"}])]
    ['a', 'b']
    """
    if tools is None:
        return ()
    # The same tools come back with every text that is read: these two are looked at first.
    if type(tools) is _Distinct:
        return tools
    if type(tools) is tuple and all(type(t) is ToolSpec for t in tools):
        return _distinct(tools)

    if type(tools) is list:
        try:
            return _specs_from_bytes(marshal.dumps(tools, 2))
        except ValueError:  # not plain JSON
            pass
    return _specs_of(_definitions(tools))


@lru_cache(maxsize=128)
def _specs_from_bytes(tools: bytes) -> tuple[ToolSpec, ...]:
    return _specs_of(marshal.loads(tools))  # noqa: S302 - bytes of our own


def _specs_of(definitions: Iterable[Any]) -> tuple[ToolSpec, ...]:
    specs: list[ToolSpec] = []
    for tool in definitions:
        # An agent is as many tools as it has capabilities.
        # Gemini's declarations stand in one tool, too.
        members = [tool.get(key) for key in _SEVERAL] if isinstance(tool, Mapping) else []
        each = next((m for m in members if isinstance(m, (list, tuple))), (tool,))
        specs += map(ToolSpec.of, each)
    return _distinct(tuple(specs))


_SEVERAL = ("capabilities", "functionDeclarations", "function_declarations")


def _definitions(tools: ToolsLike) -> Iterable[Any]:
    if isinstance(tools, (ToolSpec, type)) or callable(tools):
        return [tools]
    if isinstance(tools, Mapping):
        if _is_definition(tools):
            return [tools]
        return [
            {**definition, "name": name}
            if isinstance(definition, Mapping) and not _is_definition(definition)
            else definition
            for name, definition in tools.items()
        ]
    if isinstance(tools, (str, Path)):
        return _definitions(_read_file(tools))
    if isinstance(tools, bytes) or not isinstance(tools, Iterable):
        raise BadToolSpec("tools are a list of tool definitions", got=tools, expected=_SHAPES)

    return tools


def _read_file(path: str | Path) -> Any:
    try:
        return read_plain(local_path(path).read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as e:
        raise BadToolSpec(
            "tools are a list of tool definitions, or the path of a JSON file with one",
            got=f"{str(path)[:120]}: {e}",
            expected=_SHAPES,
        ) from None


class _Distinct(tuple[ToolSpec, ...]):
    __slots__ = ()


@lru_cache(maxsize=256)
def _distinct(specs: tuple[ToolSpec, ...]) -> _Distinct:
    names: set[str] = set()
    for spec in specs:
        if spec.name in names:
            raise BadToolSpec(
                "two tools have the same name", got=spec.name, hint="give each tool its own name"
            )

        names.add(spec.name)

    return _Distinct(specs)


def _is_definition(x: Mapping[Any, Any]) -> bool:
    return isinstance(x.get("name"), str) or (x.get("type") == "function" and "function" in x)


_LONGEST_NAME = 256  # characters; models and MCP take 64 or 128


@lru_cache(maxsize=4096)
def _from_bytes(definition: bytes) -> ToolSpec:
    return _from_mapping(marshal.loads(definition))  # noqa: S302 - bytes of our own


def _from_mapping(x: Mapping[Any, Any]) -> ToolSpec:
    inner = x.get("function", x.get("toolSpec"))  # Bedrock's
    body: Mapping[Any, Any] = inner if isinstance(inner, Mapping) else x
    name = body.get("name")
    if not isinstance(name, str) or not name:
        raise BadToolSpec("a tool has no name", got=x, expected=_SHAPES)
    if len(name) > _LONGEST_NAME:
        raise BadToolSpec(
            "a tool's name is too long",
            got=f"{name[:40]}… ({len(name):,} characters)",
            expected=f"at most {_LONGEST_NAME} characters",
        )
    if "capabilities" in body:
        raise BadToolSpec(
            f"the agent {name!r} is as many tools as it has capabilities",
            got=x,
            expected="one capability",
            hint="give the agent in a list of tools, or one of its capabilities",
        )

    description = body.get("description") or ""
    examples = tuple(_example_texts(x))
    for key in _SCHEMA_KEYS:
        if key in body:
            return ToolSpec(name, str(description), _schema_text(name, body[key]), examples)

    summary = next((body[key] for key in _SUMMARIES if isinstance(body.get(key), Mapping)), None)
    if summary is not None:
        schema = _schema_text(name, _hinted_parameters(summary))
        return ToolSpec(name, str(description), schema, examples)
    return ToolSpec(name, str(description), examples=examples)


_SCHEMA_KEYS = (
    "parameters", "inputSchema", "input_schema", "schema", "parametersJsonSchema",
    "parameters_json_schema",
)  # fmt: skip
# A capability that hints at its fields, instead of a schema.
_SUMMARIES = ("input_summary", "inputSummary", "InputSummary")


def _example_texts(x: Mapping[Any, Any]) -> Iterable[str]:
    inner = x.get("function")
    for body in (x, inner if isinstance(inner, Mapping) else {}):
        for key, wraps in (("inputExamples", True), ("input_examples", False)):
            items = body.get(key)
            for item in items if isinstance(items, (list, tuple)) else ():
                # An input of one parameter named `input` has a value there that is no object.
                is_wrapped = isinstance(item, Mapping) and isinstance(item.get("input"), Mapping)
                example = item["input"] if is_wrapped and (wraps or len(item) == 1) else item
                try:
                    yield write_canonical(
                        dict(example) if isinstance(example, Mapping) else example
                    )
                except (TypeError, ValueError):
                    yield write_canonical(str(example))


def _hinted_parameters(summary: Mapping[Any, Any]) -> list[Any]:
    parameters: list[Any] = []
    for required, names in (
        (True, ("required", "required_fields", "RequiredFields")),
        (False, ("optional", "optional_fields", "OptionalFields")),
    ):
        for hint in next((summary[n] for n in names if isinstance(summary.get(n), list)), ()):
            is_hint = isinstance(hint, Mapping)
            parameters.append({**hint, "required": required} if is_hint else hint)
    return parameters


def _schema_text(name: str, schema: Any) -> str:
    while isinstance(schema, Mapping) and set(schema) in ({"jsonSchema"}, {"json"}):
        (schema,) = schema.values()
    # Gemini writes types in capitals.
    if isinstance(schema, Mapping) and schema.get("type") == "OBJECT":
        schema = _with_small_types(schema)

    if schema is None:
        return EMPTY_SCHEMA

    if isinstance(schema, type) and hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()

    if isinstance(schema, (list, tuple)):
        schema = _from_parameter_list(name, schema)

    if not isinstance(schema, (Mapping, bool)):
        raise BadToolSpec(
            f"the parameters of tool {name!r} are no JSON Schema", got=schema, expected="an object"
        )

    try:
        return write_canonical(schema if isinstance(schema, bool) else dict(schema))
    except (TypeError, ValueError) as e:
        raise BadToolSpec(
            f"the parameters of tool {name!r} cannot be written as JSON", got=str(e)
        ) from None


def _with_small_types(schema: Any) -> Any:
    if isinstance(schema, (list, tuple)):
        return [_with_small_types(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: value.lower()
        if key == "type" and isinstance(value, str) and value.isupper()
        else {name: _with_small_types(inner) for name, inner in value.items()}
        if key == "properties" and isinstance(value, Mapping)
        else _with_small_types(value)
        if key in ("items", "anyOf", "any_of", "prefixItems")
        else value
        for key, value in schema.items()
    }


# The type words of capability lists, as JSON Schema types.
_HINTS = {
    "string": "string", "str": "string",
    "number": "number", "float": "number", "float64": "number", "double": "number",
    "integer": "integer", "int": "integer", "int32": "integer", "int64": "integer",
    "boolean": "boolean", "bool": "boolean",
    "array": "array", "list": "array",
    "object": "object", "map": "object", "dict": "object",
}  # fmt: skip


# Members of a parameter that are no keywords of JSON Schema, or are said elsewhere.
_NO_KEYWORDS = ("name", "type", "required", "optional")


def _from_parameter_list(name: str, params: Iterable[Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []

    for param in params:
        if not isinstance(param, Mapping) or not isinstance(param.get("name"), str):
            raise BadToolSpec(
                f"a parameter of tool {name!r} has no name",
                got=param,
                expected="{name, type, description}",
            )

        hint = param.get("type")
        schema = {k: v for k, v in param.items() if k not in _NO_KEYWORDS}
        if isinstance(hint, str):
            schema = {"type": _HINTS.get(hint.lower(), hint.lower()), **schema}

        properties[param["name"]] = schema
        if param.get("required"):
            required.append(param["name"])

    return _object_schema(properties, required)


def _object_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required

    return schema


_JSON_TYPES: dict[Any, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object",
    tuple: "array",
}  # fmt: skip


def _from_callable(f: Callable[..., Any]) -> ToolSpec:
    name = getattr(f, "__name__", None)
    if not isinstance(name, str) or not name or name == "<lambda>":
        raise BadToolSpec(
            "a function used as a tool needs a name", got=f, hint="use def, or give a dict"
        )

    try:
        hints = typing.get_type_hints(f, include_extras=True)
    except Exception as e:
        raise BadToolSpec(f"the annotations of {name}() cannot be read", got=str(e)) from None

    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    others: Any = False  # any other argument is a TypeError

    for parameter in inspect.signature(f).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            hint = hints.get(parameter.name, Any)
            others = annotation_schema(hint, f"{name}(**{parameter.name})") or True
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue

        where = f"{name}({parameter.name})"
        schema = annotation_schema(hints.get(parameter.name, Any), where)
        schema = _without_definitions(schema, definitions, where)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        else:
            with suppress(TypeError):  # a default that is not JSON is left out
                write_canonical(parameter.default)
                schema = {**schema, "default": parameter.default}
        properties[parameter.name] = schema

    schema = {**_object_schema(properties, required), "additionalProperties": others}
    if definitions:
        schema["$defs"] = definitions

    return ToolSpec(name, inspect.getdoc(f) or "", write_canonical(schema))


def _without_definitions(schema: Any, definitions: dict[str, Any], where: str) -> Any:
    if isinstance(schema, list):
        return [_without_definitions(x, definitions, where) for x in schema]
    if not isinstance(schema, dict):
        return schema

    for key, definition in schema.get("$defs", {}).items():
        if definitions.setdefault(key, definition) != definition:
            raise BadToolSpec(
                f"two models of {where} have one name", got=key, hint="rename one, or give a dict"
            )

    return {
        k: _without_definitions(v, definitions, where) for k, v in schema.items() if k != "$defs"
    }


def annotation_schema(hint: Any, where: str) -> dict[str, Any]:
    """Return the JSON Schema of a Python annotation."""
    if hint is Any or hint is inspect.Parameter.empty or hint is object:
        return {}
    if hint is None or hint is type(None):
        return {"type": "null"}
    if isinstance(hint, type) and hasattr(hint, "model_json_schema"):
        schema: dict[str, Any] = hint.model_json_schema()
        return schema

    origin = typing.get_origin(hint)
    fitting: dict[str, Any] | None = None
    if origin is not None:
        fitting = _generic_schema(hint, origin, where)
    elif isinstance(hint, type) and issubclass(hint, enum.Enum):
        fitting = {"enum": [member.value for member in hint]}
    elif isinstance(hint, type):
        base = next((base for base in hint.__mro__ if base in _JSON_TYPES), None)
        fitting = None if base is None else {"type": _JSON_TYPES[base]}
    if fitting is None:
        raise BadToolSpec(
            f"the annotation of {where} has no JSON Schema",
            got=hint,
            hint="give the tool as a dict",
        )

    return fitting


def _generic_schema(hint: Any, origin: Any, where: str) -> dict[str, Any] | None:
    args = typing.get_args(hint)
    if origin is typing.Annotated:
        # The first text beside the type is the description, as OpenAI's own helpers have it.
        notes = [note for note in args[1:] if isinstance(note, str)]
        schema = annotation_schema(args[0], where)
        return {**schema, "description": notes[0]} if notes else schema

    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [annotation_schema(arg, where) for arg in args]}
    if origin is tuple and not (len(args) == 2 and args[1] is Ellipsis):
        items = [annotation_schema(arg, where) for arg in args]
        return {"type": "array", "prefixItems": items, "items": False}
    if not isinstance(origin, type):
        return None
    is_sequence = issubclass(origin, typing.Sequence) and not issubclass(origin, str)
    if is_sequence or origin in (set, frozenset):
        # `typing.List` has an origin and no parameters.
        each = {"items": annotation_schema(args[0], where)} if args else {}
        return {"type": "array", **each}
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": annotation_schema(args[1], where)}
    return None
