"""The tests that the type-safety design of a Go orchestrator lists, by their names there.

`TestCoerceValue` has 18 cases, `TestCoerceParameterTypes` 8, `TestFindCapabilitySchema` 4,
`TestIsTypeRelatedError` 14; the others are one each.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.middleware.tool_server import ToolServer
from tests.tables import each_case
from toolparse_lab.arguments.schema import coerce
from toolparse_lab.arguments.schema.go import go_log_line
from toolparse_lab.core.values import same
from toolparse_lab.middleware.correction import (
    DETECTORS,
    CorrectionContext,
    Feedback,
    HttpTool,
    Refused,
    ToolFailure,
    agent_tool,
    run_call,
)

AGENT = {
    "name": "weather-tool",
    "capabilities": [
        {"name": "forecast", "parameters": [{"name": "days", "type": "int"}]},
        {
            "name": "get_weather",
            "parameters": [
                {"name": "lat", "type": "float64", "required": True},
                {"name": "days", "type": "int"},
            ],
        },
    ],
}


@each_case
def test_coerce_value(value: Any, type_name: str, wanted: Any) -> None:
    schema = [{"name": "p", "type": type_name}]
    new = coerce({"p": value}, schema, "go-strconv").value
    assert same(new, {"p": wanted})
    assert type(new["p"]) is bool or not isinstance(wanted, bool)


@each_case
def test_coerce_parameter_types(given: Any, wanted: Any, log: list[str]) -> None:
    schema = [
        {"name": "lat", "type": "float64"},
        {"name": "lon", "type": "float64"},
        {"name": "count", "type": "integer"},
        {"name": "enabled", "type": "boolean"},
        {"name": "name", "type": "string"},
    ]
    coerced = coerce(given, schema, "go-strconv")
    assert same(coerced.value, wanted)
    assert [go_log_line(step) for step in coerced.steps] == log
    # An empty schema changes nothing.
    assert coerce(given, [], "go-strconv").steps == ()


@each_case
def test_agent_tool(agent: Any, capability: str, name: str | None) -> None:
    tool = agent_tool(agent, capability)
    assert (tool.name if tool else None) == name
    if tool:
        assert tool.schema["properties"]["lat"] == {"type": "number"}
        assert tool.schema["required"] == ["lat"]


def test_field_hints_are_parameters() -> None:
    hinted = {
        "name": "f",
        "input_summary": {
            "required": [{"name": "lat", "type": "float64", "example": "35.6"}],
            "optional": [{"name": "days", "type": "int"}],
        },
    }
    tool = agent_tool({"capabilities": [hinted]}, "f")
    assert tool is not None
    assert {k: v["type"] for k, v in tool.schema["properties"].items()} == {
        "lat": "number",
        "days": "integer",
    }
    assert tool.schema["required"] == ["lat"]


@pytest.fixture
def server() -> Any:
    with ToolServer() as running:
        yield running


def test_smart_executor_type_coercion_integration(server: ToolServer) -> None:
    tool = agent_tool(AGENT, "get_weather")
    call = run_call(
        tool,
        {"lat": "35.6897", "days": "3"},
        HttpTool(f"{server.url}/go", go_orchestrator=True),
        feedback=Feedback.preset("go-orchestrator"),
    )
    assert call.ok
    assert server.bodies == [{"lat": 35.6897, "days": 3}]
    assert call.tool_calls == 1


@each_case
def test_is_type_related_error(error: str, body: str, is_type_related: bool) -> None:
    detector = DETECTORS["go-phrases"]
    assert bool(detector(Refused(ToolFailure(error, body), {}))) == is_type_related


def corrected(context: CorrectionContext) -> dict[str, Any]:
    return {"lat": 35.6897, "lon": 139.69}


WEATHER = {
    "name": "get_weather",
    "parameters": [{"name": "lat", "type": "float64"}, {"name": "lon", "type": "float64"}],
}


class TypedTool:
    """Fails with a type error while lat is a text."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, lat: Any, lon: Any = None) -> str:
        self.calls += 1
        if isinstance(lat, str):
            raise ValueError(
                "json: cannot unmarshal string into Go struct field .lat of type float64"
            )
        return "ok"


def test_smart_executor_validation_feedback() -> None:
    tool = TypedTool()
    call = run_call(
        WEATHER,
        {"lat": "north"},
        tool,
        correct=corrected,
        feedback=Feedback.preset("go-orchestrator"),
    )
    assert call.ok
    assert tool.calls == 2
    assert (call.attempts, call.model_calls, call.pauses) == (1, 1, ())


def test_smart_executor_validation_feedback_disabled() -> None:
    tool = TypedTool()
    pauses: list[float] = []
    call = run_call(
        WEATHER,
        {"lat": "north"},
        tool,
        correct=corrected,
        feedback=Feedback.preset("go-orchestrator", enabled=False),
        sleep=pauses.append,
    )
    assert not call.ok
    assert (tool.calls, call.model_calls, pauses) == (3, 0, [1.0, 2.0])
