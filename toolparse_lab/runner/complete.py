"""One request to one provider through litellm, once: the answer as a Completion, whatever happened.

Retries belong to the pool. What litellm changes on its way to the user is undone in `answer`, so
that `raw` is the model's own text.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
import traceback
from collections.abc import Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ..core.types.call_pieces import joined
from .answer import Answer, NotAStream, close_stream, plain
from .exchange.details import is_same_model, token_details, told_by_headers
from .exchange.redaction import redact, redact_named, redact_strings
from .exchange.types import RAW_COMPLETION, Completion, EndpointKind, Model, Request
from .failures import (
    LONGEST_MESSAGE,
    ReportedError,
    error_kind,
    error_message,
    failure_in,
    kind_of_exception,
    kind_of_status,
    reported_kind,
    retry_after,
    status_code,
)
from .litellm_door import recording_litellm, text_client, watched_globals
from .litellm_faults import allow_tools_without_mcp, hold_logging_worker, unchanged_switches
from .local.provider import LOCAL_MODEL, is_local
from .routes import (
    check_model,
    count_tokens,
    counts_streams,
    note_refusal,
    opened_address,
    provider_of,
    refused_param,
    token_cost,
)
from .streams import TooLarge, keep_finish_parts

# A filter is for one logger and not for those below it, so each has its name here. They are
# those of litellm, of the clients that it asks by, and of what these sign requests with.
_LOGGERS = (
    "LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm", "litellm_logger", "aiohttp.client",
    "aiohttp.internal", "asyncio", "openai", "openai._base_client", "openai._client",
    "openai._response", "openai._legacy_response", "openai.agents", "anthropic",
    "anthropic._base_client", "anthropic._client", "anthropic._response", "httpx", "httpcore",
    "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpx2", "httpcore2",
    "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore.proxy",
    "httpcore.socks", "httpcore2.proxy", "httpcore2.socks", "hpack", "hpack.hpack", "hpack.table",
    "h2.config", "urllib3.connectionpool", "urllib3.connection", "urllib3.util.retry", "requests",
    "requests_oauthlib", "oauthlib", "websockets.client", "websockets.server", "boto3",
    "boto3.resources", "google.auth", "google.auth.transport.requests",
    "google.auth.transport._http_client", "google.oauth2", "azure", "azure.identity",
    "azure.core.pipeline.policies.http_logging_policy", "azure.identity._internal.decorators",
    "msal", "msal.application", "msal.token_cache", "msal.authority",
    *(f"botocore.{part}" for part in (
        "auth", "awsrequest", "client", "configprovider", "credentials", "endpoint", "eventstream",
        "handlers", "hooks", "httpchecksum", "httpsession", "loaders", "parsers", "regions",
        "retryhandler", "session", "tokens", "utils",
    )),
)  # fmt: skip
# Members of a record that logging itself writes; every other one is the caller's `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
# Every secret of this process that was used for a call; logs are written at any later moment.
_secrets: set[str] = set()


class KeysOut(logging.Filter):
    """Rewrites records that have a credential. Costs nothing if no one listens at that level."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take credentials out of a record. Every record is let through."""
        try:
            message = record.getMessage()
        except Exception:  # arguments that do not fit: logging would print them as they are
            message = f"{record.msg} {record.args!r}"
            record.msg, record.args = message, ()
        clean = redact(message, _secrets)
        args: object = record.args
        values = args.values() if isinstance(args, Mapping) else args or ()
        plain = isinstance(values, Iterable) and all(map(_is_plain, values))
        if clean != message or not plain:
            # A request or an error among the arguments has its headers, whatever its text says.
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            whole = "".join(traceback.format_exception(*record.exc_info)).rstrip()
            # A formatter takes this text instead of writing the exception itself.
            record.exc_text = redact(whole, _secrets)
            # Some handlers write the exception in a way of their own, with all that is in it.
            record.exc_info = None
        if record.stack_info:
            record.stack_info = redact(record.stack_info, _secrets)
        for name in vars(record).keys() - _STANDARD:
            value = getattr(record, name)
            if isinstance(value, str):
                setattr(record, name, redact(value, _secrets))
            elif isinstance(value, Mapping):
                setattr(record, name, redact_strings(redact_named(value), _secrets))
            elif not _is_plain(value):
                setattr(record, name, redact(repr(value), _secrets))
        return True


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, type(None)))


