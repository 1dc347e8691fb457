"""Corrected calls as OpenTelemetry's spans, events and counters.

Without the package, and without a provider that an application has set, all of this does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ..core.toolspec import ToolSpec
from ..middleware.correction import CorrectedCall
from ..middleware.correction.call import REASONS, OnEvent

# Event -> the counter that it adds one to. The names are those of the orchestrator's dashboards, so
# that its queries answer.
_COUNTERS = {
    "type_coercion_applied": "orchestration.type_coercion.applied",
    "validation_feedback_started": "orchestration.validation_feedback.attempts",
    "validation_feedback_success": "orchestration.validation_feedback.success",
    "validation_feedback_failed": "orchestration.validation_feedback.failed",
    "layer3_rescued": "toolparse.layer3.rescued",
}
_LABELS = ("capability", "agent", "step_id", "retry_number", "reason")
_SPAN_ONLY = ("error", "coercions_count")
_NAME = "toolparse_lab"


class ToolSpan:
    """The span of one call: `on_event` goes to `run_call`, `end` takes its outcome."""

    def __init__(self, span: Any, module: str, aliases: bool) -> None:
        self._span = span
        self._module = module
        self._aliases = aliases

    def on_event(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Add an event of the span, and count it."""
        counter = _COUNTERS.get(name)
        if self._span is None or counter is None:
            return
        labels = {k: attributes[k] for k in _LABELS if k in attributes}
        # A counter has one series for each value of a label: words of an error must never be one.
        if "reason" in labels and labels["reason"] not in REASONS:
            labels["reason"] = "other"
        more = {k: attributes[k] for k in _SPAN_ONLY if k in attributes}
        self._span.add_event(name, {**labels, **more})
        if name == "validation_feedback_started":
            self._span.set_attribute("orchestration.type_error", True)
        counters = [counter]
        if self._aliases and counter.startswith("orchestration."):
            counters.append(counter.replace("orchestration.", "orchestrator.", 1))
        for one in counters:
            from opentelemetry import metrics

            # Asked for each time: an application sets its provider any time.
            meter = metrics.get_meter(_NAME)
            _counter(meter, one).add(1, {**labels, "module": self._module})

    def end(self, call: CorrectedCall) -> None:
        """Say on the span how the call ended."""
        if self._span is None:
            return
        self._span.set_attribute("toolparse.stop", call.stop)
        self._span.set_attribute("toolparse.attempts", call.attempts)
        self._span.set_attribute("toolparse.tool_calls", call.tool_calls)
        self._span.set_attribute("toolparse.model_calls", call.model_calls)
        if not call.ok:
            from opentelemetry.trace import Status, StatusCode  # an extra

            self._span.set_attribute("error.type", call.stop)
            self._span.set_status(Status(StatusCode.ERROR, call.error[:300]))


@contextmanager
def tool_span(
    name: str, *, call_id: str | None = None, module: str = "orchestration", aliases: bool = False
) -> Iterator[ToolSpan]:
    """Yield a span `execute_tool NAME` around one call.

    call_id: of the call, as the provider or the text has it. module: the label of the counters.
    aliases: count under the orchestrator's older names as well.
    """
    try:
        from opentelemetry import trace
    except ImportError:
        yield ToolSpan(None, module, aliases)
        return
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if call_id is not None:
        attributes["gen_ai.tool.call.id"] = call_id
    tracer = trace.get_tracer(_NAME)
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
        yield ToolSpan(span, module, aliases)


def traced(
    run: Callable[..., CorrectedCall],
    tool: Any,
    arguments: Mapping[str, Any],
    *rest: Any,
    call_id: str | None = None,
    aliases: bool = False,
    on_event: OnEvent | None = None,
    **options: Any,
) -> CorrectedCall:
    """`run(tool, arguments, …)` in a span: `traced(run_call, tool, arguments, function)`.

    call_id, aliases: see `tool_span`. on_event: is told of everything as well.
    """
    spec = ToolSpec.of(tool)
    with tool_span(spec.name, call_id=call_id, aliases=aliases) as span:

        def both(name: str, attributes: Mapping[str, Any]) -> None:
            span.on_event(name, attributes)
            if on_event is not None:
                on_event(name, attributes)

        call = run(spec, arguments, *rest, on_event=both, **options)
        span.end(call)
    return call


@lru_cache(maxsize=64)
def _counter(meter: Any, name: str) -> Any:
    return meter.create_counter(name)
