"""What a provider may send beside the shapes of the matrix: comments and carriage returns in a
stream, errors inside it under many names, reasons without an end, and text in other members.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.provider_dialects import DIALECTS
from tests.provider_matrix import alone
from tests.providers import Providers, Wire, wire_of
from tests.tables import each_case
from toolparse_lab.runner.complete import complete
from toolparse_lab.runner.exchange.types import Completion, Request
from toolparse_lab.runner.loop import run_sync


def answer(name: str, wire: Any, *, status: int = 200, stream: bool = True) -> Completion:
    """Of one question to a server that says just this."""
    dialect = DIALECTS[name]
    with alone(), Providers(lambda _path, _body: (status, wire)) as server:
        own = {k: str(v).replace("{url}", server.url) for k, v in dialect.params.items()}
        model = tp.Model(
            dialect.model, api_base=server.url + dialect.path, api_key="planted",
            params=own or None, timeout=10,
        )  # fmt: skip
        return run_sync(
            complete(Request(model, "m", ({"role": "user", "content": "hi"},), stream=stream))
        )


def chunk(delta: dict[str, Any], reason: str | None = None, **members: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice], **members}


def sse(*events: Any, end: str = "\n", comment: str = "", named: bool = False) -> Wire:
    lines = []
    for event in events:
        lines += [f": {comment}", ""] if comment else []
        lines += [f"event: {event['type']}"] if named else []
        lines += [f"data: {event if isinstance(event, str) else json.dumps(event)}", ""]
    return Wire((end.join(lines) + end).encode(), "text/event-stream")


USAGE = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
LATE = {**chunk({}), "choices": [], "usage": USAGE}
OPENAI_SHAPED = ["OpenAI chat", "Mistral", "OpenRouter", "Groq"]


@pytest.mark.parametrize("name", OPENAI_SHAPED)
def test_comments_behind_the_end_do_not_lose_the_counts(name: str) -> None:
    events = (chunk({"content": "Noon"}), chunk({}, "stop"), LATE, "[DONE]")
    found = answer(name, sse(*events, end="\r\n", comment="keep-alive"))
    assert (found.raw, found.finish_reason) == ("Noon", "stop")
    assert (found.prompt_tokens, found.completion_tokens) == (9, 3)


def test_comments_between_events_of_gemini_are_passed_over() -> None:
    parts = {"parts": [{"text": "Noon"}], "role": "model"}
    event = {"candidates": [{"content": parts, "finishReason": "STOP", "index": 0}]}
    assert answer("Gemini", sse(event, comment="ping")).raw == "Noon"


@pytest.mark.parametrize("name", OPENAI_SHAPED)
def test_done_is_no_finish_reason(name: str) -> None:
    found = answer(name, sse(chunk({"content": "No"}), "[DONE]"))
    assert (found.error_kind, found.cut, found.raw) == ("cut_stream", True, "No")


@pytest.mark.parametrize("name", OPENAI_SHAPED)
@each_case
@pytest.mark.exhaustive(5)
def test_an_error_inside_a_stream_has_its_own_kind(name: str, error: Any, kind: str) -> None:
    last = {**chunk({"content": ""}, "error"), "error": error}
    found = answer(name, sse(chunk({"content": "No"}), last))
    assert (found.error_kind, found.raw) == (kind, "No")
    assert error["message"] in (found.error_message or "")


@each_case
def test_an_error_in_a_stream_of_anthropic_keeps_its_type(kind: str, expected: str) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "words"}}
    assert answer("Anthropic messages", sse(event, named=True)).error_kind == expected


@pytest.mark.parametrize("name", ["Ollama chat", "Ollama generate"])
def test_an_error_in_a_stream_of_ollama_is_the_servers(name: str) -> None:
    found = answer(name, wire_of(json.dumps({"error": "unexpected EOF"}) + "\n"))
    assert (found.error_kind, found.error_message) == ("server_error", "unexpected EOF")


def test_cohere_is_read_as_server_sent_events_too() -> None:
    thought = {"message": {"content": {"thinking": "five"}}}
    text = {"message": {"content": {"text": "Noon"}}}
    plan = {"message": {"tool_plan": " it is"}}
    events = [
        {"type": "content-delta", "index": 0, "delta": thought},
        {"type": "tool-plan-delta", "delta": plan},
        {"type": "content-delta", "index": 1, "delta": text},
        {"type": "message-end", "delta": {"finish_reason": "MAX_TOKENS"}},
    ]
    found = answer("Cohere v2", sse(*events, named=True, end="\r\n", comment="ping"))
    assert (found.raw, found.reasoning, found.finish_reason) == ("Noon", "five it is", "length")


def test_text_of_ollama_that_looks_like_a_call_stays_text() -> None:
    text = '{"name": "f", "arguments": {}}'
    end = {"response": "", "done": True, "done_reason": "length"}
    lines = [{"response": text, "done": False}, end]
    found = answer("Ollama generate", wire_of("".join(json.dumps(x) + "\n" for x in lines)))
    assert (found.raw, found.finish_reason) == (text, "length")


@pytest.mark.parametrize("name", OPENAI_SHAPED)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reason", "expected"),
    [("SAFETY", "content_filter"), ("guardrail_intervened", "content_filter"), ("eos", "eos")],
)
@pytest.mark.exhaustive(5)
def test_names_of_a_filter_are_one(name: str, stream: bool, reason: str, expected: str) -> None:
    whole = chunk({}, reason, object="chat.completion")
    whole["choices"][0]["message"] = {"role": "assistant", "content": "No"}
    wire = sse(chunk({"content": "No"}), chunk({}, reason)) if stream else whole
    assert answer(name, wire, stream=stream).finish_reason == expected


@pytest.mark.parametrize("name", OPENAI_SHAPED)
@each_case
@pytest.mark.exhaustive(3)
def test_text_in_another_member_is_kept(name: str, message: dict[str, Any], column: str) -> None:
    assert getattr(answer(name, sse(chunk(message), chunk({}, "stop"))), column) == "words"


def test_the_wait_in_the_body_of_google_is_known() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]
    error = {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}
    assert answer("Gemini", {"error": error}, status=429).retry_after == 17
