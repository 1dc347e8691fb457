"""One request to one provider through litellm, once: the answer as a Completion, whatever happened.

Retries belong to the pool. What litellm changes on its way to the user (reasoning split off, finish reasons made up,
tool calls rewritten) is read from the response below it instead, so that `raw` is what the model wrote.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import importlib.util
import inspect
import json
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ..values import write_canonical
from .failures import error_kind, error_message, retry_after, status_code
from .litellm_door import hold_logging_worker, ignore_warnings, litellm_module, switch_held, watched_globals
from .local_provider import LOCAL_MODEL, PROVIDER, is_local
from .log_guard import guard_logs
from .redaction import redact_named, redact_strings
from .routes import check_model, counts_streams, opened_address, provider_of, token_cost
from .types import RAW_COMPLETION, Chunk, Completion, EndpointKind, Request

_resolved: set[str] = set()
_RESERVED = frozenset({"model", "messages", "tools", "stream", "timeout", "max_retries", "num_retries", "logger_fn"})


async def complete(request: Request) -> Completion:
    """Asks once and returns the answer; a provider's failure is a Completion with status "error", never an exception.

    Raises UnknownModel for a model string litellm cannot route, MissingModelPackage or MissingExtra where something
    must be installed first, BadOptions for a request that is not JSON.
    """
    check_model(request.model)
    litellm = litellm_module()
    ignore_warnings()
    guard_logs(request.model.secrets)
    if request.model.name in _resolved:
        arguments = _arguments(request)
    else:
        # Resolving a model's route and price takes its time once, which is not part of the answer's latency.
        arguments = await asyncio.to_thread(_arguments, request)
        await asyncio.to_thread(token_cost, request.model, 0, 0)
        _resolved.add(request.model.name)
    answer = _Answer(native=bool(request.tools))
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    failure: BaseException | None = None
    # The embedded model answers one at a time and counts its own time from when it begins.
    limit = None if is_local(request.model.name) else request.model.timeout
    answer.began = time.perf_counter()
    try:
        with switch_held():
            async with asyncio.timeout(limit):
                response = await _asked(litellm.acompletion(**arguments, logger_fn=answer.log), answer)
                if request.stream:
                    await answer.read_stream(response)
                else:
                    answer.read_response(response)
    except Exception as e:
        failure = e
    answer.latency = round(time.perf_counter() - answer.began, 6)
    hold_logging_worker()
    return _completion(request, answer, created, failure)


async def _asked(call: Coroutine[Any, Any, Any], answer: _Answer) -> Any:
    """What the call returns; when cancelled, the call has ended and its connection is closed."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # Cancelled while litellm still prepares the call in a thread, its coroutine would be left unawaited.
        for _ in range(50):
            if task.done() or answer.sent is not None:
                break
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            await _close(task.result())
        raise


def _arguments(request: Request) -> dict[str, Any]:
    model = request.model
    out: dict[str, Any] = {k: v for k, v in request.sent_params.items() if k not in _RESERVED}
    out.update(
        model=model.name,
        messages=[dict(m) for m in request.messages],
        stream=request.stream,
        timeout=model.timeout,
        max_retries=0,
    )
    headers = {**dict(out.get("extra_headers") or {}), **(model.headers or {})}
    query: dict[str, str] = {}
    if model.api_base:
        out["api_base"], login, query = opened_address(model.api_base, provider_of(model.name))
        headers = {**login, **headers}
    if model.api_key:
        out["api_key"] = model.api_key
    if headers:
        out["extra_headers"] = headers
    if query:
        out["extra_query"] = {**query, **dict(out.get("extra_query") or {})}
    if model.extra_body:
        out["extra_body"] = {**dict(out.get("extra_body") or {}), **model.extra_body}
    if request.tools:
        out["tools"] = [dict(t) for t in request.tools]
        if _mcp_breaks_tools():
            out["_skip_mcp_handler"] = True
    if request.stream and "stream_options" not in out and counts_streams(model.name):
        out["stream_options"] = {"include_usage": True}
    return out


@functools.lru_cache(maxsize=1)
def _mcp_breaks_tools() -> bool:
    """litellm 1.106 imports the `mcp` package for any request with tools, and fails where it is not installed."""
    if importlib.util.find_spec("mcp") is not None:
        return False
    main = importlib.import_module("litellm.main")
    try:
        return "_skip_mcp_handler" in inspect.getsource(main)
    except OSError:
        return True


