"""Credentials: how they are told, in which forms they turn up again, and their removal from
everything that is stored or printed: error messages, request records, endpoint addresses.

A credential is told by its name, by its place (headers, `{env = "…"}`) or by the environment. It is
removed in one of three ways, from sure to careful: by the secret's own text (`redact_exact`,
`redact_strings`), by the name and the place of the member that contains it (`redact_named`), and by
its shape (`redact`), which may also hit a text that only looks like one. Prompts and answers go
through the first two alone: a model's text is evidence, and a guess must not change it.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import html
import json
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlencode, urlsplit, urlunsplit

REDACTED = "[redacted]"

# Names of environment variables that contain a credential, by any of their words.
_SECRET_ENV = re.compile(
    r"(?:^|_)"
    r"(?:[A-Z]*API_?KEY|KEY|KEY_ID|[A-Z]*TOKEN|SECRET|[A-Z]*PASSWORD|PASSWD|PASSPHRASE"
    r"|CREDENTIALS?|AUTH|BEARER|COOKIES?|JWT|PAT|CONNECTION_STRING)"
    r"(?:$|_)",
    re.I,
)
# Names of environment variables that contain an address, which may have a login or a key in it.
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
MIN_SECRET = 4
# The same for what only its place says: a header of an unknown name, a part of a longer secret.
_MIN_PART = 8
_PATH_STARTS = ("/", "./", "~")  # a file with the key, as GOOGLE_APPLICATION_CREDENTIALS names it
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


# -- names


def is_secret_name(name: str) -> bool:
    """Return True for the name of a header, query parameter or body field that carries a
    credential, as common providers have them. Upper and lower case do not matter.

    >>> is_secret_name("x-api-key"), is_secret_name("max_tokens")
    (True, False)
    """
    return name.lower() not in _NOT_SECRET_NAME and _SECRET_NAME.match(name) is not None


# Remembered, since the names are few and the question comes with every record.
@functools.lru_cache(maxsize=4096)
def _place_of(name: str, outer: str) -> str:
    # The place that the name of a member gives its value: "secret", "header", "headers", "names"
    # (of parameters, in a schema, which say nothing of values) or "". outer: that of the mapping.
    if outer == "secret":
        return outer
    if outer == "names":
        return ""
    if name == "properties":
        return "names"
    if is_secret_name(name):
        return "secret"
    if outer == "headers":
        return "" if _OPEN_HEADERS.match(name) else "header"
    return "headers" if _HEADERS_NAME.match(name) else ""


def _pair_of(item: Any) -> tuple[str, Any] | None:
    # A header written as `[name, value]` or as `{"name": …, "value": …}`.
    if isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str):
        return item[0], item[1]
    if isinstance(item, Mapping) and isinstance(item.get("name"), str) and "value" in item:
        return item["name"], item["value"]
    return None


# -- the environment


@functools.lru_cache(maxsize=1)
def _secrets_of(variables: tuple[tuple[str | bytes, str | bytes], ...]) -> tuple[str, ...]:
    # The values of variables whose names say that they are credentials, with the parts that may
    # turn up alone, and the logins of addresses; longest first. Short values are modes, and paths
    # only say where a key is.
    secrets: set[str] = set()
    for variable in variables:
        name, value = map(os.fsdecode, variable)
        secret = _SECRET_ENV.search(name) is not None
        if secret and len(value) >= _MIN_ENV and not value.startswith(_PATH_STARTS):
            secrets.update(parts_of(value))
        if "://" in value and (secret or _ADDRESS_ENV.search(name) is not None):
            secrets.update(part for part in url_secrets(value) if len(part) >= MIN_SECRET)
    return tuple(sorted(secrets, key=len, reverse=True))


# -- what a value contains


def secrets_in(value: Any) -> list[str]:
    """Return the credentials in a JSON-like value, at any depth, with the parts that may turn up
    alone.

    They are told by a member's name, by being among headers that are not known to be open, by
    being a SecretText, and by the login of an address. Texts shorter than four characters are left
    out, because removing them would tear ordinary words apart.
    """
    return [s for s in dict.fromkeys(_found(value)) if len(s) >= MIN_SECRET]


def _found(value: Any) -> Iterator[str]:
    # Not by recursion: depth may be hostile. What is found twice comes twice.
    waiting: list[tuple[Any, str]] = [(value, "")]
    while waiting:
        here, place = waiting.pop()
        if isinstance(here, str):
            if _is_hidden(here, place, _MIN_PART):
                yield from parts_of(here)
            elif "://" in here:
                yield from url_secrets(here)
        elif isinstance(here, (list, tuple)):
            for item in here:
                pair = _pair_of(item) if place == "headers" else None
                if pair is None:
                    waiting.append((item, place))
                else:
                    waiting.append((pair[1], _place_of(pair[0], place)))
        elif isinstance(here, (dict, Mapping)):
            waiting += [(member, _place_of(str(name), place)) for name, member in here.items()]


def _is_hidden(value: Any, place: str, least: int = 0) -> bool:
    # least: the length of a header of an unknown name that is taken for a credential.
    if place == "secret" or isinstance(value, SecretText):
        return True
    if place == "header":
        return not least or len(value) >= least
    # Headers written as one text.
    return place == "headers" and isinstance(value, str) and ":" in value


def parts_of(secret: str) -> Iterator[str]:
    """Yield a secret, and the parts of it that may turn up alone: after its scheme, its lines, its
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
            with contextlib.suppress(ValueError):  # no base64, or no text
                login = base64.b64decode(scheme[2], validate=True).decode("utf-8")
                yield login
                yield from (part for part in login.split(":", 1) if len(part) >= _MIN_PART)
    if "\n" in stripped:
        lines = map(str.strip, stripped.splitlines())
        yield from (s for s in lines if len(s) >= 2 * _MIN_PART and not s.startswith("-----"))
    if "://" in stripped:
        yield from url_secrets(stripped)
    elif stripped.startswith(("{", "[")):
        # The key file of a service account is a secret that is JSON.
        with contextlib.suppress(ValueError, RecursionError):
            yield from _found(json.loads(stripped))
    else:
        yield from _MEMBER.findall(stripped)


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

    # A password may have an @ in it, a host may not.
    login = parts.netloc.rpartition("@")[0]
    user, _, password = login.partition(":")
    secrets = [login, unquote(login), password, unquote(password)]
    secrets += [value for name, value in parse_qsl(parts.query) if is_secret_name(name)]
    if len(user) >= _MIN_ENV:
        secrets += [user, unquote(user)]
    return tuple(s for s in dict.fromkeys(secrets) if s)


