"""Binary event streams of AWS (`application/vnd.amazon.eventstream`), as proxies record them."""

# How it works. A frame is its length and that of its headers with a checksum of both, the headers,
# a payload, and a checksum of all before it. Nothing else begins with a checksum that is right, and
# a text is asked for one only where it begins as the base64 of a short frame does. A frame whose
# own checksum is wrong is left out, and where a length is not to be trusted the reading ends. Both
# are said in `Captured.unreadable`.

from __future__ import annotations

import base64
from collections.abc import Mapping
from struct import Struct
from typing import Any
from zlib import crc32

from ...core.values import read_strict

_PRELUDE, _CRC = Struct(">III"), Struct(">I")
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}  # of a header's value, by its type
_TEXTS = (6, 7)  # the types of values that say their length
_BASE64 = 16  # characters that hold a prelude


def frames_in(data: str | bytes) -> bytes | None:
    """Return the bytes of a stream of frames, or of the base64 of one, None for anything else."""
    if isinstance(data, str):
        data = data.strip()
        if not data.startswith("AA") or not _begins(_decoded(data[:_BASE64])):
            return None
        # What follows the last whole group of four was cut.
        text = "".join(data.split())
        return _decoded(text[: len(text) // 4 * 4])
    return data if _begins(data) else None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


def _begins(data: bytes) -> bool:
    if len(data) < _PRELUDE.size:
        return False
    return bool(crc32(data[:8]) == _PRELUDE.unpack_from(data)[2])


def events_of(data: bytes) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return the events of frames, each under its name, and what is wrong with the others."""
    events: list[Mapping[str, Any]] = []
    unreadable: list[str] = []
    start = 0
    while start < len(data):
        prelude = data[start : start + _PRELUDE.size]
        if not _begins(prelude):
            unreadable.append(f"a frame at byte {start} whose length cannot be read")
            break
        total, headers, _ = _PRELUDE.unpack(prelude)
        frame = data[start : start + total]
        if len(frame) < total:
            unreadable.append(f"a frame at byte {start} that was cut off")
            break
        event = _event(frame, headers)
        if event is None:
            unreadable.append(f"a frame at byte {start} that is damaged")
        else:
            events.append(event)
        start += max(total, _PRELUDE.size)
    return events, unreadable


def _event(frame: bytes, headers: int) -> Mapping[str, Any] | None:
    begin, end = _PRELUDE.size + headers, len(frame) - _CRC.size
    if begin > end or crc32(frame[:end]) != _CRC.unpack_from(frame, end)[0]:
        return None
    try:
        said = _headers(frame[_PRELUDE.size : begin])
        payload = read_strict(frame[begin:end].decode()) if begin < end else {}
    except (ValueError, RecursionError, IndexError, KeyError):
        return None
    if (code := said.get(":error-code")) is not None:
        return {"error": {"message": said.get(":error-message") or code, "type": code}}
    name = said.get(":event-type") or said.get(":exception-type")
    return None if name is None else {name: payload}


def _headers(data: bytes) -> dict[str, str]:
    said: dict[str, str] = {}
    at = 0
    while at < len(data):
        name = data[at + 1 : at + 1 + data[at]].decode()
        at += 1 + data[at]
        kind = data[at]
        at += 1
        size = 2 + int.from_bytes(data[at : at + 2]) if kind in _TEXTS else _SIZES[kind]
        if kind in _TEXTS:
            said[name] = data[at + 2 : at + size].decode()
        at += size
    return said
