"""A provider's failure as a class of the `error_kind` vocabulary, a redacted message, and the wait
it asks for.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from .exchange.redaction import redact
from .exchange.types import ErrorKind

RETRIABLE: frozenset[str] = frozenset(
    {"timeout", "rate_limited", "server_error", "connection", "cut_stream"}
)
"""Failures that may go away by asking again."""


class ReportedError(Exception):
    """An error that a server wrote where an answer was awaited.

    The message holds its words, `body` the error and `event` what it came in.
    """

    def __init__(self, error: Any, event: Any = None) -> None:
        self.body = error if isinstance(error, Mapping) else {"message": error}
        if isinstance(event, Mapping) and "code" in event:
            self.body = {"code": event["code"], **self.body}
        super().__init__(str(self.body.get("message") or error))


# How a failure is classed. Providers' clients, litellm and asyncio each have exceptions of their
# own, and litellm maps many of them wrongly. So the sources are asked from sure to vague: the class
# by name (no client is imported for it), the kind of error below it, the HTTP status, and the class
# again where it is one of the two that litellm gives to everything it does not understand.

# First match wins: a class, then what its subclasses say more precisely.
_BY_CLASS: tuple[tuple[str, ErrorKind], ...] = (
    ("ContextWindowExceededError", "context_overflow"),
    ("ContentPolicyViolationError", "refused"),
    ("RateLimitError", "rate_limited"),
    ("AuthenticationError", "auth"),
    ("PermissionDeniedError", "auth"),
    ("NotFoundError", "not_found"),
    ("Timeout", "timeout"),
    ("APITimeoutError", "timeout"),
    ("TimeoutError", "timeout"),
    ("TimeoutException", "timeout"),
    ("ServiceUnavailableError", "server_error"),
    ("BadGatewayError", "server_error"),
    ("UnprocessableEntityError", "bad_request"),
    ("UnsupportedParamsError", "bad_request"),
    ("BadRequestError", "bad_request"),
    ("UnicodeEncodeError", "bad_request"),
)
# What servers answer with a plain 400, and which no retry and no other question would mend.
_OVERFLOW = re.compile(
    r"(?i)context[ _](?:length|size|window)|maximum context|exceed_context|prompt is too long"
    r"|too many (?:input )?tokens|input is too long|maximum prompt length"
    r"|tokens \+ .max_new_tokens. must be|maximum number of tokens"
    r"|reduce the length of the messages"
)
_REFUSED = re.compile(
    r"(?i)content[ _](?:policy|filter|management policy)|safety (?:system|filter)|responsibleai"
)
_CONNECTION = re.compile(
    r"(?i)connection (?:error|refused|reset|aborted)|cannot connect|peer closed"
    r"|server disconnected|name resolution"
    r"|incomplete (?:chunked )?read|payload is not completed|getaddrinfo"
)
# No socket was opened: nobody listens there, or the name is no host's. Each client has its words.
_NOBODY = re.compile(
    r"(?i)cannot connect to host|connect call failed|connection refused"
    r"|all connection attempts failed|name or service not known|nodename nor servname"
    r"|name resolution|getaddrinfo|no address associated|no route to host|network is unreachable"
)
# A prompt with a lone surrogate, which no JSON over HTTP can carry.
_UNSENDABLE = re.compile(r"codec can't encode|surrogates not allowed")
# litellm and the clients below it raise anything for a key that nobody set, even a server's error.
_NO_KEY = re.compile(
    r"(?i)missing (?:\w+ )?(?:credentials|api[ _]?key)|api[ _]?key (?:client option )?must be set"
    r"|(?:no|without an?) api[ _]?key"
    r"|api[ _]?key (?:is |was )?(?:missing|not (?:set|found|provided))"
)
PACKAGES = {"google": "google-cloud-aiplatform", "boto3": "boto3", "botocore": "boto3"}
"""Module of a provider -> the package that has it, in the words of litellm's own messages."""
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,6}(?:\.\d{1,9})?)s"')
_TIMED_OUT = re.compile(r"(?i)\btimed? ?out\b")
LONGEST_MESSAGE = 500


_BY_STATUS: Mapping[int, ErrorKind] = MappingProxyType(
    {
        401: "auth",
        403: "auth",
        404: "not_found",
        408: "timeout",
        413: "context_overflow",
        424: "server_error",  # the model, or the server behind this one, has failed
        429: "rate_limited",
        504: "timeout",
    }
)


# The names that servers give an error in `code`, `type` or `status`, from the most telling on.
_BY_NAME: tuple[tuple[str, ErrorKind], ...] = (
    (r"context_?(?:length|size|window)|exceed_context|request_too_large", "context_overflow"),
    (r"content_?(?:filter|policy)|moderation|invalid_prompt|guardrail", "refused"),
    (r"rate_?limit|resource_?exhausted|throttl|too_?many_?requests|insufficient_quota"
     r"|quota_?exceeded", "rate_limited"),
    (r"time_?out|deadline", "timeout"),
    (r"authenti|permission|unauthori[sz]ed|access_?denied|invalid_api_key|forbidden", "auth"),
    (r"not_?found", "not_found"),
    (r"overloaded|unavailable|server_?error|internal|api_error|upstream|bad_?gateway|server_busy"
     r"|model_?(?:stream_?)?error", "server_error"),
    (r"invalid|bad_?request|validation|unprocessable|failed_precondition", "bad_request"),
)  # fmt: skip


