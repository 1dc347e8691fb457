"""Which class of the `error_kind` vocabulary a provider's failure belongs to, and what may be said about it."""

from __future__ import annotations

import asyncio
import email.utils
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from .redaction import redact
from .types import ErrorKind

RETRIABLE: frozenset[str] = frozenset({"timeout", "rate_limited", "server_error", "connection", "cut_stream"})
"""Failures that may go away by asking again."""

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
_OVERFLOW = re.compile(
    r"(?i)context[ _](?:length|size|window)|maximum context|exceed_context|prompt is too long"
    r"|too many (?:input )?tokens|input is too long"
)
_REFUSED = re.compile(r"(?i)content[ _](?:policy|filter|management policy)|safety (?:system|filter)|responsibleai")
_CONNECTION = re.compile(
    r"(?i)connection (?:error|refused|reset|aborted)|cannot connect|peer closed|server disconnected|name resolution"
    r"|incomplete (?:chunked )?read|payload is not completed|getaddrinfo"
)
_UNSENDABLE = re.compile(r"codec can't encode|surrogates not allowed")
_TIMED_OUT = re.compile(r"(?i)\btimed? ?out\b")


def _chain(e: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    at: BaseException | None = e
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def error_kind(e: BaseException) -> ErrorKind:
    """The class of a failure. Every exception has one; `other` is what nothing else fits."""
    message = str(e)
    names = {c.__name__ for c in type(e).__mro__}
    status = status_code(e)
    if isinstance(e, asyncio.TimeoutError):
        return "timeout"
    if _UNSENDABLE.search(message):
        return "bad_request"
    for name, kind in _BY_CLASS:
        if name in names:
            if kind == "bad_request" and _OVERFLOW.search(message):
                return "context_overflow"
            if kind == "bad_request" and _REFUSED.search(message):
                return "refused"
            return kind
    # litellm reports a refused or reset connection as an internal server error.
    if any(isinstance(c, (ConnectionError, OSError)) for c in _chain(e)) or _CONNECTION.search(message):
        return "timeout" if _TIMED_OUT.search(message) else "connection"
    by_status = _by_status(status, message)
    if by_status is not None and "APIConnectionError" not in names:
        return by_status
    if "APIConnectionError" in names or "TransportError" in names:
        return "connection"
    return "server_error" if "InternalServerError" in names else "other"


def status_code(e: BaseException) -> int | None:
    """The HTTP status of a failure, also of one reported inside a stream; None where there was none."""
    body = getattr(e, "body", None)
    for value in (
        getattr(e, "status_code", None),
        getattr(e, "code", None),
        body.get("code") if isinstance(body, dict) else None,
    ):
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if isinstance(value, int) and 100 <= value < 600:
            return value
    return None


def _by_status(status: Any, message: str) -> ErrorKind | None:
    if not isinstance(status, int):
        return None
    exact: Mapping[int, ErrorKind] = {
        401: "auth",
        403: "auth",
        404: "not_found",
        408: "timeout",
        413: "context_overflow",
        429: "rate_limited",
        504: "timeout",
    }
    if status in exact:
        return exact[status]
    if 400 <= status < 500:
        return "context_overflow" if _OVERFLOW.search(message) else "bad_request"
    return "server_error" if status >= 500 else None


def error_message(e: BaseException, secrets: tuple[str, ...] = ()) -> str:
    """One redacted line of at most 500 characters that says what the provider said."""
    text = str(e).strip() or type(e).__name__
    text = re.sub(r"^(?:litellm\.[\w.]+: )+", "", text)
    if text.endswith("Connection error."):
        # Clients say no more than that; what lies below says where, and why.
        below = next((str(c) for c in _chain(e) if str(c).startswith("Cannot connect")), "")
        text = f"{text.removesuffix('.')}: {below}" if below else text
    text = re.sub(r" ssl:(?:<[^>]*>|default|None|False)", "", text)
    text = text.split("This looks like a bug in LiteLLM", 1)[0].split("\nTraceback (most recent", 1)[0]
    text = " ".join(redact(text, secrets).split())
    return text if len(text) <= 500 else text[:497] + "..."


def retry_after(e: BaseException, *, now: float | None = None) -> float | None:
    """Seconds the provider asked to wait (`Retry-After` as seconds or as a date, `retry-after-ms`), or None."""
    for source in _chain(e):
        for holder in (getattr(source, "response", None), source):
            for attribute in ("headers", "litellm_response_headers"):
                found = _from_headers(getattr(holder, attribute, None), now)
                if found is not None:
                    return found
    return None


def _from_headers(headers: Any, now: float | None) -> float | None:
    if headers is None or not hasattr(headers, "items"):
        return None
    named = {str(k).lower().removeprefix("llm_provider-"): str(v) for k, v in headers.items()}
    if "retry-after-ms" in named:
        wait = _number(named["retry-after-ms"])
        return None if wait is None else wait / 1000
    text = named.get("retry-after")
    if text is None:
        return None
    wait = _number(text)
    if wait is not None:
        return wait
    try:
        then = email.utils.parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError):
        return None
    return max(0.0, then - (time.time() if now is None else now))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e6 else None