@dataclass(slots=True)
class _Answer:
    """What is being received. A failure in the middle leaves what came before it."""

    native: bool
    began: float = 0.0
    latency: float = 0.0
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)  # index as sent -> the call that its pieces belong to
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    ids: dict[str, Any] = field(default_factory=dict)
    sent: Any = None
    original: Any = None
    got_any: bool = False
    cut: bool = False

    def log(self, details: Mapping[str, Any]) -> None:
        """litellm's `logger_fn`: the body as sent, and the response as it was before litellm read it."""
        body = (details.get("additional_args") or {}).get("complete_input_dict")
        if body:
            self.sent = body
        if details.get("log_event_type") == "post_api_call" and isinstance(details.get("original_response"), str):
            self.original = details["original_response"]

    def read_response(self, response: Any) -> None:
        self._identify(response)
        choice = response.choices[0]
        message = choice.message
        self.finish_reason = choice.finish_reason
        original = _original_choice(self.original)
        if original is not None:
            message = original["message"]
            self.finish_reason = original.get("finish_reason") or self.finish_reason
        self._take(message)
        self.got_any = True

    async def read_stream(self, stream: Any) -> None:
        try:
            async for chunk in _received(stream):
                at = round(time.perf_counter() - self.began, 6)
                self.got_any = True
                self._identify(chunk)
                for choice in (_get(chunk, "choices") or ())[:1]:
                    self.finish_reason = _get(choice, "finish_reason") or self.finish_reason
                    delta = _get(choice, "delta")
                    if delta is not None:
                        self._take(delta, at)
        finally:
            if stream.__class__.__name__ == "CustomStreamWrapper" and not _is_direct(stream):
                # The wrapper says "stop" for a stream that broke off; these two hold what was really received.
                self.finish_reason = stream.received_finish_reason or stream.intermittent_finish_reason
                # Where the provider counted no tokens the wrapper guesses; its chunks hold only what was received.
                counted = [u for c in stream.chunks if (u := _get(c, "usage"))]
                self.usage = _plain(counted[-1]) if counted else None
            await _close(stream)
        self.cut = self.finish_reason is None

    def _identify(self, response: Any) -> None:
        for name in ("id", "model", "system_fingerprint", "service_tier"):
            value = _get(response, name)
            if isinstance(value, str) and value:
                self.ids.setdefault(name, value)
        usage = _get(response, "usage")
        if usage:
            self.usage = _plain(usage)

    def _take(self, message: Any, at: float | None = None) -> None:
        thought = _get(message, "reasoning_content") or _get(message, "reasoning")
        if isinstance(thought, str) and thought:
            self.reasoning.append(thought)
            if at is not None:
                self.chunks.append(Chunk(at, thought, "reasoning"))
        text = _get(message, "content")
        if isinstance(text, str) and text:
            self.content.append(text)
            if at is not None:
                self.chunks.append(Chunk(at, text))
        legacy = _get(message, "function_call")
        calls = _get(message, "tool_calls") or ([{"index": 0, "function": legacy}] if legacy else [])
        for n, call in enumerate(calls):
            index = _get(call, "index")
            # A whole message has whole calls, whatever index they have.
            piece = self._take_call(call, index if isinstance(index, int) and at is not None else n)
            if at is not None and piece:
                self.chunks.append(Chunk(at, piece))

    def _take_call(self, call: Any, index: int) -> str:
        """A call or a piece of one. A new id and name under a known index begin a call of their own: some servers give
        all parallel calls the index 0."""
        function, new_id = _get(call, "function"), _get(call, "id")
        name, arguments = _get(function, "name") or "", _get(function, "arguments")
        place = self.places.get(index)
        if place is None or (new_id and name and self.calls[place]["id"] not in (None, new_id)):
            place = self.places[index] = len(self.calls)
            self.calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
        kept = self.calls[place]
        if new_id:
            kept["id"] = new_id
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            arguments = write_canonical(_plain(arguments))  # some servers send the object itself
        kept["function"]["name"] += name
        kept["function"]["arguments"] += arguments
        return name + arguments

    @property
    def raw(self) -> str:
        text = _joined("".join(self.content))
        if not self.native and not self.calls:
            return text
        return write_canonical({"content": text or None, "tool_calls": self.calls})


def _original_choice(text: Any) -> dict[str, Any] | None:
    """The first choice of an OpenAI-shaped response body, or None where the provider speaks otherwise."""
    if not isinstance(text, str) or not text.startswith("{"):
        return None
    try:
        choice = json.loads(text)["choices"][0]
        return choice if isinstance(choice["message"], dict) else None
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None


_DIRECT = frozenset({"AsyncStream", "OpenAIChatCompletionStreamingHandler"})