def reported_kind(error: Any) -> ErrorKind | None:
    """Return the kind of an error by what the server itself says of it, None if that is nothing.

    error: the object in the stream. Its status counts first, then its names, then its words.
    """
    if not isinstance(error, Mapping):
        return None
    message = str(error.get("message") or "")
    for value in (error.get("code"), error.get("status"), error.get("http_status")):
        by_status = _kind_by_status(_status(value), message)
        if by_status is not None:
            return by_status
    names = [error.get(name) for name in ("code", "type", "status", "error_type")]
    text = " ".join(name for name in names if isinstance(name, str))
    kind = next((k for words, k in _BY_NAME if re.search(words, text, re.IGNORECASE)), None)
    if kind in (None, "bad_request"):
        if _OVERFLOW.search(message):
            return "context_overflow"
        if _REFUSED.search(message):
            return "refused"
    return kind


def kind_of_body(text: str) -> ErrorKind | None:
    """Return the kind of a whole answer's body that cannot be read: it broke off, or is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "connection" if text.lstrip().startswith(("{", "[")) else "server_error"
    return None if isinstance(value, (dict, list)) else "server_error"


def kind_of_exception(message: str) -> ErrorKind | None:
    """Return the kind of the exception that Bedrock sent in a stream, by its name."""
    found = re.search(r"\b(\w{1,60}Exception) \{", message)
    return None if found is None else reported_kind({"type": found[1], "message": message})


def kind_of_status(status: int | None) -> ErrorKind | None:
    """Return the kind that an HTTP status alone tells, None where it does not."""
    return None if status is None else _BY_STATUS.get(status)


def _chain(e: BaseException) -> Iterator[BaseException]:
    # From the outside in. A circle ends it. Clients wrap exceptions several times, and the one that
    # says what happened is the innermost.
    visited: set[int] = set()
    at: BaseException | None = _unwrapped(e)
    while at is not None and id(at) not in visited:
        visited.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _unwrapped(e: BaseException) -> BaseException:
    # litellm gives every failure of a stream a wrapper.
    inner = getattr(e, "original_exception", None)
    if type(e).__name__ == "MidStreamFallbackError" and isinstance(inner, BaseException):
        return _unwrapped(inner)
    return e


def error_kind(e: BaseException) -> ErrorKind:
    """Return the class of a failure.

    Every exception has one. `other` is for anything else.

    It decides the next step: whether the question is asked again, and whether its endpoint is given
    up.
    """
    e = _unwrapped(e)
    message = str(e)
    if _missing_module(e) is not None:
        return "setup"
    names = {c.__name__ for c in type(e).__mro__}
    if isinstance(e, ReportedError):
        return reported_kind(e.body) or "server_error"
    if isinstance(e, asyncio.TimeoutError):
        return "timeout"
    if _UNSENDABLE.search(message):
        return "bad_request"

    if status_code(e) in (None, 500) and _NO_KEY.search(message):
        return "auth"

    by_class = _kind_by_class(names, message)
    if by_class is not None:
        return by_class
    # litellm reports a refused or reset connection as an internal server error.
    if _is_connection_failure(e, message):
        return "timeout" if _TIMED_OUT.search(message) else "connection"

    # litellm gives its APIConnectionError a status that no server sent.
    if "APIConnectionError" in names:
        return "connection"
    by_status = _kind_by_status(status_code(e), message)
    if by_status is not None:
        return by_status
    # An error in a stream has no status, and OpenAI's client keeps it as it came.
    body = getattr(e, "body", None)
    if "APIError" in names and isinstance(body, (Mapping, str)) and body:
        return reported_kind(body) or "server_error"
    return _kind_by_default(names)


def _missing_module(e: BaseException) -> str | None:
    # litellm imports a provider's package with the first call, and gives what is raised then the
    # class of a lost connection or of a failed server.
    for cause in _chain(e):
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            # What was raised while another package was looked for in vain does not speak of it.
            speaks = str(cause) in str(e) or "pip install" in str(e)
            return cause.name.partition(".")[0] if speaks else None
    return None


def _kind_by_default(names: set[str]) -> ErrorKind:
    # `other` is not retried, because no one knows what that would cost.
    if "TransportError" in names:
        return "connection"
    return "server_error" if "InternalServerError" in names else "other"


def _kind_by_class(names: set[str], message: str) -> ErrorKind | None:
    # names: of the whole class hierarchy, since clients derive their classes from each other's. The
    # message tells a prompt that is too long, or filtered, from other refused requests.
    kind = next((kind for name, kind in _BY_CLASS if name in names), None)
    if kind != "bad_request":
        return kind
    if _OVERFLOW.search(message):
        return "context_overflow"
    return "refused" if _REFUSED.search(message) else kind


def _is_connection_failure(e: BaseException, message: str) -> bool:
    # Clients that hide the exception below them still name it in their message.
    if any(isinstance(cause, (ConnectionError, OSError)) for cause in _chain(e)):
        return True
    return _CONNECTION.search(message) is not None


def is_nobody(kind: str | None, message: str | None) -> bool:
    """Return True for a failure before any server was reached: a refused connection, an unknown
    host.

    A connection that broke off later was somebody's. `kind` and `message` are those of the
    completion.
    """
    return kind == "connection" and _NOBODY.search(message or "") is not None


def status_code(e: BaseException) -> int | None:
    # Clients keep it under two names, as a number or as text.
    e = _unwrapped(e)
    # A stream has begun with 200; the status of its failure is a member of the error's body.
    body = getattr(e, "body", None)
    in_body = body.get("code") if isinstance(body, dict) else None
    for value in (getattr(e, "status_code", None), getattr(e, "code", None), in_body):
        status = _status(value)
        if status is not None:
            return status
    return None


def _status(value: Any) -> int | None:
    # Members called `code` hold many things, such as "context_length_exceeded".
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if isinstance(value, int) and 100 <= value < 600:
        return value
    return None


def _kind_by_status(status: int | None, message: str) -> ErrorKind | None:
    # The message tells a prompt that is too long from other bad requests.
    if status is None:
        return None
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if 400 <= status < 500:
        if _OVERFLOW.search(message):
            return "context_overflow"
        return "refused" if _REFUSED.search(message) else "bad_request"
    return "server_error" if status >= 500 else None


def error_message(e: BaseException, secrets: tuple[str, ...] = ()) -> str:
    """Return one redacted line of at most 500 characters: the provider's own message, as far as
    there is one, without the class names and tracebacks that clients put around it.

    `secrets` are credentials used for the call. Those of the environment are removed as well.
    """
    e = _unwrapped(e)
    text = str(e).strip() or type(e).__name__
    # litellm's error of a broken stream says its message, and then that of the exception in it,
    # which is the same one.
    within = getattr(e, "original_exception", None)
    if within is not None and (inner := str(within).strip()) and text.endswith(inner):
        text = inner
    text = re.sub(r"^(?:litellm\.[\w.]+: )+", "", text)
    if text.endswith("Connection error."):
        text = _with_reason(text, e)
    text = re.sub(r" ssl:(?:<[^>]*>|default|None|False)", "", text)
    package = PACKAGES.get(_missing_module(e) or "")
    for noise in ("This looks like a bug in LiteLLM", "\nTraceback (most recent"):
        text = text.split(noise, 1)[0]
    if package and "pip install" not in text:
        text = f"{text}: pip install {package}"
    # Redacted before it is cut, since the beginning of a key is no longer recognised as one.
    text = " ".join(redact(text, secrets).split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."


def _with_reason(text: str, e: BaseException) -> str:
    # "Connection error." hides the host and the port that a user needs to see.
    for cause in _chain(e):
        if str(cause).startswith("Cannot connect"):
            return f"{text.removesuffix('.')}: {cause}"
    return text


def retry_after(e: BaseException, *, now: float | None = None) -> float | None:
    """Return seconds the provider asked to wait (`Retry-After` as seconds or as a date,
    `retry-after-ms`), or None. `now` is the time in seconds since the epoch.
    """
    for headers in _all_headers(e):
        wait = _wait_in(headers, now)
        if wait is not None:
            return wait
    # Google has no header for it.
    found = _RETRY_DELAY.search(str(e))
    return None if found is None else _number(found[1])


def _all_headers(e: BaseException) -> Iterator[Any]:
    # From the outside in: the outermost exception is the one that the client meant to show.
    for source in _chain(e):
        for holder in (getattr(source, "response", None), source):
            for attribute in ("headers", "litellm_response_headers"):
                yield getattr(holder, attribute, None)


def _wait_in(headers: Any, now: float | None) -> float | None:
    # Milliseconds are the more precise of the two, and win.
    if headers is None or not hasattr(headers, "items"):
        return None
    # litellm repeats the provider's headers under names of its own.
    values = {str(k).lower().removeprefix("llm_provider-"): str(v) for k, v in headers.items()}
    if "retry-after-ms" in values:
        wait = _number(values["retry-after-ms"])
        return None if wait is None else wait / 1000
    if "retry-after" in values:
        return _seconds_of(values["retry-after"], now)
    return None


def _seconds_of(text: str, now: float | None) -> float | None:
    wait = _number(text)
    return _seconds_until(text, now) if wait is None else wait


def _seconds_until(date: str, now: float | None) -> float | None:
    # The provider's clock may differ from ours: a wait in the past is no wait.
    try:
        then = email.utils.parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return None
    return max(0.0, then - (time.time() if now is None else now))


def _number(text: str) -> float | None:
    # Negative numbers, infinities and anything over eleven days are no waits.
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e6 else None
