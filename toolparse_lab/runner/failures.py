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
from contextlib import suppress
from typing import Any

from .exchange.redaction import redact
from .exchange.types import ErrorKind

RETRIABLE: frozenset[str] = frozenset(
    {"timeout", "rate_limited", "server_error", "connection", "cut_stream"}
)
"""Failures that may go away by asking again."""
LONGEST_MESSAGE = 500
PACKAGES = {"google": "google-cloud-aiplatform", "boto3": "boto3", "botocore": "boto3"}
"""Module of a provider -> the package that has it, in the words of litellm's own messages."""


class ReportedError(Exception):
    """An error that a server wrote where an answer was awaited.

    The message is in its words, `body` is the error and `event` what it came in.
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
#
# A kind is known by the names of the exceptions' classes, by HTTP statuses, and by the names that
# servers give an error in `code`, `type` or `status`. The first match counts, from the most telling
# on.
_KINDS: tuple[tuple[ErrorKind, tuple[str, ...], tuple[int, ...], str], ...] = (
    ("context_overflow", ("ContextWindowExceededError",), (413,),
     r"context_?(?:length|size|window)|exceed_context|request_too_large"),
    ("refused", ("ContentPolicyViolationError",), (),
     r"content_?(?:filter|policy)|moderation|invalid_prompt|guardrail"),
    ("rate_limited", ("RateLimitError",), (429,),
     r"rate_?limit|resource_?exhausted|throttl|too_?many_?requests|insufficient_quota"
     r"|quota_?exceeded"),
    ("timeout", ("Timeout", "APITimeoutError", "TimeoutError", "TimeoutException"), (408, 504),
     r"time_?out|deadline"),
    ("auth", ("AuthenticationError", "PermissionDeniedError"), (401, 403),
     r"authenti|permission|unauthori[sz]ed|access_?denied|invalid_api_key|forbidden"),
    ("not_found", ("NotFoundError",), (404,), r"not_?found"),
    # 424: the model, or the server that this one asks, has failed.
    ("server_error", ("ServiceUnavailableError", "BadGatewayError"), (424,),
     r"overloaded|unavailable|server_?error|internal|api_error|upstream|bad_?gateway|server_busy"
     r"|model_?(?:stream_?)?error"),
    ("bad_request", ("UnprocessableEntityError", "UnsupportedParamsError", "BadRequestError",
                     "UnicodeEncodeError"), (),
     r"invalid|bad_?request|validation|unprocessable|failed_precondition"),
    ("connection", (), (), r"connect(?:ion)?_?(?:error|reset|refused|aborted)|remote_?protocol"),
)  # fmt: skip
_BY_CLASS = {name: kind for kind, classes, _, _ in _KINDS for name in classes}
_BY_STATUS: dict[int, ErrorKind] = {code: kind for kind, _, codes, _ in _KINDS for code in codes}
_BY_NAME = tuple((re.compile(names, re.I), kind) for kind, _, _, names in _KINDS)
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
# An exception's class in a printed error, and an HTTP status that the text says to be one.
_CLASS_NAME = re.compile(r"\b\w{0,60}(?:Error|Exception|Timeout|Exhausted|Exceeded|Unavailable)\b")
_PRINTED_STATUS = re.compile(
    r"(?i)\b(?:http(?:/\d(?:\.\d)?)?|status|code|error)\W{0,3}(?:code\W{0,3})?([45]\d\d)\b"
)
# What the words of an error say without a class or a status.
_PHRASES: tuple[tuple[re.Pattern[str], ErrorKind], ...] = (
    (re.compile(r"(?i)too many requests|rate[ _-]?limit"), "rate_limited"),
    (re.compile(r"(?i)\boverloaded|service unavailable|bad gateway|internal server error"),
     "server_error"),
)  # fmt: skip
# What a proxy or a server writes where no model answered: the title of a page, or a line.
_PAGE = re.compile(r"\s{0,99}(?:<!doctype html|<html\b)", re.IGNORECASE)
_PAGE_TITLE = re.compile(
    r"(?i)<(?:title|h1)\b[^<>]{0,200}>([^<]{0,80}?(?:\b([45]\d\d)\b|\berror\b|bad gateway"
    r"|unavailable|time-?out|forbidden|denied|not found|too many requests|just a moment"
    r"|attention required|sign in|log ?in)[^<]{0,80})"
)
_PROXY_LINE = re.compile(
    r"(?i)(\s{0,9}(?:"
    r"(?:http\W{0,2})?([45]\d\d)\s(?:bad gateway|service (?:temporarily )?unavailable|forbidden"
    r"|gateway time-?out|internal server error|too many requests|not found|unauthorized)"
    r"|upstream (?:connect error|request timeout)|no healthy upstream"
    r"|(?:bad gateway|service unavailable|internal server error|gateway time-?out)\s{0,9}$"
    r").{0,300})"
)
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,6}(?:\.\d{1,9})?)s"')
_TIMED_OUT = re.compile(r"(?i)\btimed? ?out\b")


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
    kind = next((kind for words, kind in _BY_NAME if words.search(text)), None)
    if kind in (None, "bad_request"):
        return _kind_by_words(message) or kind
    return kind


def kind_of_exception(message: str) -> ErrorKind | None:
    """Return the kind of the exception that Bedrock sent in a stream, by its name."""
    found = re.search(r"\b(\w{1,60}Exception) \{", message)
    return None if found is None else reported_kind({"type": found[1], "message": message})


def kind_of_message(message: str) -> ErrorKind:
    """Return the kind of an error that was logged as text: by the exception classes that it names,
    then by its words and status. `other` where nothing is known.

    >>> kind_of_message("litellm.RateLimitError: OpenAIException - slow down")
    'rate_limited'
    """
    text = message[:2_000]
    names = _CLASS_NAME.findall(text)
    kind = next((_BY_CLASS[name] for name in names if name in _BY_CLASS), None)
    if kind in (None, "bad_request"):
        kind = _kind_by_words(text) or kind
    if kind is not None:
        return kind
    if _NO_KEY.search(text):
        return "auth"
    named = next((k for name in names for words, k in _BY_NAME if words.search(name)), None)
    if "APIConnectionError" in names or named == "connection" or _CONNECTION.search(text):
        return "timeout" if _TIMED_OUT.search(text) else "connection"
    status = _PRINTED_STATUS.search(text)
    if status is not None and (by_status := _kind_by_status(int(status[1]), text)):
        return by_status
    if named is None:
        named = next((kind for words, kind in _PHRASES if words.search(text)), None)
    if named is not None or "APIError" in names:
        return named or "server_error"
    return "timeout" if _TIMED_OUT.search(text) else "other"


def failure_in(body: Any) -> tuple[ErrorKind, str] | None:
    """Return (kind, message) of a body that came in the place of an answer, None for any other:
    a proxy's page or line, an error object, a response without a choice or with an empty message.

    >>> failure_in("<html><title>502 Bad Gateway</title></html>")
    ('server_error', '502 Bad Gateway')
    """
    if isinstance(body, str):
        is_page = _PAGE.match(body)
        place = _PAGE_TITLE.search(body[:4_000]) if is_page else None
        if not is_page and len(body) <= LONGEST_MESSAGE:
            place = _PROXY_LINE.match(body)
        if place is None:
            return None
        by_status = _kind_by_status(int(place[2]), place[1]) if place[2] else None
        kind = by_status or kind_of_message(place[1])
        return "server_error" if kind == "other" else kind, place[1].strip()
    if not isinstance(body, (dict, Mapping)):
        return None

    choices = body.get("choices")
    if isinstance(choices, list) and not body.get("error"):
        for choice in choices:
            if not isinstance(choice, dict) or choice.get("message", True):
                return None
            # A filter may take the message.
            if choice.get("finish_reason") == "content_filter" or choice.keys() & {"text", "delta"}:
                return None
        return "server_error", "the response has no " + ("message" if choices else "choice")
    error = body.get("error") or body.get("detail")
    if isinstance(body.get("message"), str) and body.keys() & {"code", "status", "type"}:
        error = error or body
    if not error or body.keys() & {"output", "content", "candidates", "role", "response"}:
        return None
    of_mapping = error if isinstance(error, Mapping) else body
    said = str(error.get("message") or error) if isinstance(error, Mapping) else str(error)
    kind = reported_kind(of_mapping) or kind_of_message(said)
    return "server_error" if kind == "other" else kind, said[:LONGEST_MESSAGE]


def said_in(text: str | None) -> str | None:
    """Return a server's own words in a body that is no answer, None if it has none."""
    body: Any = text
    with suppress(ValueError, RecursionError):
        body = json.loads(text or "")
    if isinstance(body, str):
        place = _PAGE_TITLE.search(body[:4_000]) if _PAGE.match(body) else None
        return (place[1] if place else body).strip()[:LONGEST_MESSAGE] or None
    failure = failure_in(body)
    if failure is None and isinstance(body, Mapping) and isinstance(body.get("message"), str):
        return str(body["message"])[:LONGEST_MESSAGE]
    return None if failure is None else failure[1]