def _is_direct(stream: Any) -> bool:
    inner = getattr(stream, "completion_stream", None)
    return type(inner).__name__ in _DIRECT or getattr(stream, "custom_llm_provider", None) == PROVIDER


async def _received(stream: Any) -> AsyncIterator[Any]:
    """The chunks as the provider's client gives them, where they have OpenAI's shape; else litellm's own."""
    # litellm's wrapper costs up to 1 ms a chunk and changes finish reasons.
    source = stream.completion_stream if _is_direct(stream) else stream
    async for chunk in source:
        if chunk is not None:
            yield chunk


async def _close(stream: Any) -> None:
    inner = getattr(stream, "completion_stream", None)
    for closable in (inner, getattr(inner, "response", None)):
        close = getattr(closable, "aclose", None) or getattr(closable, "close", None)
        if close is not None:
            with contextlib.suppress(Exception):
                result = close()
                if inspect.isawaitable(result):
                    await result


def _get(obj: Any, name: str) -> Any:
    return obj.get(name) if isinstance(obj, Mapping) else getattr(obj, name, None)


def _plain(obj: Any) -> Any:
    """Pydantic objects as JSON without their empty members."""
    if hasattr(obj, "model_dump"):
        obj = obj.model_dump()
    if isinstance(obj, Mapping):
        return {str(k): _plain(v) for k, v in obj.items() if v is not None}
    if isinstance(obj, (list, tuple)):
        return [_plain(v) for v in obj]
    return obj if isinstance(obj, (str, int, float, bool)) or obj is None else str(obj)


def _joined(text: str) -> str:
    """Surrogate pairs that were split over two chunks as one character; lone surrogates stay."""
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _sent_body(request: Request, sent: Any) -> dict[str, Any] | None:
    """The body as sent, without what the request says already: messages and tools appear where they differ, as null
    where they were not sent at all."""
    if isinstance(sent, (str, bytes)):
        try:
            sent = json.loads(sent)
        except ValueError:
            return None
    if not isinstance(sent, Mapping):
        return None
    body = _plain(sent)
    for name, asked in (("messages", request.messages), ("tools", request.tools)):
        if name in body and body[name] == _plain([dict(x) for x in asked]):
            del body[name]
        elif asked:
            body.setdefault(name, None)
    redacted: dict[str, Any] = redact_named(body)
    return redacted


def _completion(request: Request, answer: _Answer, created: str, failure: BaseException | None) -> Completion:
    model = request.model
    secrets = model.secrets
    kind: str | None = None
    message: str | None = None
    response: dict[str, Any] = dict(answer.ids)
    if answer.usage:
        response["usage"] = answer.usage
    sent = _sent_body(request, answer.sent)
    if sent is not None:
        response["sent"] = sent
    switches = watched_globals()
    if switches:
        response["litellm"] = switches
    raw = answer.raw if answer.got_any else ""
    cut = answer.cut
    if failure is not None:
        kind, message = error_kind(failure), error_message(failure, secrets)
        if isinstance(failure, TimeoutError) and not str(failure):
            message = f"no finished answer after {model.timeout:g} s"
        cut = bool(request.stream and answer.got_any and answer.finish_reason is None)
        if cut and kind == "connection":
            kind = "cut_stream"
        status = status_code(failure)
        if status is not None:
            response["status_code"] = status
        wait = retry_after(failure)
        if wait is not None:
            response["retry_after"] = wait
    elif cut:
        kind, message = "cut_stream", "the stream ended without a finish part"
    usage = answer.usage or {}
    given, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
    endpoint: EndpointKind = "native_tools" if request.tools or answer.calls else "chat_text"
    if model.name.startswith(RAW_COMPLETION):
        endpoint = "raw_completion"
    return Completion(
        key=request.key,
        raw=raw,
        status="ok" if kind is None else "error",
        error_kind=kind,
        error_message=message,
        finish_reason=answer.finish_reason,
        prompt_tokens=given if isinstance(given, int) else None,
        completion_tokens=made if isinstance(made, int) else None,
        cost=token_cost(model, given, made),
        latency=answer.latency,
        ttft=answer.chunks[0].at if answer.chunks else None,
        chunks=tuple(answer.chunks),
        reasoning=_joined("".join(answer.reasoning)),
        endpoint_kind=endpoint,
        stream=request.stream,
        cut=cut,
        system_fingerprint=answer.ids.get("system_fingerprint"),
        created=created,
        request=request.to_dict(),
        response=redact_strings(response, secrets) or None,
    )


__all__ = ["LOCAL_MODEL", "check_model", "complete", "token_cost"]
