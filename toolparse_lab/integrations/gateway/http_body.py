"""Bodies of HTTP requests read, and responses written: JSON, and streams of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeAlias

from ...runner.local.gate import Refusal

Headers: TypeAlias = list[tuple[str, str]]
"""Names in lower case, with their values."""

MOST_BODY = 64 * 2**20
"""Bytes of a request's body; more is refused."""
_BODY_SECONDS = 60.0  # from one piece of a body to the next
_LONGEST_LINE = 100  # of a chunk's size
EVENT_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nConnection: close\r\n\r\n"
)
LAST_EVENT = b"data: [DONE]\n\n"


async def read_body(
    headers: Headers, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes:
    """Return the body of a request, b"" if it has none.

    Raises Refusal for one that is too long, that ends early, or whose length two servers might read
    differently.
    """
    size = _size_in(headers)
    if any(name == "expect" and value.lower() == "100-continue" for name, value in headers):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        return await (_read_chunked(reader) if size is None else _read_exactly(reader, size))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise Refusal(400, "The body of this request does not end as its head says.") from None
    except TimeoutError:
        raise Refusal(408, "The body of this request did not come.") from None


def _size_in(headers: Headers) -> int | None:
    """Return the bytes of a body by its head, None for one that comes in chunks.

    Raises Refusal.
    """
    lengths = {value for name, value in headers if name == "content-length"}
    codings = [value.lower() for name, value in headers if name == "transfer-encoding"]
    if len(lengths) + len(codings) > 1 or codings not in ([], ["chunked"]):
        raise Refusal(400, "The length of this request's body is said in two ways.")
    if codings:
        return None
    text = lengths.pop() if lengths else "0"
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refusal(400, "The length of this request's body is no number.")
    return int(text)


async def _read_exactly(reader: asyncio.StreamReader, size: int) -> bytes:
    """So many bytes.

    Raises Refusal if they are too many, TimeoutError where none comes.
    """
    if size > MOST_BODY:
        raise Refusal(413, f"The body of a request to this endpoint has at most {MOST_BODY} bytes.")
    pieces, missing = [], size
    while missing:
        async with asyncio.timeout(_BODY_SECONDS):
            piece = await reader.read(missing)
        if not piece:
            raise asyncio.IncompleteReadError(b"", missing)
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


async def _read_chunked(reader: asyncio.StreamReader) -> bytes:
    """Return a body that came in chunks, without their sizes."""
    body = bytearray()
    while True:
        async with asyncio.timeout(_BODY_SECONDS):
            line = await reader.readuntil(b"\r\n")
        digits = line[:_LONGEST_LINE].partition(b";")[0].strip()
        if not digits or digits.strip(b"0123456789abcdefABCDEF"):
            raise ValueError(line)
        size = int(digits, 16)
        body += await _read_exactly(reader, min(size, MOST_BODY + 1))
        if len(body) > MOST_BODY:
            await _read_exactly(reader, MOST_BODY + 1)  # refuses it
        if size == 0:
            break
        if await _read_exactly(reader, 2) != b"\r\n":
            raise ValueError(line)
    # What may stand behind the last chunk says nothing here, but has to be read.
    for _ in range(_LONGEST_LINE):
        async with asyncio.timeout(_BODY_SECONDS):
            if await reader.readuntil(b"\r\n") == b"\r\n":
                return bytes(body)
    raise ValueError("too many trailers")


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body. Raises Refusal for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refusal(400, "The body of this request is no JSON object.")
    return value


def json_response(value: Any, status: int = 200, more: Mapping[str, str] | None = None) -> bytes:
    """Return a whole response. more: further headers."""
    body = json_bytes(value)
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{name}: {text}" for name, text in (more or {}).items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def event(value: Any) -> bytes:
    """Return one event of a stream."""
    return b"data: " + json_bytes(value) + b"\n\n"


def json_bytes(value: Any) -> bytes:
    """Return JSON in ASCII, which can carry half a surrogate pair as well."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
