"""Every shape a tool definition comes in, and the words for those that cannot be read."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

import toolparse_lab as tp
from tests.tables import asked_of, every_case
from toolparse_lab.core.toolspec import annotation_schema, tool_specs
from toolparse_lab.formats.tool_names import near_tool, offered_name

pydantic = pytest.importorskip("pydantic")


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Point(TypedDict):
    x: int


class Port(pydantic.BaseModel):  # type: ignore[misc, name-defined]  # imported as Any, so that it may be missing
    """A harbour."""

    name: str
    depth: float | None = None
    near: list[Port] = pydantic.Field(default=[])


def lookup(
    port: str,
    days: Annotated[int, "how many days"] = 3,
    unit: Literal["m", "ft"] = "m",
    tags: list[str] | None = None,
    *,
    colour: Colour = Colour.RED,
    at: Optional[float] = None,  # noqa: UP045 - the old spelling is what is tested
    **rest: Any,
) -> str:
    """Looks up tides.

    Longer words.
    """
    return port


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@asked_of(
    "definition",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
        {"name": "f", "description": "d", "parameters": SCHEMA},
        {"name": "f", "description": "d", "inputSchema": SCHEMA},
        {"name": "f", "description": "d", "input_schema": SCHEMA},
        {"name": "f", "description": "d", "inputSchema": {"jsonSchema": {"jsonSchema": SCHEMA}}},
        {"name": "f", "description": "d", "parameters": [{"name": "a", "type": "Int64"}]},
        tp.ToolSpec("f", "d", '{"type":"object","properties":{"a":{"type":"integer"}}}'),
    ],
)
def test_shapes_of_one_tool(definition: Any) -> None:
    spec = tp.ToolSpec.of(definition)
    assert (spec.name, spec.description, spec.schema) == ("f", "d", SCHEMA)
    assert tp.ToolSpec.of(spec.to_openai()) == spec
    assert tp.ToolSpec.of(spec.to_dict()) == spec


def test_a_tool_without_parameters() -> None:
    for definition in ({"name": "f"}, {"name": "f", "parameters": None}):
        assert tp.ToolSpec.of(definition).schema == {"type": "object", "properties": {}}


def test_type_words_of_parameter_lists() -> None:
    words = {
        "string": "string", "float64": "number", "int32": "integer", "bool": "boolean",
        "list": "array", "map": "object",
    }  # fmt: skip
    spec = tp.ToolSpec.of(
        {
            "name": "f",
            "parameters": [
                {"name": w, "type": w, "required": w == "bool", "enum": [1]} for w in words
            ],
        }
    )
    assert spec.schema == {
        "type": "object",
        "properties": {w: {"type": t, "enum": [1]} for w, t in words.items()},
        "required": ["bool"],
    }


def test_a_function() -> None:
    spec = tp.ToolSpec.of(lookup)
    assert spec.name == "lookup"
    assert spec.description.startswith("Looks up tides.")
    assert spec.schema == {
        "type": "object",
        "properties": {
            "port": {"type": "string"},
            "days": {"type": "integer", "description": "how many days", "default": 3},
            "unit": {"enum": ["m", "ft"], "default": "m"},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
            },
            "colour": {"enum": ["red", "green"]},
            "at": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        },
        "required": ["port"],
        "additionalProperties": True,
    }


@asked_of(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (list, {"type": "array"}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (set[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
            },
        ),
        (Mapping[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (dict, {"type": "object"}),
        (Point, {"type": "object"}),
        (Colour, {"enum": ["red", "green"]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    ],
)
def test_annotations(hint: Any, schema: Any) -> None:
    assert annotation_schema(hint, "f(x)") == schema


def test_an_annotation_without_schema_is_named() -> None:
    with pytest.raises(tp.errors.BadToolSpec) as caught:
        annotation_schema(bytes, "f(x)")
    assert "f(x)" in str(caught.value)


def test_models() -> None:
    spec = tp.ToolSpec.of(Port)
    assert (spec.name, spec.description) == ("Port", "A harbour.")
    value = {"name": "x", "depth": "5", "near": '[{"name": 3}]'}
    coerced = tp.coerce(value, spec.schema_json).value
    assert coerced == {"name": "x", "depth": 5, "near": [{"name": "3"}]}


def test_models_inside_a_function_keep_their_references() -> None:
    def plan(start: Port, stops: list[Port]) -> None: ...

    plan.__annotations__ = {"start": Port, "stops": list[Port], "return": None}
    arguments = '{"start": {"name": "a", "near": "[{\\"name\\": 1}]"}, "stops": "[]"}'
    raw = f'<tool_call>{{"name": "plan", "arguments": {arguments}}}</tool_call>'
    (call,) = tp.parse(raw, "hermes", [plan]).calls
    assert call.valid, call.problems
    assert call.arguments == {"start": {"name": "a", "near": [{"name": "1"}]}, "stops": []}


def test_an_agent_is_its_capabilities() -> None:
    agent = {
        "name": "harbour-agent",
        "capabilities": [
            {"name": "tide", "parameters": [{"name": "port", "type": "string", "required": True}]},
            {"name": "wind", "parameters": [{"name": "lat", "type": "float64"}]},
        ],
    }
    for tools in (agent, [agent]):
        assert [t.name for t in tool_specs(tools)] == ["tide", "wind"]
    with pytest.raises(tp.errors.BadToolSpec):
        tp.ToolSpec.of(agent)


def test_lists_mappings_and_single_definitions() -> None:
    one = {"name": "f", "parameters": SCHEMA}
    assert tool_specs(None) == ()
    for tools in (
        one,
        [one],
        (one,),
        {"f": {"parameters": SCHEMA}},
        iter([one]),
        tp.ToolSpec.of(one),
    ):
        assert [t.name for t in tool_specs(tools)] == ["f"]
    assert [t.name for t in tool_specs(lookup)] == ["lookup"]
    assert [t.name for t in tool_specs(Port)] == ["Port"]


@asked_of(
    "tools",
    [
        5,
        "f",
        [5],
        [{}],
        [{"name": ""}],
        [{"name": 5}],
        [{"name": "f", "parameters": 5}],
        [{"name": "f", "parameters": {"a": {1, 2}}}],
        [{"name": "f", "parameters": {"default": float("nan")}}],
        [{"name": "f", "parameters": [{"type": "string"}]}],
        [{"name": "f"}, {"name": "f"}],
        [lambda x: x],
    ],
)
def test_what_is_no_tool(tools: Any) -> None:
    with pytest.raises(tp.errors.BadToolSpec) as caught:
        tool_specs(tools)
    assert "got:" in str(caught.value)


# Names that are no tool's: what a server left at them is taken off, and nothing else is.


TOOLS = ["find_berth", "now", "delete", "Calendar.create"]


@every_case
def test_a_mark_of_a_format_is_taken_off(name: str) -> None:
    offered = offered_name(name, TOOLS)
    assert offered is not None
    assert (offered.name, offered.rule) == ("find_berth", "read.leaked-mark")
    assert name[offered.start :].startswith("find_berth")


@every_case
def test_any_other_name_is_left_alone(name: str) -> None:
    assert offered_name(name, TOOLS) is None


@every_case
def test_the_one_tool_near_to_a_name_is_told_and_not_called(name: str, near: str | None) -> None:
    assert near_tool(name, TOOLS) == near
    text = f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'
    (call,) = tp.parse(text, "hermes", [{"name": tool} for tool in TOOLS]).calls
    assert (call.status, call.name) == ("unknown_tool", name)
    assert call.problems[0].message.endswith(f"near to it is {near!r}" if near else "create")
