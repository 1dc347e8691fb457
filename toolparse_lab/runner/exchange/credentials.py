"""Definition of a credential: by its name, by its place (headers, `{env = "…"}`), by the
environment. And every form in which its text may turn up again.
"""

from __future__ import annotations

import base64
import binascii
import functools
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

REDACTED = "[redacted]"

# Names of environment variables that hold a credential, by any of their words.
_SECRET_ENV = re.compile(
    r"(?:^|_)"
    r"(?:[A-Z]*API_?KEY|KEY|KEY_ID|[A-Z]*TOKEN|SECRET|[A-Z]*PASSWORD|PASSWD|PASSPHRASE"
    r"|CREDENTIALS?|AUTH|BEARER|COOKIES?|JWT|PAT|CONNECTION_STRING)"
    r"(?:$|_)",
    re.I,
)
# Names of environment variables that hold an address, which may hold a login or a key.
_ADDRESS_ENV = re.compile(r"(?:^|_)(?:URL|URI|DSN|PROXY|ENDPOINT|BASE|HOST)(?:$|_)", re.I)
# Names of headers, query parameters and body fields that carry a credential.
_SECRET_NAME = re.compile(
    r"^(?:(?:proxy-)?authorization|(?:set-)?cookies?|(?:.*[-_])?sig(?:nature)?|code|key|auth"
    r"|credentials?|bearer|passwd|passphrase|password|secret|token|jwt|connection_string"
    r"|.*api[-_]?key|.*access[-_]?(?:key|token)(?:[-_]?id)?|.*account[-_]?key"
    r"|.*[-_](?:token|secret|key|password|passphrase|credentials?|cookies?|jwt)"
    r"|.*(?:secret|security[-_]token|password|private[-_]?key)(?:[-_].*)?)$",
    re.I,
)
# Names that fit the pattern above and are ordinary parameters of providers.
_NOT_SECRET_NAME = frozenset(
    {"prompt_cache_key", "cache_key", "safety_key", "idempotency-key", "idempotency_key"}
)
_HEADERS_NAME = re.compile(r"^(?:.*[-_])?headers?$", re.I)
# The headers whose values say nothing of who asks; the value of every other one is a credential.
_OPEN_HEADERS = re.compile(
    r"^(?:accept(?:-.*)?|cache-control|connection|content-.*|date|expect|host|user-agent|referer"
    r"|http-referer|origin|priority|transfer-encoding|vary|via|server|retry-after(?:-ms)?"
    r"|(?:x-)?request-id|x-title|x-openrouter-title|(?:x-)?idempotency-key|traceparent"
    r"|(?:x-)?api-version|anthropic-(?:version|beta)|openai-(?:version|beta|processing-ms)"
    r"|x-(?:stainless|ratelimit)-.*|x-goog-api-client|x-amz-date|x-amz-target|x-amzn-requestid"
    r"|x-ms-region)$",
    re.I,
)
# A shorter value of a variable such as AUTH is a mode ("none", "basic") and no credential.
_MIN_ENV = 8
# A shorter secret would be replaced in the middle of ordinary words.
_MIN_SECRET = 4
# The same for what only its place says: a header of an unknown name, a part of a longer secret.
_MIN_PART = 8
_PATH_STARTS = ("/", "./", "~")  # a file that holds the key, as GOOGLE_APPLICATION_CREDENTIALS does
# "Bearer KEY", "Token KEY": the scheme in front of a header's credential.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9-]{2,20}) +(\S{4,})")
# The members of cookies and of connection strings.
_MEMBER = re.compile(r"(?:^|[;&,\s])[\w.-]+=\"?([^;&,\s\"]{8,})")