_guard = KeysOut()


def guard_logs(secrets: Iterable[str]) -> None:
    """Let `secrets` appear in no later record of these loggers. They are in memory only."""
    _secrets.update(secrets)
    _guard_loggers()


@functools.cache
def _guard_loggers() -> None:
    # Once in a process: there are many of them.
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_guard)


# Models whose route and price have been looked up in this process.
_resolved: set[str] = set()
# Finish reasons that say that the answer has failed.
_FAILED = frozenset({"error", "network_error", "insufficient_system_resource"})
# Kinds of a failure that a client may make up for a stream that ended.
_UNEXPLAINED = frozenset({"server_error", "other"})
_LONGEST_BODY = 100_000  # characters of a response that is no answer
# Arguments that are this module's to set, whatever a request's parameters say.
_RESERVED = frozenset(
    {"model", "messages", "tools", "stream", "timeout", "max_retries", "num_retries", "logger_fn"}
)


async def complete(request: Request) -> Completion:
    """Ask once and return the answer.

    A provider's failure is a Completion with status "error", never an exception.

    Raises UnknownName for a model string litellm cannot route, SetupError or MissingExtra
    where something must be installed first, BadOptions for a request that is not JSON.
    """
    # Everything up to the clock's start raises what is the caller's to mend.
    check_model(request.model)
    litellm = recording_litellm()
    guard_logs(request.secrets)
    if request.model.name in _resolved:
        arguments = _arguments(request)
    else:
        # Resolving a model's route and price takes its time once, which is not part of the answer's
        # latency.
        arguments = await asyncio.to_thread(_arguments, request)
        await asyncio.to_thread(token_cost, request.model, 0, 0)
        _resolved.add(request.model.name)

    if request.model.name.startswith(f"{RAW_COMPLETION}openai/"):
        client = text_client(arguments.get("api_base"), arguments.get("api_key"))
        arguments |= {} if client is None else {"client": client}

    answer = Answer(native=bool(request.tools), room=request.model.max_answer)
    created = datetime.now(UTC).isoformat(timespec="milliseconds")
    failure: BaseException | None = None
    # The embedded model answers one at a time and counts its own time from when it begins.
    limit = None if is_local(request.model.name) else request.model.timeout
    answer.started = time.perf_counter()
    try:
        with unchanged_switches, answer.body_end:
            # The time of the whole answer: litellm's own time-out is one of each chunk.
            async with asyncio.timeout(limit):
                call = litellm.acompletion(**arguments, logger_fn=answer.log)
                response = await _result_of(call, answer)
                if request.stream:
                    await answer.read_stream(response)
                else:
                    answer.read_response(response)
    except Exception as e:
        failure = e
        if not request.stream and not isinstance(e, TooLarge) and answer.recover():
            failure = TooLarge() if answer.room < 0 else None
    # Clients hide why a response was read no further.
    failure = answer.body_end.refusal or failure
    answer.latency = round(time.perf_counter() - answer.started, 6)
    hold_logging_worker()
    completion = completion_of(request, answer, created, failure)
    if completion.error_kind in ("bad_request", "not_found") and _names_responses(completion):
        only = _by_responses(request)
        if only not in _responses_only:
            _responses_only.add(only)
            return await complete(request)
    return completion


# Models that an endpoint answers by the Responses API alone, each with or without tools: as gpt-5.4
# and later take tools while they reason. Learnt from the endpoint's own refusal.
_responses_only: set[tuple[str, str, bool]] = set()
_OPENAI = "openai/"


def _by_responses(request: Request) -> tuple[str, str, bool]:
    return request.model.name, request.model.endpoint, bool(request.tools)


def _names_responses(completion: Completion) -> bool:
    # "Function tools with reasoning_effort are not supported for … in /v1/chat/completions. Please
    # use /v1/responses instead.", "This model is only supported in v1/responses …"
    return "v1/responses" in (completion.error_message or "")


