"""Examples: plausible by the schema, deterministic, and never the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import toolparse_lab as tp
from tests.tables import asked_of, each_case
from tests.tools import object_schema
from toolparse_lab.core.toolspec import ToolSpec, tool_specs
from toolparse_lab.core.values import leaves
from toolparse_lab.formats.prompt.shots import FIXED_SHOTS, Shot, example_arguments, make_shots

CASES = Path(__file__).parents[2] / "datasets" / "cases.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
TOOLS = {(t.name, t.schema_json): t for row in ROWS for t in tool_specs(row["tools"])}


def tool(
    properties: dict[str, Any], *required: str, name: str = "f", description: str = ""
) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required or properties)}
    return ToolSpec.of({"name": name, "description": description, "parameters": schema})


@asked_of("spec", TOOLS.values(), ids=lambda t: t.name)
def test_examples_satisfy_the_schemas_of_the_cases(spec: ToolSpec) -> None:
    validator = Draft202012Validator(
        spec.schema, format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    for variant in range(6):
        arguments = example_arguments(spec, variant)
        if arguments is not None:
            assert not [e.message for e in validator.iter_errors(arguments)], arguments
    assert example_arguments(spec, 1) == example_arguments(spec, 1)


@each_case
def test_values_by_schema(schema: dict[str, Any], first: Any, second: Any) -> None:
    spec = tool({"x": schema, "other": {"type": "string"}}, "x")
    assert [example_arguments(spec, v) for v in (0, 1)] == [{"x": first}, {"x": second}]


@each_case
def test_values_by_name(name: str, value: str) -> None:
    assert example_arguments(tool({name: {"type": "string"}})) == {name: value}


def test_only_what_is_required_or_the_first() -> None:
    two = {"a": {"type": "integer"}, "b": {"type": "integer"}}
    assert example_arguments(tool(two, "b")) == {"b": 7}
    assert example_arguments(ToolSpec.of({"name": "f", "parameters": {"properties": two}})) == {
        "a": 7
    }
    assert example_arguments(ToolSpec("f")) == {}
    assert example_arguments(tool(two)) == {"a": 7, "b": 26}


@pytest.mark.parametrize("pattern", ["^Q{40}$", "(?<bad"])
def test_no_value_for_a_pattern(pattern: str) -> None:
    spec = tool({"x": {"type": "string", "pattern": pattern}})
    assert example_arguments(spec) is None
    assert not make_shots([spec], 1)[0].own


def test_recursive_schema_ends() -> None:
    loop = {"$ref": "#/$defs/n"}
    node = object_schema(required=["all"], next=loop, all={"type": "array", "items": loop})
    spec = ToolSpec.of({"name": "f", "parameters": {**node, "$defs": {"n": node}}})
    assert json.dumps(example_arguments(spec)).count("all") <= 4


def test_tools_take_turns() -> None:
    specs = [tool({"city": {"type": "string"}}, name=n) for n in ("a", "b")]
    assert [s.name for s in make_shots(specs, 5)] == ["a", "b", "a", "b", "a"]
    assert len({s.arguments_json for s in make_shots(specs[:1], 4)}) == 4
    assert make_shots([], 3) == ()
    assert make_shots(specs, 0) == ()


def test_request_says_the_values() -> None:
    spec = tool(
        {"city": {"type": "string"}, "days": {"type": "integer"}}, description="Get it. Slowly."
    )
    assert make_shots([spec], 1)[0] == Shot(
        "Get it: city Lisbon, days 26", "f", '{"city":"Lisbon","days":26}'
    )


@each_case
def test_leaks(properties: dict[str, Any], text: str, target: list[int] | None, own: bool) -> None:
    wanted = [{"name": "f", "arguments": {"n": {"$any": target}}}] if target else None
    (shot,) = make_shots([tool(properties)], 1, text=text, target=wanted)
    assert shot.own is own
    assert all(str(n) not in shot.arguments_json for n in target or () if own)


def test_no_parameters_no_own_example() -> None:
    assert not make_shots([ToolSpec("lock_all")], 1)[0].own


def test_fixed_examples_avoid_names_and_words_of_the_case() -> None:
    specs = [ToolSpec(FIXED_SHOTS[0].name), ToolSpec("lock_all")]
    shots = make_shots(specs, 3, text="Is it far from Bergen?")
    names = [s.name for s in shots]
    assert len(set(names)) == 3
    assert not {"set_alarm", "measure_distance", "lock_all"}.intersection(names)


@asked_of("row", [r for r in ROWS if r["target"]], ids=lambda r: r["id"])
def test_no_case_is_given_away(row: dict[str, Any]) -> None:
    text = (
        row["input"]
        if isinstance(row["input"], str)
        else json.dumps(row["input"], ensure_ascii=False)
    )
    shots = make_shots(tool_specs(row["tools"]), 2, text=text)
    wanted = {v for _, v in leaves(row["target"]) if isinstance(v, str) and not v.startswith("$")}
    listed = {v for t in row["tools"] for _, v in leaves(t["parameters"]) if isinstance(v, str)}
    for shot in shots:
        assert not {v for _, v in leaves(json.loads(shot.arguments_json)) if isinstance(v, str)} & (
            wanted - listed
        )
        assert {"name": shot.name, "arguments": json.loads(shot.arguments_json)} not in row[
            "target"
        ]


# Examples of a tool's input: read from a definition, and shown in the prompt as calls.


SCHEMA = object_schema(required=["city"], city="string", days="integer")
OSLO = '{"city":"Oslo","days":2}'
EXAMPLES: list[dict[str, Any]] = [
    {"input": {"city": "Oslo", "days": 2}},
    {"input": {"city": "Rome"}},
]
WEATHER = {"name": "get_weather", "inputSchema": SCHEMA, "inputExamples": EXAMPLES}


@each_case
def test_every_shape_of_a_definition_keeps_its_examples(definition: Mapping[str, Any]) -> None:
    tool = tp.ToolSpec.of(definition)
    assert tool.examples[0] == OSLO
    assert tp.ToolSpec.of(tool.to_dict()) == tool
    assert "inputExamples" not in tool.to_openai()["function"]


@asked_of("protocol", tp.protocols())
def test_a_prompt_shows_each_example_as_the_format_writes_a_call(protocol: str) -> None:
    middleware = tp.create_tool_middleware(protocol)
    params = {"messages": [{"role": "user", "content": "Hi"}], "tools": [WEATHER]}
    prompt = middleware.transform_params(params).params["messages"][0]["content"]
    tool = tp.ToolSpec.of(WEATHER)
    _, _, examples = prompt.partition("# Input examples\n\n")
    written = tp.protocols()[protocol]
    calls = [written.write_call("get_weather", text, tool) for text in tool.examples]
    assert examples == "\n\n".join(calls)


@pytest.mark.parametrize(
    ("example", "why"),
    [
        ({"input": {"days": 2}}, "missing: city"),
        ({"input": {"city": 5}}, "expected string, got integer 5"),
        (7, "an example is an object"),
        ({"input": {"city": {1}}}, "an example is an object"),
        # No element has such a name.
        ({"input": {"city": "Oslo", "in days": 2}}, "cannot be an element's"),
    ],
)
def test_an_example_that_does_not_fit_is_left_out_and_told(example: Any, why: str) -> None:
    told: list[Mapping[str, Any]] = []
    middleware = tp.create_tool_middleware("morph_xml", on_error=lambda _, data: told.append(data))
    params = {"messages": [], "tools": [{**WEATHER, "inputExamples": [example, EXAMPLES[0]]}]}
    for _ in range(2):  # each request is told, although its tools are remembered
        prompt = middleware.transform_params(params).params["messages"][0]["content"]
        assert prompt.partition("# Input examples\n\n")[2] == (
            "<get_weather><city>Oslo</city><days>2</days></get_weather>"
        )
    assert len(told) == 2
    assert told[0]["toolName"] == "get_weather"
    assert why in told[0]["message"]


def test_a_template_of_ones_own_gets_the_examples() -> None:
    middleware = tp.create_tool_middleware("hermes", tool_system_prompt_template=lambda json: json)
    params = {"messages": [], "tools": [WEATHER]}
    prompt = middleware.transform_params(params).params["messages"][0]["content"]
    assert tp.ToolSpec.of(tp.rjson.parse(prompt)[0]) == tp.ToolSpec.of(WEATHER)
