"""Secrets out of everything that is stored or printed: error messages, request records, endpoint
addresses.

There are three ways, from sure to careful: by the secret's own text (`redact_exact`,
`redact_strings`), by the name and the place of the member that holds it (`redact_named`), and by
its shape (`redact`), which may also hit a text that only looks like one. Prompts and answers go
through the first two alone: a model's text is evidence, and a guess must not change it. Definition
of a credential is told by `credentials`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from .credentials import (
    REDACTED,
    SecretText,
    environment_secrets,
    forms_of,
    is_secret_name,
    pair_of,
    place_of,
)

# What a credential looks like in running text; the first two groups of a match are left standing.
_IN_TEXT = (
    re.compile(
        r"()()-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.{0,20000}?-----END [A-Z ]{0,40}KEY-----",
        re.S,
    ),
    re.compile(r"(?i)\b(bearer|basic)(\s+|%20)(?!realm)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"()()\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"),
    re.compile(r"()()\b(?:hf|gsk|xai|nvapi|gh[oprsu]|github_pat|r8|pplx|fw)[_-][A-Za-z0-9_-]{12,}"),
    re.compile(r"()()\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    re.compile(r"()()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"()()\bAIza[A-Za-z0-9_-]{20,}"),
    re.compile(r"()()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    re.compile(r"(?i)\b((?:set-)?cookie)([\"']?\s*[:=]\s*[\"']?)(?!\[redacted)[^\r\n\"']{4,}"),
    re.compile(r"(?i)([?&](?:key|token|sig|signature|code|auth))(=)(?!\[redacted)[^\s&\"'<>]{4,}"),
    re.compile(
        r"""(?i)((?:x-)?api[-_ ]?key|access[-_]?token|authorization|password|passphrase|secret"""
        r"""|client[-_]?secret|(?:secret[-_]?)?access[-_]?key(?:[-_]?id)?|secret[-_]?key"""
        r"""|(?:session|security|auth|refresh|id)[-_]?token|private[-_]?key|account[-_]?key"""
        r"""|x-amz-(?:signature|credential)|signature)"""
        r"""((?:\s+provided)?\\?["']?\s*[=:]\s*\\?["']?)(?!\[redacted)[^\s"',;&}\])\\]{4,}"""
    ),
)
# The login in an address.
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@'\"]+@")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without `secrets`, without values of key-like environment variables, and without
    anything that has the shape of a credential (bearer tokens, provider keys, user names and
    passwords in addresses).

    >>> redact("401: Authorization: Bearer abcdefghijkl at https://u:p@host/v1")
    '401: Authorization: [redacted] at https://[redacted]@host/v1'

    `secrets` are credentials that the caller knows, in any order. The result is meant for people:
    it may lose words that only look like a credential.
    """
    text = redact_exact(text, secrets)
    for pattern in _IN_TEXT:
        text = pattern.sub(lambda m: f"{m[1]}{m[2]}{REDACTED}", text)
    # "Authorization: Bearer KEY" is hit by two patterns, and one mark is enough.
    text = text.replace(f"{REDACTED} {REDACTED}", REDACTED)
    return _USERINFO.sub(lambda m: f"{m[1]}{REDACTED}@", text)


def redact_exact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without `secrets` and without values of key-like environment variables.

    Nothing is guessed.

    A secret is also removed in the forms that it has in an address, in JSON, in HTML and in base64.

    `secrets` are credentials that the caller knows. Empty ones do not count.
    """
    for form in forms_of((*secrets, *environment_secrets())):
        if form in text:
            text = text.replace(form, REDACTED)
    return text


def is_http_address(text: object) -> bool:
    """Tell if a text is an address that can be asked over HTTP.

    >>> is_http_address("http://localhost:8000/v1"), is_http_address("localhost:8000/v1")
    (True, False)
    """
    try:
        parts = urlsplit(text) if isinstance(text, str) else None
        # A port that is not a number raises when it is read.
        return (
            parts is not None
            and parts.scheme in ("http", "https")
            and parts.port != 0
            and bool(parts.hostname)
        )
    except ValueError:
        return False


# Remembered, since the same few addresses are asked for with every request and every record.
@functools.lru_cache(maxsize=1024)
def redact_url(url: str) -> str:
    """Return an address without user name, password and credentials in its query.

    The rest identifies the endpoint.

    A slash at its end is dropped, so that two spellings of one endpoint give the same request keys.
    An address that cannot be parsed loses its login only.

    It is used for identity as well as for display, so that it must not depend on the environment.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return _USERINFO.sub(lambda m: m[1], url)

    if ":" in host:  # IPv6, whose brackets `hostname` took away
        host = f"[{host}]"
    members = parse_qsl(parts.query, keep_blank_values=True)
    query = urlencode([(name, value) for name, value in members if not is_secret_name(name)])

    if parts.netloc:
        return urlunsplit((parts.scheme, host + port, parts.path.rstrip("/"), query, ""))
    if not parts.query:
        return url
    return urlunsplit((parts.scheme, "", parts.path, query, ""))