def _route(request: Request) -> str:
    # The model string that litellm is given.
    name = request.model.name
    if _responses_only and name.startswith(_OPENAI) and _by_responses(request) in _responses_only:
        return f"{_OPENAI}responses/{name.removeprefix(_OPENAI)}"
    return name


async def _result_of(call: Coroutine[Any, Any, Any], answer: Answer) -> Any:
    # When cancelled, the call has ended and its connection is closed.
    task: asyncio.Task[Any] = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # Cancelled while litellm still prepares the call in a thread, its coroutine would be left
        # unawaited: half a second at most is waited for that.
        for _ in range(50):
            if task.done() or answer.body is not None:
                break
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            await close_stream(task.result())
        raise


def _arguments(request: Request) -> dict[str, Any]:
    # Credentials included: the result is passed to nothing but litellm. The request's own
    # parameters come first; the model's address, headers and body are laid over them.
    model = request.model
    params = request.sent_params
    out = {k: v for k, v in params.items() if k not in _RESERVED and v is not None}
    out.update(
        model=_route(request),
        messages=list(map(dict, request.messages)),
        stream=request.stream,
        timeout=model.timeout,
        max_retries=0,  # retries are the pool's, which counts and records each
    )
    # The login becomes a header, the query goes apart: providers' clients would lose the query, or
    # refuse the login next to a key. The model's headers win over those of the parameters, both
    # over the login.
    headers = {**(out.get("extra_headers") or {}), **(model.headers or {})}
    if model.api_base:
        address, login, query = opened_address(model.api_base, provider_of(model.name))
        out["api_base"] = address
        headers = {**login, **headers}
        if query:
            out["extra_query"] = {**query, **(out.get("extra_query") or {})}
    if headers:
        out["extra_headers"] = headers
    if model.api_key:
        out["api_key"] = model.api_key
    if model.extra_body:
        out["extra_body"] = {**(out.get("extra_body") or {}), **model.extra_body}
    allow_tools_without_mcp()
    if request.tools:
        out["tools"] = list(map(dict, request.tools))
    if request.stream:
        keep_finish_parts(_route(request), provider_of(model.name))
        # Without it the last chunk has no usage, and the price of the answer stays unknown.
        if "stream_options" not in out and counts_streams(model.name):
            out["stream_options"] = {"include_usage": True}
    return out


# -- what became of it


class _Failure(NamedTuple):
    kind: str | None = None
    message: str | None = None
    cut: bool = False


def _failure_of(request: Request, answer: Answer, e: BaseException | None) -> _Failure:
    # e: None for an answer that came to its end, in whatever way.
    if isinstance(e, TooLarge):
        limit = f"the answer has more than {request.model.max_answer:,} bytes (Model.max_answer)"
        return _Failure("too_large", limit, cut=True)
    if e is None:
        if answer.cut:
            return _Failure("cut_stream", "the stream ended without a finish part", cut=True)
        if answer.finish_reason in _FAILED:
            said = f"the provider ended the answer with the reason {answer.finish_reason!r}"
            reported = reported_kind(answer.reported) or "server_error"
            message = answer.reported.get("message") if answer.reported else None
            text = redact(f"{said}: {message}" if message else said, request.secrets)
            return _Failure(reported, text[:LONGEST_MESSAGE])
        return _Failure()

    kind = _seen_kind(request, answer, e)
    message = error_message(e, request.secrets)
    if "choices" in (body := answer.own_object() or {}) and (no_answer := failure_in(body)):
        message = no_answer[1]
    if isinstance(e, TimeoutError) and not str(e):
        message = f"no finished answer after {request.model.timeout:g} s"
    if not request.stream or answer.finish_reason is not None:
        return _Failure(kind, message)
    # A stream without a finish part. What came of it stays in the record, as a cut stream, though
    # it may have broken off before any piece could be read.
    end = answer.body_end
    page = end.kind.startswith(("text/html", "text/plain"))
    began = answer.got_any or (end.began and end.status == 200 and not page)
    # Providers' clients and litellm's versions each have their own exception for it, some with a
    # status that no server sent. An error that the server wrote into the stream is found while
    # more bytes may come, or has a kind of its own.
    named = isinstance(e, (NotAStream, ReportedError)) or end.error is not None
    ended = kind == "connection" or (end.reached and kind in _UNEXPLAINED)
    if began and ended and not named:
        return _Failure("cut_stream", message, cut=True)
    return _Failure(kind, message, cut=answer.got_any)


