"""Credentials of a request over HTTP, and their removal from the bytes that passed."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeAlias

from ...runner.exchange.redaction import (
    MIN_SECRET,
    REDACTED,
    forms_of,
    redact_exact,
    redact_named,
    redact_strings,
    secrets_in,
    url_secrets,
)
from ...runner.exchange.types import Passed

# Members of a request that people and models write. A tool may have a parameter `password`, whose
# description is no credential.
_WORDS = frozenset(
    ("messages", "input", "prompt", "system", "instructions", "tools", "functions",
     "response_format", "text", "format")
)  # fmt: skip
# What clients send that must send a key, to servers that want none.
_NO_KEYS = frozenset(
    ("none", "null", "empty", "dummy", "none-needed", "no-key", "no-key-required", "not-needed",
     "sk-no-key-required", "token-abc123", "ollama", "lm-studio", "local", "test")
)  # fmt: skip


def secrets_of_request(
    headers: Iterable[tuple[str, str]], body: Any = None, address: str = ""
) -> tuple[str, ...]:
    """Return the credentials in a request over HTTP, with the parts that may turn up alone.

    body: its JSON, of which the members that people and models write are not looked at. address:
    its path and query. A word such as `none`, which a client sends because it must send a key,
    is not a credential.
    """
    members = body if isinstance(body, dict) else {}
    params = {name: value for name, value in members.items() if name not in _WORDS}
    passing = secrets_in({"headers": [list(pair) for pair in headers], "body": params})
    query = [s for s in url_secrets(address) if len(s) >= MIN_SECRET]
    known = dict.fromkeys((*passing, *query))
    return tuple(s for s in known if s.lower().removeprefix("bearer ") not in _NO_KEYS)


# How secrets are removed. Each form of a secret is looked for in the bytes of a body. A stream may
# have it cut over several events, where it is in no place as a whole: so the values of members that
# carry text are joined by name, and looked through again. What is found becomes ranges of the body,
# and a range is replaced inside the piece where it begins, so that times stay with their pieces.
# Where a model repeated a secret, the numbers of its tokens would say it as well; they go with it.

_TEXT_MEMBER = re.compile(
    rb'"(content|text|delta|arguments|partial_json|reasoning_content|reasoning|thinking|response'
    rb'|refusal|input|token|name)"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)"|"index"\s*:\s*(\d{1,9})'
)
_TOKEN_NUMBERS = re.compile(
    rb'("(?:bytes|token_ids|prompt_token_ids|output_ids)"\s*:\s*)\[[\d\s,]*\]'
)
_MARK = REDACTED.encode()
_Range: TypeAlias = tuple[int, int, bytes]


def without_secrets(passed: Passed, secrets: tuple[str, ...]) -> Passed:
    """Return an exchange without these credentials and those of the environment, in whatever form
    and over whatever pieces they were sent.
    """
    forms = _encoded(forms_of(secrets))
    response, pieces = passed.response, passed.pieces
    if ranges := _merged(_places(response, forms, streamed=len(pieces) > 1)):
        response, pieces = _cut_out(response, pieces, ranges)
    request = passed.request
    if ranges := _merged(_places(request, forms, streamed=False)):
        request, _ = _cut_out(request, (), ranges)
    facts = redact_strings(redact_named(dict(passed.facts)), secrets)
    path = redact_exact(passed.path, secrets)
    return replace(
        passed, path=path, request=request, response=response, pieces=pieces, facts=facts
    )


@functools.lru_cache(maxsize=64)
def _encoded(forms: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(form.encode("utf-8", "surrogatepass") for form in forms)


def _places(body: bytes, forms: tuple[bytes, ...], *, streamed: bool) -> list[_Range]:
    ranges = [(at, at + len(form), _MARK) for form in forms for at in _all(body, form)]
    # A whole answer may have a secret cut over the tokens that it lists.
    if streamed or b'"token"' in body:
        ranges += _over_events(body, forms)
    if ranges:
        for match in _TOKEN_NUMBERS.finditer(body):
            ranges.append((match.end(1), match.end(), b"null"))
    return ranges


def _all(text: bytes, form: bytes) -> Iterator[int]:
    at = text.find(form)
    while at >= 0:
        yield at
        at = text.find(form, at + len(form))


def _over_events(body: bytes, forms: tuple[bytes, ...]) -> Iterator[_Range]:
    # By name, and by name and index: several choices may come in turns.
    values: dict[tuple[bytes, bytes | None], list[tuple[int, int]]] = {}
    index = b""
    for match in _TEXT_MEMBER.finditer(body):
        if match[1] is None:
            index = match[3]
        elif match[2]:
            for key in ((match[1], None), (match[1], index)):
                values.setdefault(key, []).append(match.span(2))
    for spans in values.values():
        text = b"".join([body[start:end] for start, end in spans])
        present = [form for form in forms if form in text]
        if not present:
            continue
        ends = list(accumulate(end - start for start, end in spans))
        for form in present:
            for at in _all(text, form):
                yield from _spread(spans, ends, at, at + len(form))


def _spread(
    spans: list[tuple[int, int]], ends: list[int], start: int, end: int
) -> Iterator[_Range]:
    mark = _MARK
    n = bisect_right(ends, start)
    while start < end:
        first = ends[n] - (spans[n][1] - spans[n][0])  # where this value begins in the joined text
        stop = min(end, ends[n])
        yield spans[n][0] + start - first, spans[n][0] + stop - first, mark
        start, mark, n = stop, b"", n + 1


def _merged(ranges: Iterable[_Range]) -> list[_Range]:
    merged: list[_Range] = []
    for start, end, mark in sorted(ranges, key=lambda r: (r[0], -r[1])):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = (before[0], max(end, before[1]), before[2] or mark)
        else:
            merged.append((start, end, mark))
    return merged


def _cut_out(
    body: bytes, pieces: tuple[tuple[float, int], ...], ranges: list[_Range]
) -> tuple[bytes, tuple[tuple[float, int], ...]]:
    out: list[bytes] = []
    at = 0
    ends = list(accumulate(size for _, size in pieces))
    sizes = [size for _, size in pieces]
    for start, end, mark in ranges:
        out += body[at:start], mark
        at = end
        # The mark is in the piece where the range begins; all others lose what they had of it.
        for n in range(bisect_right(ends, start), len(sizes)):
            piece_start = ends[n] - pieces[n][1]
            if piece_start >= end:
                break
            sizes[n] -= min(end, ends[n]) - max(start, piece_start)
            sizes[n] += len(mark) if start >= piece_start else 0
    out.append(body[at:])
    return b"".join(out), tuple((when, size) for (when, _), size in zip(pieces, sizes, strict=True))