def redact_named(value: Any, *, headers: bool = True, place: str = "") -> Any:
    """Return a JSON-like value in which every member with a credential's name is replaced, at any
    depth.

    The result is made of new dicts with text keys and new lists. A member that is None stays None,
    because there is nothing to hide.

    headers: every header that may not be open counts as a credential, and so does a SecretText.
    Without it names alone decide. place: the kind that the value's own place gives, see
    `credentials.place_of`, or "headers" for a value that is itself a set of headers.

    Values are not looked at: use it for parameters, headers and bodies, and not for a text that
    someone wrote.
    """
    if value is None or (place == "" and type(value) in _PLAIN):
        return value
    if place == "secret":
        return REDACTED
    if isinstance(value, (dict, Mapping)):
        return {
            str(name): redact_named(member, headers=headers, place=place_of(str(name), place))
            for name, member in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_redact_item(item, headers, place) for item in value]
    if headers and _is_hidden(value, place):
        return REDACTED
    return value


_PLAIN = (str, int, float, bool)  # and no SecretText


def _is_hidden(value: Any, place: str) -> bool:
    if place == "header" or isinstance(value, SecretText):
        return True
    # Headers written as one text.
    return place == "headers" and isinstance(value, str) and ":" in value


def _redact_item(item: Any, headers: bool, place: str) -> Any:
    # Among headers an item may be a header written as a pair.
    pair = pair_of(item) if place == "headers" else None
    if pair is None:
        return redact_named(item, headers=headers, place=place)
    name, value = pair
    value = redact_named(value, headers=headers, place=place_of(name, place))
    return {**item, "value": value} if isinstance(item, Mapping) else [name, value]


def redact_strings(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return a JSON-like value in which known secrets are removed from every string, keys included.

    Nothing is guessed (see `redact_exact`). If nothing changes, the value itself comes back.
    """
    forms = forms_of((*secrets, *environment_secrets()))
    if not forms or not _may_hold(value, forms):
        return value
    return _without(value, forms, len(forms[-1]))


_write = json.JSONEncoder(ensure_ascii=False).encode


@functools.lru_cache(maxsize=256)
def _written(forms: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_write(form)[1:-1] for form in forms)


def _may_hold(value: Any, forms: tuple[str, ...]) -> bool:
    # Almost every record has none of the forms, and C writes it in less time than it takes to look
    # at each string.
    try:
        text = _write(value)
    except (TypeError, ValueError, RecursionError):  # not plain JSON
        return True
    # Each character is escaped by itself, so that a part of a string is a part of the text.
    for form in _written(forms):  # noqa: SIM110 - `any` would make a call for each form
        if form in text:
            return True
    return False


def _without(value: Any, forms: tuple[str, ...], least: int) -> Any:
    # What holds no secret stays the object it is, and is not copied: 100,000 cases share their
    # tools. least: the length of the shortest form; none is empty.
    if isinstance(value, str):
        # Most strings of a record are names, and too short for any secret.
        if len(value) >= least:
            for form in forms:
                if form in value:
                    value = value.replace(form, REDACTED)
        return value
    if isinstance(value, Mapping):
        return _members_without(value, forms, least)
    if isinstance(value, (list, tuple)):
        return _items_without(value, forms, least)
    return value


def _members_without(value: Mapping[Any, Any], forms: tuple[str, ...], least: int) -> Any:
    # Itself if there are none: the caller compares by identity.
    members = {_without(k, forms, least): _without(v, forms, least) for k, v in value.items()}
    unchanged = all(members.get(k) is v for k, v in value.items())
    return value if unchanged else members


def _items_without(value: list[Any] | tuple[Any, ...], forms: tuple[str, ...], least: int) -> Any:
    # Itself if there are none. A tuple that changes becomes a list, which JSON does not tell apart.
    items = [_without(item, forms, least) for item in value]
    unchanged = all(new is old for new, old in zip(items, value, strict=True))
    return value if unchanged else items