class SecretText(str):
    """A text that is a credential whatever its name, as the value of `{env = "…"}` is.

    It is sent like any other text. Its `repr`, a pickle of it and every record have a mark instead.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(REDACTED)

    def __copy__(self) -> SecretText:
        return self

    def __deepcopy__(self, memo: object) -> SecretText:
        return self

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (REDACTED,)


# names


def is_secret_name(name: str) -> bool:
    """Return True for the name of a header, query parameter or body field that carries a
    credential.

    >>> is_secret_name("x-api-key"), is_secret_name("max_tokens")
    (True, False)

    Upper and lower case do not matter. The names are those of headers, query strings and bodies of
    common providers. A parameter such as `max_tokens` is none of them.
    """
    return name.lower() not in _NOT_SECRET_NAME and _SECRET_NAME.match(name) is not None


def is_open_header(name: str) -> bool:
    """Return True for a header whose value may be shown.

    Every other one is taken for a credential.

    >>> is_open_header("User-Agent"), is_open_header("X-Corp-Gate")
    (True, False)
    """
    return _OPEN_HEADERS.match(name) is not None


def holds_headers(name: str) -> bool:
    """Return True for the name of a member whose value is a set of headers: `headers`,
    `extra_headers`.
    """
    return _HEADERS_NAME.match(name) is not None


# the environment


def environment_secrets() -> tuple[str, ...]:
    """Values of environment variables whose names say that they are credentials, with the parts
    that may turn up alone, and the logins of addresses. Longest first.

    Short values and paths drop out: the former are modes, the latter only say where a key is.
    """
    # Compared each time, because a key may be set at any moment. `os.environ` decodes every name
    # and value anew, which costs more than a record; the dict inside it is compared at once.
    return _secrets_of(tuple(getattr(os.environ, "_data", os.environ).items()))


@functools.lru_cache(maxsize=1)
def _secrets_of(variables: tuple[tuple[str | bytes, str | bytes], ...]) -> tuple[str, ...]:
    # Longest first.
    secrets: set[str] = set()
    for variable in variables:
        name, value = map(os.fsdecode, variable)
        secret = _SECRET_ENV.search(name) is not None
        if secret and len(value) >= _MIN_ENV and not value.startswith(_PATH_STARTS):
            secrets.update(parts_of(value))
        if "://" in value and (secret or _ADDRESS_ENV.search(name) is not None):
            secrets.update(part for part in url_secrets(value) if len(part) >= _MIN_SECRET)
    return tuple(sorted(secrets, key=len, reverse=True))


# what a value holds


def secrets_in(value: Any) -> list[str]:
    """Return the credentials in a JSON-like value, at any depth, with the parts that may turn up
    alone.

    They are told by a member's name, by standing among headers that are not known to be open, by
    being a SecretText, and by the login of an address. Texts shorter than four characters are left
    out, because removing them would tear ordinary words apart.
    """
    return [s for s in dict.fromkeys(_found(value)) if len(s) >= _MIN_SECRET]


def _found(value: Any) -> Iterator[str]:
    # Not by recursion: depth may be hostile. What is found twice comes twice.
    waiting: list[tuple[Any, str]] = [(value, "")]
    while waiting:
        here, place = waiting.pop()
        if isinstance(here, str):
            yield from _found_in_text(here, place)
        elif isinstance(here, (list, tuple)):
            waiting += _items_with_place(here, place)
        elif isinstance(here, (dict, Mapping)):
            waiting += _members_with_place(here, place)


def _members_with_place(members: Mapping[Any, Any], place: str) -> Iterator[tuple[Any, str]]:
    # The place of a member is "secret", "header", "headers", "names" (of parameters, in a schema)
    # or "".
    for name, member in members.items():
        yield member, place_of(str(name), place)


# Remembered, since the names are few and the question comes with every record.
@functools.lru_cache(maxsize=4096)
def place_of(name: str, outer: str) -> str:
    """Return the place that the name of a member gives its value, `outer` being the same of the
    mapping.

    In a schema, names are those of parameters and say nothing of values.
    """
    if outer == "secret":
        return outer
    if outer == "names":
        return ""
    if name == "properties":
        return "names"
    if is_secret_name(name):
        return "secret"
    if outer == "headers":
        return "" if is_open_header(name) else "header"
    return "headers" if holds_headers(name) else ""


def _items_with_place(items: list[Any] | tuple[Any, ...], place: str) -> Iterator[tuple[Any, str]]:
    # Headers may be written as pairs.
    for item in items:
        pair = pair_of(item) if place == "headers" else None
        if pair is None:
            yield item, place
        else:
            yield pair[1], place_of(pair[0], place)


def pair_of(item: Any) -> tuple[str, Any] | None:
    """Return a header written as `[name, value]` or as `{"name": …, "value": …}`.

    None for anything else.

    >>> pair_of(["X-Key", "abc"])
    ('X-Key', 'abc')
    """
    if isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str):
        return item[0], item[1]
    if isinstance(item, Mapping) and isinstance(item.get("name"), str) and "value" in item:
        return item["name"], item["value"]
    return None


def _found_in_text(text: str, place: str) -> Iterator[str]:
    is_header = place == "header" and len(text) >= _MIN_PART
    is_every_header = place == "headers" and ":" in text
    if place == "secret" or isinstance(text, SecretText) or is_header or is_every_header:
        yield from parts_of(text)
    elif "://" in text:
        yield from url_secrets(text)


def parts_of(secret: str) -> Iterator[str]:
    """Yield a secret, and the part of it that may turn up alone: behind its scheme, its lines, its
    members.

    >>> list(parts_of("Bearer abcdefgh"))
    ['Bearer abcdefgh', 'abcdefgh']
    """
    secret = str(secret)
    yield secret
    stripped = secret.strip()
    if stripped != secret:
        yield stripped
    scheme = _SCHEME.fullmatch(stripped)
    if scheme is not None:
        yield scheme[2]
        if scheme[1].lower() == "basic":
            yield from _login(scheme[2])
    if "\n" in stripped:
        lines = map(str.strip, stripped.splitlines())
        yield from (s for s in lines if len(s) >= 2 * _MIN_PART and not s.startswith("-----"))
    if "://" in stripped:
        yield from url_secrets(stripped)
    elif stripped.startswith(("{", "[")):
        yield from _in_json(stripped)
    else:
        yield from _MEMBER.findall(stripped)


def _login(code: str) -> Iterator[str]:
    try:
        login = base64.b64decode(code, validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return
    user, _, password = login.partition(":")
    yield login
    yield from (part for part in (user, password) if len(part) >= _MIN_PART)


def _in_json(text: str) -> Iterator[str]:
    # The key file of a service account is a secret that is JSON.
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _found(value)


@functools.lru_cache(maxsize=1024)
def url_secrets(url: str) -> tuple[str, ...]:
    """Return the credentials in an address: the login as written, its user and password, and those
    of the query. A user name counts only where it is long enough to be a key itself.

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
    secrets = [login, unquote(login), password, unquote(password)]
    secrets += [value for name, value in parse_qsl(parts.query) if is_secret_name(name)]
    if len(user) >= _MIN_ENV:
        secrets += [user, unquote(user)]
    return tuple(s for s in dict.fromkeys(secrets) if s)


