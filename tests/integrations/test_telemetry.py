"""Spans, events and counters of corrected calls, read back by OpenTelemetry's own SDK; log records."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolparse_lab.integrations.telemetry import tool_span, traced
from toolparse_lab.middleware.correction import Feedback, run_call

TOOL = {
    "name": "get_weather",
    "parameters": [{"name": "lat", "type": "number"}, {"name": "days", "type": "integer"}],
}
WRONG = {"lat": "north", "days": "3"}


def run(lat: Any, days: Any = None) -> str:
    if isinstance(lat, float):
        return "sunny"
    raise ValueError("cannot unmarshal string into Go struct field W.lat of type float64")


@pytest.fixture
def sdk(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[InMemorySpanExporter, InMemoryMetricReader]]:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    metering = MeterProvider([reader])
    # A provider can be set once in a process; tests want one each.
    monkeypatch.setattr(trace, "get_tracer", tracing.get_tracer)
    monkeypatch.setattr(metrics, "get_meter", metering.get_meter)
    yield exporter, reader
    tracing.shutdown()
    metering.shutdown()


def counts(reader: InMemoryMetricReader) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    data = reader.get_metrics_data()
    if data is None:
        return {}
    metrics_read: list[Any] = [
        metric
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    ]
    return {
        metric.name: [(p.value, dict(p.attributes)) for p in metric.data.data_points]
        for metric in metrics_read
    }


def test_a_rescued_call_has_a_span_with_events_and_counters(sdk: Any) -> None:
    exporter, reader = sdk
    call = traced(
        run_call,
        TOOL,
        WRONG,
        run,
        correct=lambda context: {"lat": 59.9},
        call_id="call_7",
        step_id="s1",
        agent="weather-tool",
    )
    assert call.rescued
    (span,) = exporter.get_finished_spans()
    assert span.name == "execute_tool get_weather"
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "call_7",
        "orchestration.type_error": True,
        "toolparse.stop": "accepted",
        "toolparse.attempts": 1,
        "toolparse.tool_calls": 2,
        "toolparse.model_calls": 1,
    }
    assert [event.name for event in span.events] == [
        "type_coercion_applied",
        "validation_feedback_started",
        "validation_feedback_success",
        "layer3_rescued",
    ]
    where = {"capability": "get_weather", "step_id": "s1", "agent": "weather-tool"}
    assert dict(span.events[0].attributes) == {**where, "coercions_count": 1}
    labels = {**where, "retry_number": 1, "module": "orchestration"}
    assert counts(reader) == {
        "orchestration.type_coercion.applied": [(1, {**where, "module": "orchestration"})],
        "orchestration.validation_feedback.attempts": [(1, labels)],
        "orchestration.validation_feedback.success": [(1, labels)],
        "toolparse.layer3.rescued": [(1, labels)],
    }


def test_a_failed_call_says_why_and_the_older_names_count_too(sdk: Any) -> None:
    exporter, reader = sdk
    call = traced(
        run_call,
        TOOL,
        WRONG,
        run,
        correct=lambda context: {"lat": "south"},
        feedback=Feedback.preset("go-orchestrator", max_validation_retries=1, max_attempts=1),
        aliases=True,
    )
    assert not call.ok
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.attributes["error.type"] == "attempts_used_up"
    failed = counts(reader)
    for prefix in ("orchestration", "orchestrator"):
        ((value, labels),) = failed[f"{prefix}.validation_feedback.failed"]
        assert (value, labels["reason"]) == (1, "max_retries_exceeded")
    assert "toolparse.layer3.rescued" not in failed


@pytest.mark.parametrize(
    ("correct", "code", "words"),
    [
        (None, "no_corrector", "nobody can be asked"),
        (lambda context: "no arguments", "unusable_correction", "no arguments came"),
        (lambda context: os.environ["KEY-4711"], "corrector_error", "'KEY-4711'"),
    ],
)
def test_the_label_reason_is_a_code_and_never_the_words_of_an_error(
    sdk: Any, correct: Any, code: str, words: str
) -> None:
    exporter, reader = sdk
    once = Feedback(max_validation_retries=1, max_attempts=1)
    call = traced(run_call, TOOL, WRONG, run, correct=correct, feedback=once)
    assert [correction.reason for correction in call.corrections] == [words]
    (span,) = exporter.get_finished_spans()
    ((_, labels),) = counts(reader)["orchestration.validation_feedback.failed"]
    assert labels["reason"] == code
    assert "error" not in labels
    failed = next(e for e in span.events if e.name == "validation_feedback_failed")
    assert (failed.attributes["reason"], failed.attributes["error"]) == (code, words)


def test_a_reason_of_somebody_else_s_event_is_other(sdk: Any) -> None:
    _, reader = sdk
    with tool_span("f") as span:
        span.on_event("validation_feedback_failed", {"reason": "ValueError: KEY-4711"})
    ((_, labels),) = counts(reader)["orchestration.validation_feedback.failed"]
    assert labels["reason"] == "other"


def test_without_the_package_nothing_happens_and_nothing_is_loaded() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from toolparse_lab.middleware.correction import run_call\n"
        "from toolparse_lab.integrations.telemetry import traced\n"
        "tool = {'name': 'f', 'parameters': [{'name': 'n', 'type': 'int'}]}\n"
        "print(traced(run_call, tool, {'n': '7'}, lambda n: n + 1).value)\n"
        "print([m for m in sys.modules if m.startswith('opentelemetry.')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["8", "[]"]


def test_log_records_have_the_seed_s_messages_levels_and_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "toolparse_lab.type_safety")
    run_call(
        TOOL,
        WRONG,
        run,
        correct=lambda context: {"lat": "59.9"},
        feedback=Feedback.preset("go-orchestrator"),
        step_id="s1",
    )
    details: list[dict[str, Any]] = [r.toolparse for r in caplog.records]  # type: ignore[attr-defined]  # an extra
    assert [
        (r.levelname, d["operation"]) for r, d in zip(caplog.records, details, strict=True)
    ] == [
        ("DEBUG", "type_coercion"),
        ("INFO", "validation_feedback"),
        ("DEBUG", "type_coercion"),
        ("DEBUG", "validation_feedback_success"),
    ]
    assert details[0]["coercions"] == ["days: string(3) -> int64(3)"]
    assert details[0]["changes"] == [
        {
            "operation": "type_coercion",
            "step_id": "s1",
            "capability": "get_weather",
            "path": "/days",
            "from": "3",
            "to": 3,
            "rule": "coerce.go-parse-int",
        }
    ]
    assert (details[1]["validation_retry"], details[1]["step_id"]) == (1, "s1")
    assert "lat of type float64" in details[1]["error"]
    assert details[3]["new_params"] == {"lat": 59.9}
