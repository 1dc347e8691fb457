"""Results of benchmarks: inspect, promptfoo, tau2-bench, K2 Vendor Verifier, BFCL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ....core.values import write_canonical
from ..sources import is_response
from .attributes import at, items_of, mapping_of, pick, value_of
from .parts import (
    Message,
    answer_of,
    conversation_of,
    count_of,
    failed,
    first,
    message_of,
    models_of,
    number_of,
    of_request,
    question_of,
    request_of,
    token_cells,
    turns,
    whole_of,
)
from .shape import OFFERS, Cells, Damaged, Log, Row, shape


def _is_inspect(row: Row) -> bool:
    if isinstance(row.get("samples"), list) and ("eval" in row or "plan" in row):
        return True
    events = row.get("events")
    return isinstance(events, list) and "epoch" in row and "id" in row


@shape(
    "inspect",
    (
        "samples",
        "events",
    ),
    "inspect_ai logs (.eval, .json) and their samples",
    {
        "response": "events[model].call.response, output.choices",
        "messages": "events[model].input",
        "tools": "events[model].tools",
        "model": "events[model].model",
        "case_id": "samples.id",
        "trial": "samples.epoch",
    },
    "arguments' text where call.response is not there",
    _is_inspect,
)
def inspect(row: Row, log: Log) -> Iterator[Cells]:
    samples = row["samples"] if isinstance(row.get("samples"), list) else [row]
    of_log = pick(row, "eval.model", "header.eval.model")
    for sample in samples:
        name, epoch = at(sample, "id"), count_of(at(sample, "epoch")) or 1
        attachments = mapping_of(at(sample, "attachments"))
        events = [e for e in items_of(at(sample, "events")) if at(e, "event") == "model"]
        same = f"{name}/{epoch}"
        if not events:
            # A log of which only the messages were kept.
            messages = _attached(items_of(at(sample, "messages")), attachments)
            for cells, message in turns(messages, name, same):
                yield {
                    **cells,
                    **message_of(message).cells(),
                    **models_of(of_log, at(message, "model")),
                    "trial": epoch - 1,
                    **conversation_of(same),
                }
            continue
        for number, event in enumerate(events):
            event = _attached(event, attachments)
            response, body = at(event, "call", "response"), at(event, "call", "request")
            choices = items_of(at(event, "output", "choices"))
            if is_response(response):
                answer: Cells = {"response": response}
            elif at(event, "error") and not choices:
                answer = failed(at(event, "error"))
            elif choices:
                answer = answer_of(
                    [message_of(at(choice, "message") or choice) for choice in choices],
                    [at(choice, "stop_reason") for choice in choices],
                )
            else:
                raise Damaged("response", "a model event has neither output nor error", event)
            tools = at(event, "tools") or at(body, "tools")
            yield {
                **answer,
                **question_of(at(event, "input")),
                "request": request_of(tools),
                **models_of(first(at(event, "model"), of_log), at(event, "output", "model")),
                "case_id": f"{name}" if len(events) == 1 else f"{name}#{number}",
                "trial": epoch - 1,
                "created": at(event, "timestamp"),
                "latency": number_of(pick(event, "output.time", "working_time")),
                **token_cells(at(event, "output", "usage")),
                **conversation_of(name),
            }


_ATTACHED = "attachment://"


def _attached(x: Any, attachments: Row) -> Any:
    # Long texts of a log stand once, apart from the events.
    if isinstance(x, str):
        return attachments.get(x[len(_ATTACHED) :], x) if x.startswith(_ATTACHED) else x
    if isinstance(x, list):
        return [_attached(item, attachments) for item in x]
    if isinstance(x, Mapping) and attachments:
        return {name: _attached(value, attachments) for name, value in x.items()}
    return x


@shape(
    "promptfoo",
    (
        "results",
        "response",
    ),
    "promptfoo results",
    {
        "response": "results.results.response.output",
        "input": "results.results.prompt.raw",
        "tools": "config.providers.config.tools",
        "model": "results.results.provider.id",
        "case_id": "results.results.testIdx",
        "cost": "results.results.cost",
        "latency": "results.results.latencyMs",
        "error": "results.results.error",
    },
    "tools but for those of the config, messages where the prompt is a template, why an answer "
    "ended",
    lambda row: (
        isinstance(at(row, "results", "results"), list)
        or ("response" in row and "provider" in row and ("vars" in row or "promptIdx" in row))
    ),
)
def promptfoo(row: Row, log: Log) -> Iterator[Cells]:
    results = items_of(at(row, "results", "results")) or [row]
    offered: Cells = {}
    for provider in items_of(at(row, "config", "providers")):
        tools = at(provider, "config", "tools")
        offered |= {str(at(provider, key)): tools for key in ("id", "label") if at(provider, key)}
    for result in results:
        provider = at(result, "provider")
        name = first(at(provider, "id"), provider if isinstance(provider, str) else None)
        response = at(result, "response")
        output, error = at(response, "output"), first(at(response, "error"), at(result, "error"))
        raw = at(response, "raw")
        if _is_calls(value_of(output)):
            output = value_of(output)
        if is_response(value_of(raw)):
            answer: Cells = {"response": value_of(raw)}
        elif isinstance(output, list):
            made = Message()
            made.take_calls(output)
            answer = made.cells()
        elif isinstance(output, Mapping):
            answer = {"response": output} if is_response(output) else message_of(output).cells()
            if not is_response(output) and not (output.keys() & {"content", "tool_calls"}):
                answer = Message(write_canonical(output)).cells()
        elif isinstance(output, str):
            answer = Message(output).cells(at(response, "finishReason"))
        elif error:
            answer = failed(error)
        else:
            raise Damaged("response", "there is neither an output nor an error", response)
        tools = first(
            offered.get(str(at(provider, "label"))),
            offered.get(str(name)),
            at(provider, "config", "tools"),
        )
        if isinstance(tools, str) and tools.startswith("file:"):
            tools = None  # they stand in a file that the results do not have
        asked = value_of(at(result, "prompt", "raw"))
        variables = at(result, "vars")
        test = at(result, "testIdx")
        tokens = first(at(response, "tokenUsage"), at(result, "tokenUsage"))
        milliseconds = number_of(at(result, "latencyMs"))
        yield {
            **answer,
            **question_of(asked if asked is not None else variables),
            "request": request_of(tools),
            "model": first(at(provider, "label"), name),
            "case_id": None if test is None else f"test-{test}.{at(result, 'promptIdx') or 0}",
            "latency": None if milliseconds is None else milliseconds / 1000,
            "cost": number_of(first(at(response, "cost"), at(result, "cost"))),
            "metadata_success": at(result, "success"),
            **token_cells(tokens),
        }


def _is_calls(x: Any) -> bool:
    # What promptfoo makes of an answer of calls alone.
    calls = isinstance(x, list) and bool(x)
    return calls and all(
        at(call, "function", "name") or at(call, "type") == "tool_use" for call in x
    )


@shape(
    "tau2",
    (
        "simulations",
        "task_id",
    ),
    "tau2-bench simulations",
    {
        "response": "simulations.messages[assistant]",
        "messages": "simulations.messages before it",
        "model": "info.agent_info.llm",
        "case_id": "simulations.task_id",
        "trial": "simulations.trial",
        "cost": "messages.cost",
    },
    "tools (the environment has them), arguments' text",
    lambda row: (
        isinstance(row.get("simulations"), list)
        or ("task_id" in row and isinstance(row.get("messages"), list))
    ),
)
def tau2(row: Row, log: Log) -> Iterator[Cells]:
    simulations = row["simulations"] if isinstance(row.get("simulations"), list) else [row]
    model = first(at(row, "info", "agent_info", "llm"), row.get("model"))
    tools = at(row, "info", "environment_info", "tool_defs")
    for simulation in simulations:
        task, id = at(simulation, "task_id"), at(simulation, "id")
        for cells, message in turns(items_of(at(simulation, "messages")), task, "task"):
            # Calls of the simulated user are not the model's.
            calls = [
                call
                for call in items_of(at(message, "tool_calls"))
                if at(call, "requestor") != "user"
            ]
            yield {
                **cells,
                **message_of({**message, "tool_calls": calls}).cells(),
                "request": request_of(tools),
                OFFERS: True,
                "model": model,
                "trial": count_of(at(simulation, "trial")),
                "created": at(message, "timestamp"),
                "cost": number_of(at(message, "cost")),
                **token_cells(at(message, "usage")),
                **conversation_of(first(task, id)),
            }


@shape(
    "k2vv",
    ("data_index",),
    "results of K2 Vendor Verifier",
    {
        "response": "response",
        "messages": "request.messages",
        "tools": "request.tools",
        "model": "request.model",
        "case_id": "data_index",
    },
    "chunks",
    lambda row: "data_index" in row and "response" in row and "request" in row,
)
def k2vv(row: Row, log: Log) -> Iterator[Cells]:
    yield {
        **whole_of(row.get("response"), row.get("error")),
        **of_request(row.get("request")),
        "case_id": row["data_index"],
        "metadata_status": row.get("status"),
    }


_BFCL_ID = re.compile(
    r"(?:live_)?(?:simple|multiple|parallel|irrelevance|relevance|java|javascript|multi_turn|memory"
    r"|web_search|exec|rest|sql|chatable|format_sensitivity)\w*_\d[\w.:-]*"
)
_BFCL_COUNTS = ("input_token_count", "output_token_count")
_BFCL_GROUPS = frozenset(("non_live", "live", "multi_turn", "agentic", "memory", "web_search",
                          "format_sensitivity"))  # fmt: skip


def _is_bfcl(row: Row) -> bool:
    result = row.get("result")
    if not isinstance(result, (str, list)) or not isinstance(row.get("id"), str):
        return False
    return any(name in row for name in _BFCL_COUNTS) or bool(_BFCL_ID.fullmatch(row["id"]))


@shape(
    "bfcl",
    ("result",),
    "results of BFCL, as text or as calls",
    {
        "response": "result",
        "case_id": "id",
        "model": "the folder",
        "prompt_tokens": "input_token_count",
        "completion_tokens": "output_token_count",
        "latency": "latency",
    },
    "tools and questions (cases= has them, by id); words beside the calls",
    _is_bfcl,
)
def bfcl(row: Row, log: Log) -> Iterator[Cells]:
    # Of several turns there is a list for each, of one answer for each step.
    id, result = row["id"], row["result"]
    several = isinstance(result, list) and any(isinstance(turn, list) for turn in result)
    steps = (
        [(f"{id}#{t}.{s}", step, (t, s)) for t, turn in enumerate(result)
         for s, step in enumerate(turn if isinstance(turn, list) else [turn])]
        if several else [(id, result, ())]
    )  # fmt: skip
    for name, step, place in steps:
        if isinstance(step, str) and step.startswith("Error during inference:"):
            answer = failed(step)
        elif isinstance(step, str):
            answer = {"output": step}
        else:
            made = Message()
            for call in step if isinstance(step, list) else [step]:
                if not isinstance(call, Mapping) or len(call) != 1:
                    raise Damaged(
                        "response", "a result is text, or a list of {name: arguments}", call
                    )
                ((function, arguments),) = call.items()
                made.call(function, arguments)
            answer = made.cells()
        sent, received, latency = (at(row.get(key), *place) for key in (*_BFCL_COUNTS, "latency"))
        yield {
            **answer,
            "case_id": name,
            "model": _bfcl_model(log.name),
            **token_cells({"input": sent, "output": received}),
            "latency": number_of(latency),
            **(conversation_of(id) if several else {}),
        }


def _bfcl_model(name: str) -> str | None:
    # result/MODEL/[GROUP/]BFCL_v4_…_result.json
    path = Path(name)
    if not path.name.startswith("BFCL_"):
        return None
    folders = [folder for folder in path.parts[:-1] if folder not in _BFCL_GROUPS]
    return folders[-1] if folders else None
