"""What the three layers add to a call with which nothing is wrong: microseconds of processor time.

Run with `python benchmarks/layers.py [calls]`. The tool is a function that does nothing. Blocks of
all ways alternate, and what counts is the median over blocks: a shared machine changes its speed
from one second to the next. A model answers in seconds, so the claim to check is that latency
without errors stays what it was.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent))

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.integrations import telemetry
from toolparse_lab.middleware.correction import Feedback, run_call

TOOL = ToolSpec.of(
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "lat": {"type": "number"},
                "days": {"type": "integer", "minimum": 1},
                "units": {"enum": ["metric", "imperial"]},
            },
            "required": ["city"],
        },
    }
)
CALL = {"city": "Oslo", "lat": 59.91, "days": 3, "units": "metric"}
BLOCKS = 25


def get_weather(**arguments: Any) -> str:
    return "sunny"


def correct(context: Any) -> Any:
    raise AssertionError("nothing is wrong with this call")


def one_call(policy: Any, *, enabled: bool = True, traced: bool = False) -> Callable[[], Any]:
    """A way to make the call."""
    feedback = Feedback(policy=policy, enabled=enabled)
    if traced:
        return lambda: telemetry.traced(
            run_call, TOOL, CALL, get_weather, correct=correct, feedback=feedback
        )
    return lambda: run_call(TOOL, CALL, get_weather, correct=correct, feedback=feedback)


def per_call(way: Callable[[], Any], calls: int) -> float:
    """Microseconds of processor time a call."""
    begin = time.process_time()
    for _ in range(calls):
        way()
    return (time.process_time() - begin) / calls * 1e6


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    meter = MeterProvider([])

    traced = one_call("safe", traced=True)
    no_package = mock.patch.object(telemetry, "_tracer", return_value=None)
    recorded = mock.patch.multiple(trace, get_tracer=provider.get_tracer)
    counted = mock.patch.multiple(metrics, get_meter=meter.get_meter)
    ways: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
        "the function alone": (lambda: get_weather(**CALL), ()),
        "run_call, no coercion, no correction": (one_call("none", enabled=False), ()),
        "run_call, coercion (safe)": (one_call("safe", enabled=False), ()),
        "run_call, coercion and correction": (one_call("safe"), ()),
        "the same, traced, OpenTelemetry not installed": (traced, (no_package,)),
        "the same, traced, no provider set": (traced, ()),
        "the same, traced, spans recorded": (traced, (recorded, counted)),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(BLOCKS):
        for name, (way, patches) in ways.items():
            with ExitStack() as stack:
                for patch in patches:
                    stack.enter_context(patch)
                times[name].append(per_call(way, calls))
        exporter.clear()
    print(f"{BLOCKS} blocks of {calls} calls, median microseconds of processor time a call:")
    for name, blocks in times.items():
        print(f"{statistics.median(blocks):8.1f}  {name}")


if __name__ == "__main__":
    main()