def _seen_kind(request: Request, answer: Answer, e: BaseException) -> str:
    # What the server itself said, where litellm changed that.
    kind: str = error_kind(e)
    end = answer.body_end
    if end.error is not None:
        return reported_kind(end.error) or kind
    if kind in ("bad_request", "other", "connection", "server_error"):
        if end.status == 200 and not request.stream and (text := end.text()) is not None:
            try:
                response = json.loads(text)
            except (ValueError, RecursionError):
                broke_off = text.lstrip().startswith(("{", "["))
                return "connection" if broke_off else "server_error"
            # The Responses API puts an error inside an answer.
            if (failed := failure_in(response)) is not None:
                return failed[0]
            error = response.get("error") if isinstance(response, dict) else None
            if error is not None or not isinstance(response, (dict, list)):
                return reported_kind(error) or "server_error"
            return kind
        if kind == "bad_request":
            return kind_of_status(end.status) or kind_of_exception(str(e)) or kind
    return kind


def _response_record(
    request: Request, answer: Answer, raw: str, e: BaseException | None
) -> dict[str, Any] | None:
    # All of it is redacted. None if there is nothing to say.
    end = answer.body_end
    record: dict[str, Any] = {**told_by_headers(end.headers), **answer.ids}
    address = end.address
    if address is not None:
        record["endpoint"] = address.path
        if "provider" not in record and _is_elsewhere(request, answer):
            record["provider"] = f"{address.scheme}://{address.netloc.decode('ascii')}"
    if answer.usage:
        record["usage"] = answer.usage
    # The bytes that passed say more than what litellm logs before it translates them.
    body = _sent_body(request, end.sent or answer.body)
    if body is not None:
        record["sent"] = body
    switches = watched_globals()
    if switches:
        record["litellm"] = switches
    if e is not None:
        # The wait is read again by the lane, which decides when to ask again.
        details = {"status_code": status_code(e), "retry_after": retry_after(e)}
        record.update((name, value) for name, value in details.items() if value is not None)
        if error_kind(e) == "bad_request":
            params = {k: v for k, v in request.sent_params.items() if v is not None}
            if request.tools:
                params["tools"] = True
            message = f"{answer.original or ''} {getattr(e, 'body', None) or ''} {e}"
            name = refused_param(message, params)
            if name:
                record["refused"] = name
                # Kept for the plans that this process makes later.
                note_refusal(request.model, params, name, message)
        if isinstance(answer.original, str) and not answer.got_any:
            # Redacted before it is cut, as the beginning of a key is not recognised as one.
            record["body"] = redact(answer.original, request.secrets)[:_LONGEST_BODY]
    tokens = answer.tokens.tokens(raw) if answer.got_any else None
    if tokens is not None:
        record["tokens"] = tokens.to_dict()
    if answer.calls.shares_an_index:
        record["shares_an_index"] = True
    return redact_strings(record, request.secrets) or None


def _fallbacks(request: Request) -> dict[str, Mapping[str, Any]]:
    # The models that may answer in the place of the one that is asked, with what is known of each:
    # litellm's own, and those that OpenRouter is sent.
    params = request.sent_params
    extra = {**(params.get("extra_body") or {}), **(request.model.extra_body or {})}
    prefix = request.model.name.partition("/")[0]
    found: dict[str, Mapping[str, Any]] = {}
    for fallback in params.get("fallbacks") or ():
        known = fallback if isinstance(fallback, Mapping) else {"model": fallback}
        found[str(known.get("model") or request.model.name)] = known
    for name in (*(params.get("models") or ()), *(extra.get("models") or ())):
        found[f"{prefix}/{name}"] = {}
    return found