# how it may turn up


@functools.lru_cache(maxsize=256)
def forms_of(secrets: tuple[str, ...]) -> tuple[str, ...]:
    """Return every form of these secrets that may stand in a text, longest first: as it is, and
    escaped for JSON (once and twice), Python, HTML and addresses, in base64 and in hexadecimal
    digits.

    Base64 is found inside a longer text too, as that of `user:password` is.
    """
    forms = {form for secret in secrets if secret for form in _forms(str(secret))}
    return tuple(sorted(forms, key=len, reverse=True))


def _forms(secret: str) -> Iterable[str]:
    escaped = {secret}
    for _ in range(2):
        escaped |= {
            json.dumps(s, ensure_ascii=a)[1:-1] for s in list(escaped) for a in (True, False)
        }
    escaped |= {s.replace("/", "\\/") for s in list(escaped)}
    escaped.add(repr(secret)[1:-1])
    escaped |= {html.escape(s) for s in list(escaped)}
    escaped |= {f(secret, safe="", errors="surrogatepass") for f in (quote, quote_plus)}
    escaped.add(quote(secret, errors="surrogatepass"))

    content = secret.encode("utf-8", "surrogatepass")
    if len(content) >= _MIN_PART:
        escaped.add(content.hex())
        for shift in range(3):
            escaped |= _base64_cores(content, shift)
    return escaped


def _base64_cores(content: bytes, shift: int) -> set[str]:
    # The letters of base64 that `content` alone decides, after 0 to 2 other bytes.
    start = (0, 2, 3)[shift]
    end = (len(content) + shift) * 8 // 6
    shifted = b"\0" * shift + content
    return {
        code(shifted).decode()[start:end] for code in (base64.b64encode, base64.urlsafe_b64encode)
    }
