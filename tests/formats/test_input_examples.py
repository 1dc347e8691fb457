"""Examples of a tool's input: read from a definition, and shown in the prompt as calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from tests.tools import object_schema

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


@pytest.mark.parametrize("protocol", tp.protocols())
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
