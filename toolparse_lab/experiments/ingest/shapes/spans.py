"""Spans: OpenTelemetry, OTLP, OpenInference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....entry.capture.shapes import parts_in
from ..sources import is_response
from .attributes import at, attributes_of, items_of, pick, value_of
from .parts import (
    PARAMS,
    Message,
    answer_of,
    asked_message,
    asked_of,
    conversation_of,
    failed,
    first,
    message_of,
    models_of,
    number_of,
    of_request,
    question_of,
    request_of,
    text_of,
    time_cells,
    token_cells,
    with_system,
)
from .shape import OUTER, Cells, Damaged, Log, Row, shape

_GENAI_KEYS = {
    "response": "gen_ai.output.messages",
    "messages": "gen_ai.input.messages",
    "tools": "gen_ai.tool.definitions",
    "model": "gen_ai.request.model, gen_ai.response.model",
    "prompt_tokens": "gen_ai.usage.input_tokens",
    "completion_tokens": "gen_ai.usage.output_tokens",
}
_OTLP_LISTS = (
    ("resourceSpans", "scopeSpans", "spans"),
    ("resourceSpans", "instrumentationLibrarySpans", "spans"),
    ("resourceLogs", "scopeLogs", "logRecords"),
)


@shape(
    "otlp",
    (
        "resourceSpans",
        "resourceLogs",
    ),
    "OTLP as JSON: spans or log records",
    {**_GENAI_KEYS, "response": "resourceSpans.scopeSpans.spans.attributes"},
    "as of the convention inside: otel, or openinference",
    lambda row: isinstance(row.get("resourceSpans") or row.get("resourceLogs"), list),
)
def otlp(row: Row, log: Log) -> Iterator[Cells]:
    for outer, scopes, leaves in _OTLP_LISTS:
        for resource in items_of(row.get(outer)):
            for scope in items_of(at(resource, scopes)):
                for span in items_of(at(scope, leaves)):
                    if isinstance(span, Mapping):
                        yield from _span(span, log)


def _span(span: Row, log: Log) -> Iterator[Cells]:
    attributes = attributes_of(span)
    said = at(attributes, "ai")
    if (at(said, "response") or at(said, "prompt")) and at(attributes, "gen_ai", "output") is None:
        return _sdk_span(span, attributes, log)
    if "gen_ai" not in attributes and attributes.keys() & {"llm", "openinference"}:
        return _inference(span, attributes, log)
    return _genai(span, attributes, log)


def _is_span(row: Row, roots: tuple[str, ...]) -> bool:
    if any(str(name).startswith(roots) for name in row):
        return True
    attributes = row.get("attributes")
    if isinstance(attributes, str):
        attributes = value_of(attributes)
    if isinstance(attributes, Mapping):
        return any(str(name).startswith(roots) or f"{name}." in roots for name in attributes)
    if isinstance(attributes, list):
        return any(str(at(one, "key")).startswith(roots) for one in attributes)
    return False


@shape(
    "openinference",
    ("attributes", "llm.", "openinference.", "attributes.llm.", "attributes.openinference.",),
    "OpenInference spans: Phoenix, Arize, and their frames",
    {
        "response": "llm.output_messages, output.value",
        "messages": "llm.input_messages, input.value",
        "tools": "llm.tools",
        "model": "llm.model_name",
        "prompt_tokens": "llm.token_count.prompt",
        "completion_tokens": "llm.token_count.completion",
        "cost": "llm.cost.total",
    },
    "chunks, special tokens, what a masking setting hid",
    lambda row: _is_span(
        row,
        (
            "llm.", "openinference.", "attributes.llm.", "attributes.openinference.",
        ),
    )
    and not _is_span(row, ("gen_ai.", "attributes.gen_ai.")),
)  # fmt: skip
def openinference(row: Row, log: Log) -> Iterator[Cells]:
    return _inference(row, attributes_of(row), log)


def _inference(span: Row, attributes: Row, log: Log) -> Iterator[Cells]:
    llm = at(attributes, "llm")
    kind = first(at(attributes, "openinference", "span", "kind"), span.get("span_kind"))
    if isinstance(kind, str) and kind.upper() not in ("LLM", "UNKNOWN", "INTERNAL"):
        log.leave_out(f"{kind.upper()} spans", "they are no answer of a model")
        return
    sent = value_of(at(attributes, "input", "value"))
    body = sent if isinstance(sent, Mapping) else {}
    whole = value_of(at(attributes, "output", "value"))
    written = [at(item, "message") or item for item in items_of(at(llm, "output_messages"))]
    if is_response(whole):
        answer: Cells = {"response": whole}
    elif written:
        reason = at(llm, "finish_reason")
        messages = [_openinference_message(x) for x in written]
        messages[-1].or_unread(None if isinstance(whole, str) else whole)
        answer = answer_of(messages, [reason] * len(written))
    elif isinstance(whole, str) and whole:
        answer = Message(whole).cells()
    elif (error := _error_of_span(span)) is not None:
        answer = error
    else:
        log.leave_out("spans without an answer", "their contents were not recorded")
        return
    tools = [
        value_of(at(tool, "tool", "json_schema") or at(tool, "json_schema"))
        for tool in items_of(at(llm, "tools"))
    ]
    asked = []
    for item in items_of(at(llm, "input_messages")):
        x = at(item, "message") or item
        made = _openinference_message(x)
        asked.append(asked_message(at(x, "role"), made.text, made, x))
    params = value_of(at(llm, "invocation_parameters"))
    params = params if isinstance(params, Mapping) else body
    yield {
        **answer,
        **(question_of(asked or body.get("messages") or (None if body else sent))),
        "request": request_of(
            tools or params.get("tools") or body.get("tools"),
            {k: params[k] for k in PARAMS if k in params},
        ),
        "model": first(at(llm, "model_name"), body.get("model")),
        **token_cells(at(llm, "token_count")),
        "cost": number_of(at(llm, "cost", "total")),
        **_of_span(span, at(attributes, "session", "id")),
    }


def _openinference_message(x: Any) -> Message:
    parts = [at(part, "message_content", "text") for part in items_of(at(x, "contents"))]
    made = Message(first(text_of(at(x, "content")), "".join(filter(None, parts)) or None))
    made.take_calls(at(x, "tool_calls"))
    if isinstance(x, Mapping) and None not in parts:
        x = {name: value for name, value in x.items() if name != "contents"}
    return made.or_unread(x)


@shape(
    "otel",
    (
        "attributes",
        "gen_ai.",
        "attributes.gen_ai.",
        "traceloop.",
    ),
    "OpenTelemetry's gen_ai spans and events",
    _GENAI_KEYS,
    "wire text and chunks, cost; contents and tools where the instrumentation was not told to "
    "write them",
    lambda row: _is_span(row, ("gen_ai.", "attributes.gen_ai.", "traceloop.")),
)
def otel(row: Row, log: Log) -> Iterator[Cells]:
    return _genai(row, attributes_of(row), log)


def _genai(span: Row, attributes: Row, log: Log) -> Iterator[Cells]:
    genai: Cells = dict(at(attributes, "gen_ai") or {})
    # The contents stand on the span, or on its events.
    chosen, said = [], []
    for event in (*items_of(span.get("events")), *items_of(at(attributes, "events"))):
        name = str(pick(event, "name", "event_name") or at(event, "event.name") or "")
        of_event = attributes_of(event) if isinstance(event, Mapping) else {}
        body = value_of(at(event, "body")) or of_event or event
        if name == "gen_ai.choice":
            chosen.append(body)
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            said.append({"role": name.split(".")[1], **body})
        inner = at(of_event, "gen_ai")
        for key, value in inner.items() if isinstance(inner, Mapping) else ():
            genai.setdefault(key, value)
    output = at(genai, "output", "messages")
    listed = value_of(output)
    if isinstance(output, str) and not isinstance(listed, list):
        raise Damaged("response", "gen_ai.output.messages is no JSON of messages", output[:120])
    reasons = items_of(at(genai, "response", "finish_reasons"))
    if isinstance(listed, list):
        messages = [message_of(x) for x in listed]
        finishes = [first(at(x, "finish_reason"), *reasons[:1]) for x in listed]
    else:
        # As before 1.37: an event for each choice, or traceloop's numbered completions.
        chosen = chosen or items_of(at(genai, "completion"))
        messages = [message_of(at(x, "message") or x) for x in chosen]
        finishes = [first(at(x, "finish_reason"), *reasons[:1]) for x in chosen]
    operation = at(genai, "operation", "name")
    if messages:
        answer = answer_of(messages, finishes)
    elif operation in ("execute_tool", "embeddings", "invoke_agent", "create_agent"):
        log.leave_out(f"{operation} spans", "they are no answer of a model")
        return
    elif (error := _error_of_span(span, at(attributes, "error", "type"))) is not None:
        answer = error
    elif genai:
        log.leave_out(
            "spans without an answer",
            "no contents were recorded: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
        )
        return
    else:
        log.leave_out("other spans", "they are no answer of a model")
        return
    functions = items_of(at(attributes, "llm", "request", "functions")) or None
    declared = at(attributes, "model_request_parameters", "function_tools")
    instructions = value_of(at(genai, "system_instructions"))
    asked = asked_of(first(at(genai, "input", "messages"), at(genai, "prompt"), said)) or []
    params = {k: at(genai, "request", k) for k in PARAMS if at(genai, "request", k) is not None}
    yield {
        **answer,
        **with_system({"messages": asked} if asked else {}, instructions if asked else None),
        "request": request_of(first(at(genai, "tool", "definitions"), functions, declared), params),
        **models_of(at(genai, "request", "model"), at(genai, "response", "model")),
        **token_cells(at(genai, "usage")),
        **_of_span(span, at(genai, "conversation", "id"), at(genai, "response", "id")),
    }


_OF_SDK = tuple(
    f"{root}ai.{name}."
    for root in ("", "attributes.")
    for name in ("response", "prompt", "toolCall")
)


@shape(
    "ai_sdk",
    ("attributes", "ai.", "attributes.ai."),
    "spans of the AI SDK",
    {
        "response": "ai.response.text, ai.response.toolCalls",
        "messages": "ai.prompt.messages, ai.prompt",
        "tools": "ai.prompt.tools",
        "model": "ai.model.id, ai.response.model",
        "finish_reason": "ai.response.finishReason",
    },
    "wire text and chunks, cost",
    lambda row: (
        _is_span(row, _OF_SDK)
        and not _is_span(row, ("gen_ai.output.", "attributes.gen_ai.output."))
    ),
)
def ai_sdk(row: Row, log: Log) -> Iterator[Cells]:
    return _sdk_span(row, attributes_of(row), log)


def _sdk_span(span: Row, attributes: Row, log: Log) -> Iterator[Cells]:
    sdk, genai = at(attributes, "ai"), at(attributes, "gen_ai")
    if at(sdk, "toolCall") is not None:
        log.leave_out("other spans", "they are no answer of a model")
        return
    name = str(first(at(sdk, "operationId"), span.get("name")) or "")
    trace = str(first(pick(span, "traceId", "trace_id"), pick(span, "context.trace_id")) or "")
    is_step = ".do" in name
    if is_step:
        log.steps.add(trace)
    said = at(sdk, "response")
    if at(said, "text") is None and at(said, "toolCalls") is None and at(said, "object") is None:
        if (error := _error_of_span(span)) is None:
            log.leave_out("spans without an answer", "their contents were not recorded")
            return
        answer = error
    else:
        calls = value_of(at(said, "toolCalls"))
        made = message_of({
            "role": "assistant",
            "content": text_of(first(at(said, "text"), at(said, "object"))),
            "reasoning_content": text_of(at(said, "reasoning")),
            "tool_calls": parts_in(calls),
        })  # fmt: skip
        reason = first(at(said, "finishReason"), *items_of(at(genai, "response", "finish_reasons")))
        answer = made.cells("tool_calls" if reason == "tool-calls" else reason)
    prompt = at(sdk, "prompt")
    sent = value_of(at(prompt, "messages"))
    asked = question_of(sent) if sent else of_request(prompt)
    params = {k: at(genai, "request", k) for k in PARAMS if at(genai, "request", k) is not None}
    yield {
        **answer,
        **{k: v for k, v in asked.items() if k in ("messages", "input")},
        "request": request_of(first(at(prompt, "tools"), at(asked, "request", "tools")), params),
        **models_of(
            first(at(sdk, "model", "id"), at(genai, "request", "model")), at(said, "model")
        ),
        **token_cells(at(sdk, "usage"), at(genai, "usage")),
        **_of_span(span),
        OUTER: "" if is_step else trace,
    }


def _error_of_span(span: Row, kind: Any = None) -> Cells | None:
    code = pick(span, "status.status_code", "status.code", "status_code")
    if kind is None and str(code).upper() not in ("ERROR", "STATUS_CODE_ERROR", "2"):
        return None
    message = pick(span, "status.description", "status.message", "status_message")
    return failed(message or kind, kind)


def _of_span(span: Row, conversation: Any = None, id: Any = None) -> Cells:
    # A frame has the members of the context as columns of a dotted name.
    own, trace = span.get("context.span_id"), span.get("context.trace_id")
    return {
        "case_id": first(pick(span, "spanId", "span_id"), own, pick(span, "context.span_id", "id"),
                         id),
        **time_cells(
            pick(span, "startTimeUnixNano", "start_time", "startTime", "timeUnixNano", "timestamp"),
            pick(span, "endTimeUnixNano", "end_time", "endTime"),
        ),
        **conversation_of(
            first(conversation, pick(span, "traceId", "trace_id"), trace,
                  pick(span, "context.trace_id"))
        ),
    }  # fmt: skip
