"""The trace of one corrected call, as OpenTelemetry's own exporter writes it, for a page."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolparse_lab.integrations.telemetry import traced
from toolparse_lab.middleware.correction import run_call

TOOL = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"lat": {"type": "number"}, "days": {"type": "integer"}},
    },
}
# Where a run differs from the next: clocks, random ids, and the installed version.
_OTHERWISE = ("trace_id", "span_id", "start_time", "end_time", "timestamp")


def trace_parts() -> dict[str, str]:
    """The part `trace`: a call that is coerced, refused, corrected and taken."""
    return {"trace": "\n".join(["```json", _trace_json(), "```"])}


def _trace_json() -> str:
    """The span of the call as JSON, what no two runs share replaced by dots."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with (
        mock.patch.object(trace, "get_tracer", provider.get_tracer),
        mock.patch.object(metrics, "get_meter", MeterProvider([]).get_meter),
    ):
        arguments = {"lat": "north", "days": "3"}
        correct = lambda context: {"lat": 59.91}  # noqa: E731 - it stands for a model
        traced(
            run_call, TOOL, arguments, _weather, correct=correct, call_id="call_7", step_id="what"
        )
    (span,) = exporter.get_finished_spans()
    document = json.loads(span.to_json())
    document.pop("resource")
    return json.dumps(_dotted(document), indent=2, ensure_ascii=False)


def _weather(lat: Any, days: int) -> str:
    """A tool that speaks as Go's JSON reader does."""
    if isinstance(lat, str):
        raise ValueError("json: cannot unmarshal string into Go struct field W.lat of type float64")
    return f"{days} days at {lat}"


def _dotted(value: Any) -> Any:
    """A JSON value with dots for what no two runs share."""
    if isinstance(value, dict):
        return {k: "…" if k in _OTHERWISE else _dotted(v) for k, v in value.items()}
    return [_dotted(one) for one in value] if isinstance(value, list) else value