def _is_elsewhere(request: Request, answer: Answer) -> bool:
    # A fallback of litellm's may be the same model at another address.
    if not request.sent_params.get("fallbacks"):
        return False
    served, base = answer.ids.get("model"), request.model.endpoint
    if base:
        return not str(answer.body_end.address).startswith(base)
    return served is not None and not is_same_model(request.model.name, served)


def _answered_by(request: Request, served: str | None) -> Model:
    # The model that an answer is priced as.
    asked = request.model
    if served is None or is_same_model(asked.name, served):
        return asked
    for name, known in _fallbacks(request).items():
        if is_same_model(name, served):
            sent, received = (known.get(f"{way}_cost_per_token") for way in ("input", "output"))
            price = None if sent is None or received is None else (sent * 1e6, received * 1e6)
            return Model(name, price=price)
    # Its name is an alias of the endpoint's, whose price is the user's to say, or a list's.
    named = Model(f"{asked.name.partition('/')[0]}/{served}")
    if asked.price is None and token_cost(named, 0, 0) is not None:
        return named
    return asked


def _sent_body(request: Request, body: Any) -> dict[str, Any] | None:
    # Without the members that the request has already: messages and tools appear where they differ,
    # as null where they were not sent. body: as litellm logged it, a dict or JSON text.
    if isinstance(body, (str, bytes)):
        try:
            body = json.loads(body)
        except ValueError:
            return None
    if not isinstance(body, (dict, Mapping)):
        return None

    asked = {"messages": list(request.messages), "tools": list(request.tools)}
    members = plain({name: member for name, member in body.items() if name not in asked})
    for name, requested in asked.items():
        sent = body.get(name)
        if sent != requested and (sent := plain(sent) or None) != (plain(requested) or None):
            members[name] = sent
    redacted: dict[str, Any] = redact_named(members)
    return redacted


def completion_of(
    request: Request, answer: Answer, created: str, e: BaseException | None
) -> Completion:
    """Return the record of an answer, without the fields that only the pool knows.

    `e` is the exception that ended it, `created` when it was asked (ISO).
    """
    failure = _failure_of(request, answer, e)
    usage = answer.usage or {}
    # Some servers send usage with null in it, or zeros beside an answer, which count nothing.
    prompt_tokens, completion_tokens = [
        count if isinstance(count, int) and (count or not answer.got_text) else None
        for count in (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    ]
    raw = answer.raw if answer.got_any else ""
    response = _response_record(request, answer, raw, e)
    if usage.get("completion_tokens") == 0 and completion_tokens is None:
        estimate = count_tokens(raw + (joined(answer.reasoning) or ""))
        response = {**(response or {}), "tokens_estimate": estimate}
    details = token_details({"usage": usage})
    # Decides how `raw` is read. An answer with calls is native even where no tools were offered:
    # its text alone would lose them.
    endpoint_kind: EndpointKind = "native_tools" if request.tools or answer.calls else "chat_text"
    if request.model.name.startswith(RAW_COMPLETION):
        endpoint_kind = "raw_completion"
    cost = token_cost(
        _answered_by(request, answer.ids.get("model")),
        prompt_tokens,
        completion_tokens,
        cached=details["cached_tokens"],
        cache_write=details["cache_write_tokens"],
    )
    return Completion(
        key=request.key,
        raw=raw,
        status="ok" if failure.kind is None else "error",
        error_kind=failure.kind,
        error_message=failure.message,
        finish_reason=answer.finish_reason,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost=cost,
        latency=answer.latency,
        ttft=answer.chunks[0].at if answer.chunks else None,
        chunks=tuple(answer.chunks),
        reasoning=joined(answer.reasoning),
        endpoint_kind=endpoint_kind,
        stream=request.stream,
        cut=failure.cut,
        system_fingerprint=answer.ids.get("system_fingerprint"),
        created=created,
        request=request.to_dict(),
        response=response,
    )


__all__ = ["LOCAL_MODEL", "check_model", "complete", "token_cost"]
