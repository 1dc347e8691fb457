"""Secrets out of everything that is stored or printed: error messages, request records, endpoint
addresses.

There are three ways, from sure to careful: by the secret's own text (`redact_exact`,
`redact_strings`), by the name of the member that holds it (`redact_named`), and by its shape
(`redact`), which may also hit a text that only looks like one. Prompts and answers go through the
first two alone: what a model wrote is evidence, and a guess must not change it.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

REDACTED = "[redacted]"

# Names of environment variables that hold a credential, by any of their words.
_SECRET_ENV = re.compile(
    r"(?:^|_)"
    r"(?:API_?KEY|KEY|KEY_ID|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH)"
    r"(?:$|_)",
    re.I,
)
# Names of headers, query parameters and body fields that carry a credential.
_SECRET_NAME = re.compile(
    r"^(?:(?:proxy-)?authorization|cookie|set-cookie|sig|signature|code|key|auth|credentials?"
    r"|bearer|passwd|password|secret|token"
    r"|.*api[-_]?key|.*access[-_]?(?:key|token)(?:[-_]?id)?"
    r"|.*[-_](?:token|secret|key|password|credentials?)"
    r"|.*(?:secret|security[-_]token|password|private[-_]?key)(?:[-_].*)?)$",
    re.I,
)
# Names that fit the pattern above and are ordinary parameters of providers.
_NOT_SECRET_NAME = frozenset(
    {"prompt_cache_key", "cache_key", "safety_key", "idempotency-key", "idempotency_key"}
)
# What a credential looks like in running text; the first two groups of a match are left standing.
_IN_TEXT = (
    re.compile(r"(?i)\b(bearer|basic)(\s+|%20)(?!realm)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"()()\b(?:sk|pk|rk)-[A-Za-z0-9_-]{8,}"),
    re.compile(r"()()\b(?:hf|gsk|xai|nvapi|ghp|gho|ghs|r8|pplx|fw)[_-][A-Za-z0-9_-]{12,}"),
    re.compile(r"()()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"()()\bAIza[A-Za-z0-9_-]{20,}"),
    re.compile(r"()()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    re.compile(
        r"""(?i)((?:x-)?api[-_ ]?key|access[-_]?token|authorization|password|secret"""
        r"""|client_secret)"""
        r"""((?:\s+provided)?["']?\s*[=:]\s*["']?)(?!\[redacted)[^\s"',;&}\])]{4,}"""
    ),
)
# The login in an address.
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@'\"]+@")
# A shorter value of a variable such as AUTH is a mode ("none", "basic") and no credential.
_MIN_ENV = 8
_PATH_STARTS = ("/", "./", "~")  # a file that holds the key, as GOOGLE_APPLICATION_CREDENTIALS does


def is_secret_name(name: str) -> bool:
    """True for the name of a header, query parameter or body field that carries a credential.

    >>> is_secret_name("x-api-key"), is_secret_name("max_tokens")
    (True, False)

    Upper and lower case do not matter. The names are those of headers, query strings and bodies of
    common providers; a parameter such as `max_tokens` is none of them.
    """
    return name.lower() not in _NOT_SECRET_NAME and _SECRET_NAME.match(name) is not None


@functools.lru_cache(maxsize=4096)
def _names_secret(variable: str) -> bool:
    """True for an environment variable that is named like a credential.

    The names are few and the question comes with every record, so the answers are remembered.
    """
    return _SECRET_ENV.search(variable) is not None


def environment_secrets() -> tuple[str, ...]:
    """Values of environment variables whose names say that they are credentials, longest first.

    Short values and paths are left out: the former are modes, the latter only say where a key is.
    """
    # Read each time, because a key may be set at any moment; only names are remembered.
    names = filter(_names_secret, os.environ)
    secrets = set(filter(_may_be_secret, (os.environ.get(name, "") for name in names)))
    return tuple(sorted(secrets, key=len, reverse=True))


def _may_be_secret(value: str) -> bool:
    """False for a value that is too short for a credential, or the path of a file that holds it.

    A false alarm would replace an ordinary word in every message.
    """
    return len(value) >= _MIN_ENV and not value.startswith(_PATH_STARTS)


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
    """`text` without `secrets` and without values of key-like environment variables; nothing is
    guessed.

    A secret is also removed in the form that it has in an address (percent-encoded).

    `secrets` are credentials that the caller knows; empty ones are passed over.
    """
    # The longest first, because one secret may be the beginning of another.
    by_length = sorted((s for s in secrets if s), key=len, reverse=True)
    for secret in (*by_length, *environment_secrets()):
        for form in {secret, quote(secret, safe="")}:
            if form in text:
                text = text.replace(form, REDACTED)
    return text


# Remembered, since the same few addresses are asked for with every request and every record.
@functools.lru_cache(maxsize=1024)
def redact_url(url: str) -> str:
    """An address without user name, password and credentials in its query; what remains identifies
    the endpoint.

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