def kind_of_status(status: int | None) -> ErrorKind | None:
    """Return the kind that an HTTP status alone tells, None where it does not."""
    return None if status is None else _BY_STATUS.get(status)


def _kind_by_words(message: str) -> ErrorKind | None:
    # A prompt that is too long, or filtered, among other refused requests.
    if _OVERFLOW.search(message):
        return "context_overflow"
    return "refused" if _REFUSED.search(message) else None


def _kind_by_status(status: int | None, message: str) -> ErrorKind | None:
    if status is None or status < 400:
        return None
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return "server_error" if status >= 500 else _kind_by_words(message) or "bad_request"


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
    """Return the class of a failure, `other` where none is known.

    It decides the next step: whether the question is asked again, and whether its endpoint is given
    up.
    """
    e = _unwrapped(e)
    message = str(e)
    if _missing_module(e) is not None:
        return "setup"
    # Of the whole hierarchy, since clients derive their classes from each other's.
    names = {c.__name__ for c in type(e).__mro__}
    if isinstance(e, ReportedError):
        return reported_kind(e.body) or "server_error"
    if isinstance(e, asyncio.TimeoutError):
        return "timeout"
    if _UNSENDABLE.search(message):
        return "bad_request"
    status = status_code(e)
    if status in (None, 500) and _NO_KEY.search(message):
        return "auth"

    by_class = next((kind for name, kind in _BY_CLASS.items() if name in names), None)
    if by_class == "bad_request":
        return _kind_by_words(message) or by_class
    if by_class is not None:
        return by_class
    # litellm reports a refused or reset connection as an internal server error. Clients that hide
    # the exception below them still name it in their message.
    below = any(isinstance(cause, OSError) for cause in _chain(e))
    if below or _CONNECTION.search(message):
        return "timeout" if _TIMED_OUT.search(message) else "connection"
    # litellm gives its APIConnectionError a status that no server sent.
    if "APIConnectionError" in names:
        return "connection"
    by_status = _kind_by_status(status, message)
    if by_status is not None:
        return by_status
    # An error in a stream has no status, and OpenAI's client keeps it as it came.
    body = getattr(e, "body", None)
    if "APIError" in names and isinstance(body, (Mapping, str)) and body:
        return reported_kind(body) or "server_error"
    if "TransportError" in names:
        return "connection"
    # `other` is not retried, because no one knows what that would cost.
    return "server_error" if "InternalServerError" in names else "other"


