"""Recorded exchanges as a source of answers: requests become cases, and responses completions."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ...core.errors import BadOptions, ToolparseError, UnreadableInput
from ...core.toolspec import ToolSpec, tool_specs
from ...core.values import write_canonical
from ...entry.capture import Captured, capture
from ...entry.capture.assembly import Assembly
from ...entry.capture.known import take_chunk
from ...evals.cases.case import Case, is_storable
from ...evals.cases.collection import pack_cases, unpack_cases
from ...evals.cases.row_files import RowSource
from ...runner.exchange.details import told_by_headers
from ...runner.exchange.redaction import redact, redact_named
from ...runner.exchange.types import Chunk, Completion, Passed
from ...runner.failures import LONGEST_MESSAGE, kind_of_status, reported_kind
from ...runner.store.store import Store
from .answers import answer_to_offer, counts_of, facts_of
from .columns import Settings, tool_choice_of
from .shapes.parts import OF_REQUEST, of_request

# How it works. The path says which API was asked, and so which members of the request are the
# question. The response is read by the same shapes as every other one. Each event of a stream has
# the time of the piece in which it became whole.

_EVENT = re.compile(rb"^(?:data:[ ]?)?([^\r\n]+)(?:\r\n|\r|\n|\Z)", re.M)
# Gemini and Bedrock have the model in the path.
_MODEL = re.compile(r"/models?/([^/:?]+(?::\d+)?)(?::|/(?:converse|invoke))")
_DATABASE = re.compile(r"(sqlite|postgres(ql)?)(\+\w+)?://")
_SQLITE = b"SQLite format 3\0"
_CUT = {
    "cut": "the server broke the response off before its end",
    "caller": "the caller went away before the end",
}


def is_store(source: Any) -> bool:
    """Return True for a store, its file, or its address."""
    if not isinstance(source, (str, Path)):
        return isinstance(source, Store)
    if _DATABASE.match(str(source)):
        return True
    try:
        with Path(source).expanduser().open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except (OSError, ValueError):  # a text, which may have any length and any character
        return False


def exchanges_of(source: Store | str | Path, settings: Settings) -> RowSource:
    """Return the exchanges that a proxy or a recorder has written into a store.

    Raises BadOptions for settings of rows that have columns, and StoreError.
    """
    named = ("columns", "shape", "requests", "split")
    if given := [name for name in named if getattr(settings, name) is not None]:
        raise BadOptions(
            "a recorded exchange has no columns: it says itself what its parts are",
            got=", ".join(given),
            expected="a store of exchanges without these options",
        )
    store = source if isinstance(source, Store) else Store(source)

    def rows() -> Iterator[tuple[int, Passed]]:
        last = 0
        try:
            while page := store.exchanges(last):
                yield from page
                last = page[-1][0]
        finally:
            if store is not source:
                store.close()
        if not last:
            raise UnreadableInput(
                "nothing in this store was recorded by a proxy or a recorder",
                got=repr(store),
                hint="its runs are opened by Lab(...).open()",
            )

    return RowSource(repr(store), rows(), unit="exchange")


@dataclass(frozen=True, slots=True)
class ExchangeAnswer:
    """One answer of an exchange: number `choice` of those that it has.

    unlifted: tools were offered, and a call stands in the text instead of the server's own calls.
    """

    case: Case
    model: str
    tool_choice: Any
    choice: int
    completion: Completion
    unlifted: bool


def answers_in(
    passed: Passed, number: int, tools: tuple[ToolSpec, ...] = (), model: str | None = None
) -> Iterator[ExchangeAnswer]:
    """Yield the answers of an exchange, at least one.

    number: of the exchange in its store, which names its case. tools, model: of requests that say
    none.
    """
    asked = _object(passed.request)
    case = _case(f"{number:06}", asked)
    is_completion = passed.path.endswith("/api/generate") or (
        passed.path.endswith("/completions") and not passed.path.endswith("/chat/completions")
    )
    offers = bool(case.tools) and not is_completion
    if not case.tools:
        case = replace(case, tools=tools)
    named = _MODEL.search(passed.path)
    name = asked.get("model") or (unquote(named[1]) if named else None)
    if not isinstance(name, str) or not name.strip() or not is_storable(name):
        name = model or "unknown"
    choice, count = 0, 1
    while choice < count:
        captured, message = _captured(passed, choice)
        unlifted = False
        if offers:
            captured, unlifted = answer_to_offer(captured, case.tools)
        if captured.fidelity in ("sdk", "replayed", "wire"):
            captured = replace(captured, fidelity=passed.fidelity)
        facts = facts_of(captured, unlifted=unlifted)
        completion = _completion(passed, choice, asked, case, name, captured, message, facts)
        tool_choice = tool_choice_of(asked.get("tool_choice"))
        yield ExchangeAnswer(case, name, tool_choice, choice, completion, unlifted)
        choice, count = choice + 1, captured.choices


def _object(body: bytes | str) -> dict[str, Any]:
    # {} for anything else than the JSON of an object.
    text = body.decode("utf-8", "surrogateescape") if isinstance(body, bytes) else body
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


# -- the question


def _case(id: str, body: Mapping[str, Any]) -> Case:
    asked = of_request(body)
    try:
        tools = tool_specs((asked["request"] or {}).get("tools"))
        case = Case(id, asked.get("messages") or asked.get("input") or "", tools)
        unpack_cases(pack_cases([case]))
    except ToolparseError:
        # What a case cannot contain was asked all the same, and can be looked at as text.
        members = [body.get(name) for name in OF_REQUEST[1:] if body.get(name) is not None]
        return Case(id, write_canonical(members))
    return case


# -- the answer


def _captured(passed: Passed, choice: int) -> tuple[Captured, str]:
    # With the message of a failure, "" for none.
    text = passed.response.decode("utf-8", "surrogateescape")
    if passed.end == "unreachable" or _is_failed(passed):
        return Captured(fidelity="replayed"), str(passed.facts.get("error") or "")
    if passed.status is not None and passed.status >= 400:
        return Captured(fidelity="replayed"), _message(text) or f"status {passed.status}"
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        if len(lines) > 1 and all(line.startswith("{") for line in lines):
            # Ollama's streams are JSON lines, of which the last may be cut off.
            messages = list(filter(None, map(_object, lines)))
            return _timed(passed, capture(messages, choice)), ""
        captured = capture(text, choice)
        if not captured.stream and captured.fidelity == "replayed":
            captured = capture(json.loads(text), choice)
        return _timed(passed, captured), ""
    except (ToolparseError, ValueError, RecursionError):
        said = str(passed.facts.get("left_out") or passed.facts.get("error") or "")
        return Captured(fidelity="replayed"), said or "the response is no answer of a model"


def _is_failed(passed: Passed) -> bool:
    # A client knows what kind of failure it was.
    return passed.facts.get("error_kind") is not None


def _message(text: str) -> str:
    error = _object(text)
    if not error:
        return text
    inner = error.get("error", error)
    if isinstance(inner, dict):
        inner = inner.get("message") or write_canonical(inner)
    return str(inner)


def _timed(passed: Passed, captured: Captured) -> Captured:
    # A response that ended with its connection has no finish part, whatever came of it before.
    if passed.end in _CUT and captured.stream and captured.finish_reason is None:
        return replace(captured, cut=True)
    return captured


def _chunks(passed: Passed, captured: Captured) -> tuple[Chunk, ...]:
    if not captured.chunks:
        return ()
    ends = list(accumulate(size for _, size in passed.pieces))
    times: list[float] = []
    assembly = Assembly(0, streamed=True)
    for match in _EVENT.finditer(passed.response):
        if not (message := _object(match[1])):
            continue
        before = len(assembly.chunks)
        take_chunk(message, assembly)
        piece = min(bisect_left(ends, match.end(1)), len(ends) - 1)
        times += [passed.pieces[piece][0] if ends else 0.0] * (len(assembly.chunks) - before)
    # Of an event that is spread over several lines nobody knows the time.
    times += [passed.seconds] * (len(captured.chunks) - len(times))
    return tuple(
        Chunk(at, text, kind)
        for at, (kind, text) in zip(times[: len(captured.chunks)], captured.chunks, strict=True)
    )


def _failure(passed: Passed, captured: Captured, message: str) -> tuple[str | None, str | None]:
    if _is_failed(passed):
        return str(passed.facts["error_kind"]), message
    if passed.end == "unreachable":
        return "connection", message
    if passed.status is not None and passed.status >= 400:
        error = _object(passed.response).get("error")
        kind = kind_of_status(passed.status) or reported_kind(error)
        return kind or ("server_error" if passed.status >= 500 else "bad_request"), message
    if captured.error is not None:
        return ("cut_stream" if captured.content else "server_error"), captured.error
    if captured.cut:
        return "cut_stream", _CUT.get(passed.end, "the stream ended without a finish part")
    if message:
        return ("connection" if passed.end != "whole" else "other"), message
    return None, None


def _completion(
    passed: Passed,
    choice: int,
    asked: Mapping[str, Any],
    case: Case,
    model: str,
    captured: Captured,
    message: str,
    facts: Mapping[str, Any],
) -> Completion:
    kind, why = _failure(passed, captured, message)
    told = told_by_headers(passed.facts.get("response_headers") or ())
    response: dict[str, Any] = {
        **told,
        **{name: value for name, value in facts.items() if value is not None},
        "endpoint": passed.path,
        "usage": facts["usage"] or None,
        "status_code": passed.status,
        "asked": passed.facts.get("asked"),
        "retry_after": _seconds(passed.facts.get("response_headers")),
        "body": passed.response.decode("utf-8", "replace")[:LONGEST_MESSAGE] if message else None,
    }
    chunks = _chunks(passed, captured) if choice == 0 else ()
    request = {
        "model": {"name": model},
        "model_alias": model,
        "messages": [dict(m) for m in case.messages],
        "params": redact_named({k: v for k, v in asked.items() if k not in OF_REQUEST}),
        "stream": captured.stream,
        "trial": choice,
    }
    if isinstance(asked.get("tools"), list):
        request["tools"] = asked["tools"]
    return Completion(
        key="",
        raw=captured.raw if captured.content or captured.tool_calls or kind is None else "",
        status="ok" if kind is None else "error",
        error_kind=kind,
        error_message=None if why is None else redact(why)[:LONGEST_MESSAGE],
        finish_reason=captured.finish_reason,
        latency=round(passed.seconds, 6),
        ttft=chunks[0].at if chunks else None,
        chunks=chunks,
        reasoning=captured.reasoning,
        endpoint_kind=captured.endpoint_kind,
        fidelity=captured.fidelity,
        stream=captured.stream or (passed.fidelity == "sdk" and asked.get("stream") is True),
        cut=kind == "cut_stream",
        system_fingerprint=captured.system_fingerprint,
        created=passed.created,
        request=request,
        response={name: value for name, value in response.items() if value is not None},
        **counts_of(captured),
    )


def _seconds(headers: Any) -> float | None:
    # What the server asked to wait.
    for name, value in headers or ():
        if str(name).lower() == "retry-after":
            try:
                return float(value)
            except ValueError:
                return None
    return None
