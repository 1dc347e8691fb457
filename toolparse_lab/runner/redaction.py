"""Secrets out of everything that is kept or shown: error messages, request records, endpoint addresses."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

REDACTED = "[redacted]"

_SECRET_ENV = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|KEY_ID|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH)(?:$|_)", re.I
)
# Names of headers, query parameters and body fields that carry a credential.
_SECRET_NAME = re.compile(
    r"^(?:(?:proxy-)?authorization|cookie|set-cookie|sig|signature|code|key|auth|credentials?|bearer|passwd|password|secret|token"
    r"|.*api[-_]?key|.*access[-_]?(?:key|token)(?:[-_]?id)?|.*[-_](?:token|secret|key|password|credentials?)"
    r"|.*(?:secret|security[-_]token|password|private[-_]?key)(?:[-_].*)?)$",
    re.I,
)
_NOT_SECRET_NAME = frozenset({"prompt_cache_key", "cache_key", "safety_key", "idempotency-key", "idempotency_key"})
_IN_TEXT = (
    re.compile(r"(?i)\b(bearer|basic)(\s+|%20)(?!realm)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"()()\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"),
    re.compile(r"()()\b(?:hf|gsk|xai|nvapi|ghp|gho|ghs|r8|pplx|fw)[_-][A-Za-z0-9_-]{12,}"),
    re.compile(r"()()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"()()\bAIza[A-Za-z0-9_-]{20,}"),
    re.compile(r"()()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    re.compile(
        r"""(?i)((?:x-)?api[-_ ]?key|access[-_]?token|authorization|password|secret|client_secret)"""
        r"""((?:\s+provided)?["']?\s*[=:]\s*["']?)(?!\[redacted)[^\s"',;&}\])]{4,}"""
    ),
)
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@'\"]+@")
_MIN_ENV = 8


def is_secret_name(name: str) -> bool:
    """Whether a header, query parameter or body field of that name carries a credential.

    >>> is_secret_name("x-api-key"), is_secret_name("max_tokens")
    (True, False)
    """
    return name.lower() not in _NOT_SECRET_NAME and _SECRET_NAME.match(name) is not None


@functools.lru_cache(maxsize=4096)
def _names_secret(variable: str) -> bool:
    return _SECRET_ENV.search(variable) is not None


def environment_secrets() -> tuple[str, ...]:
    """Values of environment variables whose names say that they are credentials, longest first."""
    # Read each time, because a key may be set at any moment; only names are remembered.
    values = [os.environ.get(name, "") for name in os.environ if _names_secret(name)]
    found = {v for v in values if len(v) >= _MIN_ENV and not v.startswith(("/", "./", "~"))}
    return tuple(sorted(found, key=len, reverse=True))


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without `secrets`, without values of key-like environment variables, and without anything that has
    the shape of a credential (bearer tokens, provider keys, user names and passwords in addresses).

    >>> redact("401: Authorization: Bearer abcdefghijkl at https://u:p@host/v1")
    '401: Authorization: [redacted] at https://[redacted]@host/v1'
    """
    text = redact_exact(text, secrets)
    for pattern in _IN_TEXT:
        text = pattern.sub(lambda m: f"{m[1]}{m[2]}{REDACTED}", text)
    text = text.replace(f"{REDACTED} {REDACTED}", REDACTED)
    return _USERINFO.sub(lambda m: f"{m[1]}{REDACTED}@", text)


def redact_exact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without `secrets` and without values of key-like environment variables; nothing is guessed."""
    for secret in (*sorted((s for s in secrets if s), key=len, reverse=True), *environment_secrets()):
        for form in {secret, quote(secret, safe="")}:
            if form in text:
                text = text.replace(form, REDACTED)
    return text


@functools.lru_cache(maxsize=1024)
def redact_url(url: str) -> str:
    """An address without user name, password and credentials in its query; what is left identifies the endpoint."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return _USERINFO.sub(lambda m: m[1], url)
    if ":" in host:
        host = f"[{host}]"
    query = urlencode([(k, v) for k, v in parse_qsl(parts.query, keep_blank_values=True) if not is_secret_name(k)])
    if not parts.netloc:
        return url if not parts.query else urlunsplit((parts.scheme, "", parts.path, query, ""))
    return urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), query, ""))


@functools.lru_cache(maxsize=1024)
def url_secrets(url: str) -> tuple[str, ...]:
    """The credentials in an address: the login as written, its user and password, and those of the query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ()
    login = parts.netloc.rpartition("@")[0]
    user, _, password = login.partition(":")
    named = [v for k, v in parse_qsl(parts.query) if is_secret_name(k)]
    return tuple(
        s for s in (login, password, unquote(password), *named, *([user] if len(user) >= _MIN_ENV else ())) if s
    )


def redact_named(value: Any) -> Any:
    """A JSON-like value in which every member with a credential's name is replaced, at any depth."""
    if isinstance(value, Mapping):
        return {
            str(k): REDACTED if is_secret_name(str(k)) and v is not None else redact_named(v) for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [redact_named(v) for v in value]
    return value


def redact_strings(value: Any, secrets: Iterable[str] = ()) -> Any:
    """A JSON-like value in which known secrets are removed from every string (see `redact_exact`)."""
    known = tuple(s for s in (*secrets, *environment_secrets()) if s)
    return _strings(value, known) if known else value


def _strings(value: Any, known: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        for secret in known:
            if secret in value:
                value = value.replace(secret, REDACTED)
        return value
    # What holds no secret stays the object it is: 100,000 cases share their tools.
    if isinstance(value, Mapping):
        members = {_strings(k, known): _strings(v, known) for k, v in value.items()}
        return value if all(members.get(k) is v for k, v in value.items()) else members
    if isinstance(value, (list, tuple)):
        items = [_strings(v, known) for v in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value