def _missing_module(e: BaseException) -> str | None:
    # litellm imports a provider's package with the first call, and gives what is raised then the
    # class of a lost connection or of a failed server.
    for cause in _chain(e):
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            # What was raised while another package was looked for in vain does not speak of it.
            speaks = str(cause) in str(e) or "pip install" in str(e)
            return cause.name.partition(".")[0] if speaks else None
    return None


def is_nobody(kind: str | None, message: str | None) -> bool:
    """Return True for a failure before any server was reached: a refused connection, an unknown
    host. `kind` and `message` are those of the completion.
    """
    return kind == "connection" and _NOBODY.search(message or "") is not None


def status_code(e: BaseException) -> int | None:
    # Clients keep it under two names, as a number or as text. A stream has begun with 200; the
    # status of its failure is a member of the error's body.
    e = _unwrapped(e)
    body = getattr(e, "body", None)
    in_body = body.get("code") if isinstance(body, dict) else None
    for value in (getattr(e, "status_code", None), getattr(e, "code", None), in_body):
        status = _status(value)
        if status is not None:
            return status
    return None


def _status(value: Any) -> int | None:
    # Members called `code` may be many things, such as "context_length_exceeded".
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and 100 <= value < 600 else None


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
        # It hides the host and the port that a user needs to see.
        cause = next((c for c in _chain(e) if str(c).startswith("Cannot connect")), None)
        text = text if cause is None else f"{text.removesuffix('.')}: {cause}"
    text = re.sub(r" ssl:(?:<[^>]*>|default|None|False)", "", text)
    package = PACKAGES.get(_missing_module(e) or "")
    for noise in ("This looks like a bug in LiteLLM", "Traceback (most recent call"):
        text = text.split(noise, 1)[0].strip() or type(e).__name__
    if package and "pip install" not in text:
        text = f"{text}: pip install {package}"
    # Redacted before it is cut, since the beginning of a key is no longer recognised as one.
    text = " ".join(redact(text, secrets).split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."


def retry_after(e: BaseException, *, now: float | None = None) -> float | None:
    """Return seconds the provider asked to wait (`Retry-After` as seconds or as a date,
    `retry-after-ms`), or None. `now` is the time in seconds since the epoch.
    """
    # From the outside in: the outermost exception is the one that the client meant to show.
    for source in _chain(e):
        for holder in (getattr(source, "response", None), source):
            for attribute in ("headers", "litellm_response_headers"):
                wait = _wait_in(getattr(holder, attribute, None), now)
                if wait is not None:
                    return wait
    # Google has no header for it.
    found = _RETRY_DELAY.search(str(e))
    return None if found is None else _number(found[1])


def _wait_in(headers: Any, now: float | None) -> float | None:
    if headers is None or not hasattr(headers, "items"):
        return None
    # litellm repeats the provider's headers under names of its own.
    values = {str(k).lower().removeprefix("llm_provider-"): str(v) for k, v in headers.items()}
    if "retry-after-ms" in values:  # the more precise of the two
        wait = _number(values["retry-after-ms"])
        return None if wait is None else wait / 1000
    text = values.get("retry-after")
    if text is None:
        return None
    wait = _number(text)
    if wait is not None:
        return wait
    try:
        then = email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return None
    # The provider's clock may differ from ours: a wait in the past is no wait.
    return max(0.0, then - (time.time() if now is None else now))


def _number(text: str) -> float | None:
    # Negative numbers, infinities and anything over eleven days are no waits.
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e6 else None
