"""The tests that the type-safety design of a Go orchestrator lists, by their names there.

`TestCoerceValue` has 18 cases, `TestCoerceParameterTypes` 8, `TestFindCapabilitySchema` 4,
`TestIsTypeRelatedError` 14; the others are one each.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.middleware.tool_server import ToolServer
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


@pytest.mark.parametrize(
    ("value", "type_name", "wanted"),
    [
        ("35.6897", "number", 35.6897),
        ("35.6897", "float64", 35.6897),
        ("-139.5", "float", -139.5),
        ("1e3", "double", 1000),
        ("not-a-number", "float64", "not-a-number"),
        ("", "number", ""),
        ("42", "integer", 42),
        ("-7", "int", -7),
        ("9223372036854775807", "int64", 9223372036854775807),
        ("12", "int32", 12),
        ("42.0", "integer", "42.0"),
        ("true", "boolean", True),
        ("0", "bool", False),
        ("yes", "boolean", "yes"),
        ("Tokyo", "string", "Tokyo"),
        (35.6897, "float64", 35.6897),
        (None, "integer", None),
        ("x", "unknown", "x"),
    ],
)
def test_coerce_value(value: Any, type_name: str, wanted: Any) -> None:
    schema = [{"name": "p", "type": type_name}]
    new = coerce({"p": value}, schema, "go-strconv").value
    assert same(new, {"p": wanted})
    assert type(new["p"]) is bool or not isinstance(wanted, bool)


@pytest.mark.parametrize(
    ("given", "wanted", "log"),
    [
        (
            {"lat": "35.6897", "lon": "139.6917"},
            {"lat": 35.6897, "lon": 139.6917},
            [
                "lat: string(35.6897) -> float64(35.6897)",
                "lon: string(139.6917) -> float64(139.6917)",
            ],
        ),
        ({"count": "42"}, {"count": 42}, ["count: string(42) -> int64(42)"]),
        ({"enabled": "true"}, {"enabled": True}, ["enabled: string(true) -> bool(true)"]),
        (
            {"lat": 48.8566, "count": 10, "enabled": False},
            {"lat": 48.8566, "count": 10, "enabled": False},
            [],
        ),
        ({"lat": "not-a-number"}, {"lat": "not-a-number"}, []),
        ({"name": "42"}, {"name": "42"}, []),
        ({"other": "42"}, {"other": "42"}, []),
        ({}, {}, []),
    ],
    ids=[
        "string numbers to float64",
        "string to integer",
        "string to boolean",
        "already correct types unchanged",
        "invalid coercion returns original",
        "strings stay strings",
        "unknown keys are kept",
        "nil parameters",
    ],
)
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


@pytest.mark.parametrize(
    ("agent", "capability", "name"),
    [
        (AGENT, "get_weather", "get_weather"),
        (AGENT, "no_such_capability", None),
        (None, "get_weather", None),
        ({"name": "empty", "capabilities": []}, "get_weather", None),
    ],
    ids=["found", "not found", "nil agent", "no capabilities"],
)
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


@pytest.mark.parametrize(
    ("error", "body", "is_type_related"),
    [
        ("json: cannot unmarshal string into Go struct field .lat of type float64", "", True),
        ("cannot unmarshal number into Go value of type string", "", True),
        ("json: cannot unmarshal array into Go value of type T", "", True),
        ("type mismatch for field lat", "", True),
        ("invalid type: string", "", True),
        ("expected number, got string", "", True),
        ("expected string", "", True),
        ("expected boolean", "", True),
        ("invalid value for days", "", True),
        ("agent returned status 400", '{"error": "Cannot Unmarshal String Into Go value"}', True),
        ("EXPECTED NUMBER", "", True),
        ("connection refused", "", False),
        ("agent returned status 503", "service unavailable", False),
        ("", "", False),
    ],
)
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