# -- the forms in which it may turn up


def forms_of(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return every form in which these secrets, and those of the environment, may be in a text,
    longest first.
    """
    # The environment is compared each time, because a key may be set at any moment. `os.environ`
    # decodes every name and value anew, which costs more than a record; the dict inside it is
    # compared at once.
    environment = _secrets_of(tuple(getattr(os.environ, "_data", os.environ).items()))
    return _forms_of((*secrets, *environment))


@functools.lru_cache(maxsize=256)
def _forms_of(secrets: tuple[str, ...]) -> tuple[str, ...]:
    # Every form of these secrets that may be in a text, longest first: as it is, and escaped for
    # JSON (once and twice), Python, HTML and addresses, in base64 and in hexadecimal digits.
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
        # Inside a longer text, as that of `user:password` is: the letters of base64 that `content`
        # alone decides, after 0 to 2 other bytes.
        for shift, start in enumerate((0, 2, 3)):
            end = (len(content) + shift) * 8 // 6
            for code in (base64.b64encode, base64.urlsafe_b64encode):
                escaped.add(code(b"\0" * shift + content).decode()[start:end])
    return escaped


# -- removal

# What a credential looks like in running text; the first two groups of a match stay.
_IN_TEXT = (
    re.compile(
        r"()()-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.{0,20000}?-----END [A-Z ]{0,40}KEY-----", re.S
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
    """Return `text` without `secrets` (credentials that the caller knows), without values of
    key-like environment variables, and without anything that has the shape of a credential (bearer
    tokens, provider keys, user names and passwords in addresses).

    >>> redact("401: Authorization: Bearer abcdefghijkl at https://u:p@host/v1")
    '401: Authorization: [redacted] at https://[redacted]@host/v1'

    The result is meant for people: it may lose words that only look like a credential.
    """
    text = redact_exact(text, secrets)
    for pattern in _IN_TEXT:
        text = pattern.sub(lambda m: f"{m[1]}{m[2]}{REDACTED}", text)
    # "Authorization: Bearer KEY" is hit by two patterns, and one mark is enough.
    text = text.replace(f"{REDACTED} {REDACTED}", REDACTED)
    return _USERINFO.sub(lambda m: f"{m[1]}{REDACTED}@", text)


def redact_exact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without `secrets` (credentials that the caller knows) and without values of
    key-like environment variables, in the forms that they have in an address, in JSON, in HTML and
    in base64, too. Nothing is guessed.
    """
    for form in forms_of(secrets):
        if form in text:
            text = text.replace(form, REDACTED)
    return text


def is_http_address(text: object) -> bool:
    """Return True for an address that can be asked over HTTP.

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
    """Return an address without user name, password and credentials in its query: the endpoint's
    identity, which does not depend on the environment.

    A slash at its end is dropped, so that two spellings of one endpoint give the same request keys.
    An address that cannot be parsed loses its login only.
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


_PLAIN = (str, int, float, bool)  # SecretText is no plain string


def redact_named(value: Any, *, headers: bool = True, place: str = "") -> Any:
    """Return a JSON-like value in which every member with a credential's name is replaced, at any
    depth.

    The result is made of new dicts with text keys and new lists. A member that is None stays None,
    because there is nothing to hide.

    headers: every header that may not be open counts as a credential, and so does a SecretText.
    Without it names alone decide. place: "headers" for a value that is itself a set of headers.

    Values are not looked at: use it for parameters, headers and bodies, and not for a text that
    someone wrote.
    """
    if value is None or (place == "" and type(value) in _PLAIN):
        return value
    if place == "secret":
        return REDACTED
    if isinstance(value, (dict, Mapping)):
        return {
            str(name): member
            if (below := _place_of(str(name), place)) == "" and type(member) in _PLAIN
            else redact_named(member, headers=headers, place=below)
            for name, member in value.items()
        }
    if isinstance(value, (list, tuple)):
        items: list[Any] = []
        for item in value:
            pair = _pair_of(item) if place == "headers" else None
            if pair is None:
                items.append(redact_named(item, headers=headers, place=place))
                continue
            # A header written as a pair.
            name, member = pair
            member = redact_named(member, headers=headers, place=_place_of(name, place))
            items.append({**item, "value": member} if isinstance(item, Mapping) else [name, member])
        return items
    if headers and _is_hidden(value, place):
        return REDACTED
    return value


def redact_strings(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return a JSON-like value in which known secrets are removed from every string, keys included.

    Nothing is guessed (see `redact_exact`). If nothing changes, the value itself comes back.
    """
    forms = forms_of(secrets)
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
    # What has no secret in it stays the object it is, and is not copied: 100,000 cases share their
    # tools. least: the length of the shortest form; none is empty.
    if isinstance(value, str):
        # Most strings of a record are names, and too short for any secret.
        if len(value) >= least:
            for form in forms:
                if form in value:
                    value = value.replace(form, REDACTED)
        return value
    # What changes is another object, for the caller to see. A tuple that changes becomes a list,
    # which JSON does not tell apart.
    if isinstance(value, Mapping):
        members = {_without(k, forms, least): _without(v, forms, least) for k, v in value.items()}
        return value if all(members.get(k) is v for k, v in value.items()) else members
    if isinstance(value, (list, tuple)):
        items = [_without(item, forms, least) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    return value