@functools.lru_cache(maxsize=1024)
def url_secrets(url: str) -> tuple[str, ...]:
    """The credentials in an address: the login as written, its user and password, and those of the
    query. A user name counts only where it is long enough to be a key itself.

    They are found before the address is used anywhere, so that they can be removed from the
    messages of whoever uses it.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ()

    # A password may hold an @, a host may not.
    login = parts.netloc.rpartition("@")[0]
    user, _, password = login.partition(":")
    secrets = [login, password, unquote(password)]
    secrets += [value for name, value in parse_qsl(parts.query) if is_secret_name(name)]
    if len(user) >= _MIN_ENV:
        secrets.append(user)
    return tuple(s for s in secrets if s)


def redact_named(value: Any) -> Any:
    """A JSON-like value in which every member with a credential's name is replaced, at any
    depth.

    The result is made of new dicts with text keys and new lists; a member that is None stays None,
    because there is nothing to hide.

    Values are not looked at: use it for parameters, headers and bodies, and not for a text that
    somebody wrote.
    """
    if isinstance(value, Mapping):
        return {
            str(name): REDACTED
            if is_secret_name(str(name)) and member is not None
            else redact_named(member)
            for name, member in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [redact_named(member) for member in value]
    return value


def redact_strings(value: Any, secrets: Iterable[str] = ()) -> Any:
    """A JSON-like value in which known secrets are removed from every string, keys included.

    Nothing is guessed (see `redact_exact`). Where nothing changes, the value itself is returned.
    """
    every_secret = tuple(s for s in (*secrets, *environment_secrets()) if s)
    return _without(value, every_secret) if every_secret else value


def _without(value: Any, secrets: tuple[str, ...]) -> Any:
    """`value` without `secrets` in its strings.

    What holds no secret stays the object it is, and is not copied: 100,000 cases share their tools.

    `secrets` are not empty, and neither is any of them.
    """
    if isinstance(value, str):
        for secret in secrets:
            if secret in value:
                value = value.replace(secret, REDACTED)
        return value
    if isinstance(value, Mapping):
        return _members_without(value, secrets)
    if isinstance(value, (list, tuple)):
        return _items_without(value, secrets)
    return value


def _members_without(value: Mapping[Any, Any], secrets: tuple[str, ...]) -> Any:
    """A mapping without `secrets` in its keys and values; itself where there are none.

    Equal is not enough: the caller compares by identity, too.
    """
    members = {_without(k, secrets): _without(v, secrets) for k, v in value.items()}
    unchanged = all(members.get(k) is v for k, v in value.items())
    return value if unchanged else members


def _items_without(value: list[Any] | tuple[Any, ...], secrets: tuple[str, ...]) -> Any:
    """A list or tuple without `secrets` in its items; itself where there are none.

    A tuple that changes becomes a list, which JSON does not tell apart.
    """
    items = [_without(item, secrets) for item in value]
    unchanged = all(new is old for new, old in zip(items, value, strict=True))
    return value if unchanged else items
