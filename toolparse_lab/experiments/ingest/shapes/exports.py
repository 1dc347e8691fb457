"""Exports of tracing tools and APIs: litellm, Langfuse, LangSmith, Weave, batches, responses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....core.values import write_canonical
from ..sources import is_response
from .attributes import at, items_of, mapping_of, pick, value_of
from .parts import (
    PARAMS,
    Message,
    answer_in,
    answer_of,
    asked_message,
    conversation_of,
    count_of,
    failed,
    first,
    models_of,
    number_of,
    of_request,
    question_of,
    request_of,
    text_of,
    time_cells,
    token_cells,
    whole_of,
)
from .shape import Cells, Damaged, Log, Row, shape


@shape(
    "litellm",
    ("call_type",),
    "litellm's standard log and the spend logs of its proxy",
    {
        "response": "response",
        "messages": "messages",
        "tools": "model_parameters.tools",
        "model": "model",
        "case_id": "id, request_id",
        "cost": "response_cost, spend",
        "error": "error_information, error_str",
        "created": "startTime",
    },
    "wire text and chunks; messages where they are redacted",
    lambda row: "call_type" in row and "startTime" in row,
)
def litellm(row: Row, log: Log) -> Iterator[Cells]:
    information = value_of(row.get("error_information"))
    said = first(row.get("error_str"), at(information, "error_message"))
    kind = at(information, "error_class")
    if row.get("status") in ("failure", "error") and not is_response(value_of(row.get("response"))):
        answer = failed(said, kind)
    else:
        answer = whole_of(row.get("response"))
    params = mapping_of(row.get("model_parameters")) or mapping_of(row.get("optional_params"))
    body = mapping_of(row.get("proxy_server_request"))
    asked = first(value_of(row.get("messages")) or None, body.get("messages"))
    id, trace = first(row.get("id"), row.get("request_id")), row.get("trace_id")
    yield {
        **answer,
        **question_of(asked),
        "request": request_of(
            first(at(params, "tools"), body.get("tools")),
            {k: v for k, v in params.items() if k != "tools"},
            model=row.get("model"),
        ),
        "model": row.get("model"),
        "case_id": id,
        "cost": number_of(first(row.get("response_cost"), row.get("spend"))),
        **token_cells(row),
        **time_cells(row.get("startTime"), row.get("endTime"), row.get("completionStartTime")),
        **conversation_of(first(row.get("session_id"), trace if trace != id else None)),
    }


_OBSERVATIONS = frozenset((
    "GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING",
    "GUARDRAIL",
))  # fmt: skip
_OF_LANGFUSE = frozenset((
    "traceId", "trace_id", "usageDetails", "usage_details", "modelParameters", "model_parameters",
    "costDetails", "cost_details", "parentObservationId", "completionStartTime",
))  # fmt: skip


@shape(
    "langfuse",
    ("type",),
    "Langfuse observations",
    {
        "response": "output",
        "messages": "input.messages, input",
        "tools": "input.tools",
        "model": "model",
        "case_id": "id",
        "prompt_tokens": "usageDetails.input",
        "completion_tokens": "usageDetails.output",
        "cost": "costDetails.total, totalCost",
        "error": "statusMessage",
    },
    "tools unless they stand in the input, arguments' text where objects were stored, chunks",
    lambda row: str(row.get("type")).upper() in _OBSERVATIONS and bool(row.keys() & _OF_LANGFUSE),
)
def langfuse(row: Row, log: Log) -> Iterator[Cells]:
    def of(name: str) -> Any:
        # Clients in Python write `usage_details` for `usageDetails`.
        return first(row.get(name), row.get(re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", name)))

    if str(row["type"]).upper() != "GENERATION":
        log.leave_out(f"{row['type']} observations", "they are no answer of a model")
        return
    output, sent = value_of(row.get("output")), value_of(row.get("input"))
    if output is None or output == "":
        if row.get("level") == "ERROR" or of("statusMessage"):
            answer = failed(of("statusMessage"))
        elif output is None:
            raise Damaged("response", "this generation has no output", None)
        else:
            answer = Message("").cells()
    else:
        answer = answer_in(output) or Message(write_canonical(output)).cells()
    # The request as it was sent, or its messages.
    is_body = isinstance(sent, Mapping) and "role" not in sent
    asked = of_request(sent) if is_body else question_of(sent)
    if not asked.keys() & {"messages", "input"}:
        asked = question_of(sent)
    body = sent if isinstance(sent, Mapping) else {}
    usage, costs = of("usageDetails") or row.get("usage"), of("costDetails")
    params = mapping_of(of("modelParameters"))
    tools = first(
        at(asked, "request", "tools"),
        params.get("tools"),
        at(row, "metadata", "tools"),
        *(at(place, "model_request_parameters", "function_tools")
          for place in (body, row.get("metadata"), at(row, "metadata", "attributes"))),
    )  # fmt: skip
    asked = {k: v for k, v in asked.items() if k in ("messages", "input")}
    yield {
        **answer,
        **asked,
        "request": request_of(tools, params),
        "model": first(row.get("model"), of("providedModelName")),
        "case_id": row.get("id"),
        "cost": number_of(first(at(costs, "total"), of("totalCost"), of("calculatedTotalCost"))),
        **token_cells(usage),
        **time_cells(of("startTime"), of("endTime"), of("completionStartTime")),
        **conversation_of(first(of("sessionId"), of("traceId"))),
    }


@shape(
    "langsmith",
    ("run_type",),
    "LangSmith runs",
    {
        "response": "outputs.generations",
        "messages": "inputs.messages",
        "tools": "extra.invocation_params.tools",
        "model": "extra.invocation_params.model",
        "case_id": "id",
        "error": "error",
        "created": "start_time",
    },
    "arguments' text but for additional_kwargs.tool_calls and invalid_tool_calls, chunks",
    lambda row: "run_type" in row and ("outputs" in row or "inputs" in row),
)
def langsmith(row: Row, log: Log) -> Iterator[Cells]:
    if row["run_type"] != "llm":
        log.leave_out(f"{row['run_type']} runs", "they are no answer of a model")
        return
    metadata = at(row, "extra", "metadata")
    outputs, params = value_of(row.get("outputs")), at(row, "extra", "invocation_params")
    generations = items_of(at(outputs, "generations"))
    # A list of lists, one for each prompt; some exports have one list alone.
    if generations and isinstance(generations[0], list):
        generations = generations[0]
    kwargs: Any = {}
    if generations:
        messages = [_langchain_message(x) for x in generations]
        finishes = [
            pick(
                x, "generation_info.finish_reason", "message.kwargs.response_metadata.finish_reason"
            )
            for x in generations
        ]
        answer = answer_of(messages, finishes)
        kwargs = _langchain_body(at(generations[0], "message"))
    elif is_response(outputs):
        answer = {"response": outputs}
    elif isinstance(output := first(at(outputs, "message"), at(outputs, "output"),
                                     at(outputs, "messages", -1)), Mapping):  # fmt: skip
        answer = _langchain_message({"message": output}).cells()
    elif isinstance(output, str):
        answer = Message(output).cells()
    elif row.get("error"):
        answer = failed(row["error"])
    else:
        raise Damaged("response", "this run has neither an output nor an error", outputs)
    asked = items_of(pick(row, "inputs.messages", "inputs.input"))
    if asked and isinstance(asked[0], list):
        asked = asked[0]
    question = question_of([_langchain_asked(x) for x in asked]) if asked else question_of(
        first(at(row, "inputs", "prompts", 0), at(row, "inputs", "prompt"))
    )  # fmt: skip
    tools = first(pick(params, "tools", "functions"), pick(row, "extra.tools", "inputs.tools"))
    usage = first(at(kwargs, "usage_metadata"),
                  pick(outputs, "usage_metadata", "llm_output.token_usage"))  # fmt: skip
    yield {
        **answer,
        **question,
        "request": request_of(tools, {k: v for k in PARAMS if (v := at(params, k)) is not None}
        ),
        **models_of(
            first(pick(params, "model", "model_name"), at(metadata, "ls_model_name")),
            first(at(kwargs, "response_metadata", "model_name"), at(outputs, "model")),
        ),
        "case_id": row.get("id"),
        "cost": number_of(row.get("total_cost")),
        **token_cells(usage, row),
        **time_cells(row.get("start_time"), row.get("end_time"), row.get("first_token_time")),
        **conversation_of(
            first(
                pick(metadata, "thread_id", "session_id"),
                row.get("trace_id") if row.get("trace_id") != row.get("id") else None,
            )
        ),
    }  # fmt: skip


def _langchain_body(x: Any) -> Any:
    # A message as LangChain stores it: {lc, id, kwargs}, {type, data}, or the message alone.
    for name in ("kwargs", "data"):
        if isinstance(at(x, name), Mapping):
            return at(x, name)
    return x


def _langchain_message(generation: Any) -> Message:
    body = _langchain_body(at(generation, "message"))
    if not isinstance(body, Mapping):
        rest = generation
        if isinstance(generation, Mapping):
            rest = {k: v for k, v in generation.items() if k not in ("text", "generation_info")}
        return Message(at(generation, "text")).or_unread(rest)
    made = Message(first(text_of(body.get("content")), at(generation, "text")))
    extra = at(body, "additional_kwargs")
    made.reasoning = text_of(at(extra, "reasoning_content")) or ""
    written = items_of(at(extra, "tool_calls"))
    if written:
        made.take_calls(written)
    else:
        made.take_calls(body.get("tool_calls"))
        # Calls that LangChain could not read have their text still.
        made.take_calls(body.get("invalid_tool_calls"))
    if not made.calls and isinstance(legacy := at(extra, "function_call"), Mapping):
        made.call(at(legacy, "name"), at(legacy, "arguments"))
    return made.or_unread(body)


def _langchain_asked(x: Any) -> Cells:
    body = _langchain_body(x)
    kind = first(at(x, "id", -1) if at(x, "lc") else None, at(x, "type"), at(x, "role"), "human")
    return asked_message(kind, at(body, "content"), _langchain_message({"message": x}), body)


@shape(
    "weave",
    ("op_name",),
    "Weave calls",
    {
        "response": "output",
        "messages": "inputs.messages",
        "tools": "inputs.tools",
        "model": "inputs.model",
        "case_id": "id",
        "created": "started_at",
        "error": "exception",
    },
    "chunks",
    lambda row: "op_name" in row and "inputs" in row,
)
def weave(row: Row, log: Log) -> Iterator[Cells]:
    inputs, output = value_of(row.get("inputs")), value_of(row.get("output"))
    asks = isinstance(inputs, Mapping) and bool(inputs.keys() & {"messages", "prompt", "model"})
    if not asks and not is_response(output):
        log.leave_out("other calls", "they are no answer of a model")
        return
    usage = next(iter((at(row, "summary", "usage") or {}).values()), None)
    if at(output, "usage") is not None:
        usage = None  # the response says it
    yield {
        **whole_of(output, row.get("exception")),
        **of_request(inputs),
        "case_id": row.get("id"),
        **token_cells(usage),
        **time_cells(row.get("started_at"), row.get("ended_at")),
        **conversation_of(first(row.get("thread_id"), row.get("trace_id"))),
    }


@shape(
    "batch",
    ("custom_id",),
    "results of a batch: OpenAI's, and Anthropic's",
    {
        "response": "response.body, result.message",
        "case_id": "custom_id",
        "error": "error, result.error",
    },
    "messages and tools: requests= takes the file of the batch that was asked",
    lambda row: "custom_id" in row and ("response" in row or "result" in row),
)
def batch(row: Row, log: Log) -> Iterator[Cells]:
    result = row.get("result")
    body = first(at(row, "response", "body"), at(result, "message"))
    error = first(row.get("error"), at(result, "error"), at(body, "error"))
    if int(number_of(at(row, "response", "status_code")) or 0) >= 400:
        error = error or {"code": at(row, "response", "status_code"), "message": str(body or "")}
    if at(result, "type") in ("errored", "expired", "canceled"):
        error = error or at(result, "type")
    asked = log.requests.get(str(row["custom_id"]))
    yield {
        **whole_of(None if error else body, error),
        **(of_request(first(at(asked, "body"), at(asked, "params"))) if asked else {}),
        **({} if at(body, "model") is None else {"model": at(body, "model")}),
        "case_id": row["custom_id"],
        "created": at(body, "created"),
    }


@shape(
    "responses",
    ("object",),
    "objects of OpenAI's Responses API",
    {"response": "output", "tools": "tools", "model": "model", "created": "created_at"},
    "what was asked",
    lambda row: row.get("object") == "response" and isinstance(row.get("output"), list),
)
def responses(row: Row, log: Log) -> Iterator[Cells]:
    params = {k: row[k] for k in PARAMS if row.get(k) is not None}
    yield {
        "response": row,
        "request": request_of(row.get("tools"), params),
        "model": row.get("model"),
        "created": row.get("created_at"),
        **conversation_of(at(row, "conversation", "id")),
    }


@shape(
    "bedrock",
    ("schemaType",),
    "logs of Bedrock's model invocations",
    {
        "response": "output.outputBodyJson",
        "messages": "input.inputBodyJson.messages",
        "tools": "input.inputBodyJson.toolConfig.tools, input.inputBodyJson.tools",
        "model": "modelId",
        "case_id": "requestId",
        "prompt_tokens": "input.inputTokenCount",
        "completion_tokens": "output.outputTokenCount",
        "created": "timestamp",
        "error": "errorCode",
    },
    "bodies that the log keeps elsewhere because of their size",
    lambda row: row.get("schemaType") == "ModelInvocationLog",
)
def bedrock(row: Row, log: Log) -> Iterator[Cells]:
    body = value_of(at(row, "output", "outputBodyJson"))
    answer = {"response": body} if isinstance(body, list) else whole_of(body, row.get("errorCode"))
    asked = of_request(at(row, "input", "inputBodyJson"))
    yield {
        **asked,
        **answer,
        "model": row.get("modelId"),
        "case_id": row.get("requestId"),
        "prompt_tokens": count_of(at(row, "input", "inputTokenCount")),
        "completion_tokens": count_of(at(row, "output", "outputTokenCount")),
        "created": row.get("timestamp"),
    }
