"""The server of the tests: it answers over real HTTP with responses that are data, bytes and faults,
and keeps what it was sent."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

_JSON = {"Content-Type": "application/json"}
_PHRASES: Mapping[Any, str] = {s.value: f"{s.value} {s.phrase}" for s in HTTPStatus}


@dataclass(frozen=True)
class Answer:
    """A response: status, headers, and pieces of the body, written one by one.

    Without a Content-Length in `headers` its length is told; with "Connection: close" its end is
    the end of the connection.

    Attributes:
        chunked: each piece is a chunk.
        delay: seconds before anything comes.
        gap: seconds after each piece.
        cut: the connection ends after so many pieces.
        reset: it ends as a crashed process ends it.
        hang: nothing comes after the pieces, and the connection stays.
        bare: no status and no headers come, the pieces alone.
    """

    pieces: Sequence[bytes] = (b"{}",)
    status: int | str = 200
    headers: Mapping[str, str] = field(default_factory=_JSON.copy)
    chunked: bool = False
    delay: float = 0.0
    gap: float = 0.0
    cut: int | None = None
    reset: bool = False
    hang: bool = False
    bare: bool = False

    @property
    def head(self) -> bytes:
        """Status and headers as they are sent."""
        headers = dict(self.headers)
        if self.chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif not (
            "Content-Length" in headers
            or headers.get("Connection") == "close"
            or str(self.status).startswith(("204", "304"))
        ):
            headers["Content-Length"] = str(sum(map(len, self.pieces)))
        status = _PHRASES.get(self.status, self.status)
        lines = [f"HTTP/1.1 {status}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1")


@dataclass(frozen=True)
class Asked:
    """A request as it came: its line, its headers in their order, its body."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]

    @property
    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    @property
    def by_name(self) -> dict[str, str]:
        """Headers by their names in lower case."""
        return {name.lower(): value for name, value in self.headers}


def json_answer(body: Any, status: int | str = 200, **headers: str) -> Answer:
    """A response of JSON. In the names of headers a dash is written as a line below."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer([json.dumps(body).encode()], status, {**_JSON, **named})


def event_answer(events: Iterable[Any], **more: Any) -> Answer:
    """A stream of server-sent events that the end of the connection ends."""
    pieces = [f"data: {e if e == '[DONE]' else json.dumps(e)}\n\n".encode() for e in events]
    headers = {"Content-Type": "text/event-stream", "Connection": "close"}
    return Answer(pieces, headers={**headers, **more.pop("headers", {})}, **more)


class ReplayServer:
    """`with ReplayServer(answer) as server`: `server.url` has no path, `server.asked` what came.

    Attributes:
        answer: what every request gets, or what makes it of the request.
        answers: by path, before the other.
        running, most_running: requests under way, now and at most.
    """

    def __init__(
        self, answer: Answer | Callable[[Asked], Answer] = Answer(), port: int = 0
    ) -> None:
        self.answer: Answer | Callable[[Asked], Answer] = answer
        self.answers: dict[str, Answer] = {}
        self.asked: list[Asked] = []
        self.running = self.most_running = 0
        self._socket = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        start = asyncio.start_server(self._serve, sock=self._socket, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def reply(self, asked: Asked) -> Answer:
        """The response to a request."""
        by_path = self.answers.get(asked.path.partition("?")[0])
        if by_path is not None:
            return by_path
        return self.answer if isinstance(self.answer, Answer) else self.answer(asked)

    def keep(self, asked: Asked) -> None:
        """Note a request."""
        self.asked.append(asked)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
                headers = tuple((k, v) for k, _, v in (line.partition(": ") for line in lines))
                asked = Asked(line, headers, await _body(dict(headers), reader))
                self.running += 1
                self.most_running = max(self.most_running, self.running)
                try:
                    self.keep(asked)
                    if not await _write(self._made(asked), line, reader, writer):
                        break
                finally:
                    self.running -= 1
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass  # a client that leaves is part of the tests
        finally:
            writer.close()

    def _made(self, asked: Asked) -> Answer:
        try:
            return self.reply(asked)
        except Exception as e:  # the client fails with what the test did wrong
            return json_answer({"error": {"message": repr(e)}}, "500 Fault of the test")


async def _write(
    answer: Answer, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Send a response, and return True if the connection stays."""
    if answer.delay:
        await asyncio.sleep(answer.delay)
    if not answer.bare:
        writer.write(answer.head)
        if line.startswith("HEAD "):
            return True
    for piece in answer.pieces[: answer.cut]:
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if answer.chunked else piece)
        await writer.drain()
        if answer.gap:
            await asyncio.sleep(answer.gap)
    if answer.hang:
        await reader.read()  # until the client leaves
        return False
    if answer.reset:
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.transport.abort()
    if answer.chunked and answer.cut is None:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return answer.cut is None and answer.headers.get("Connection") != "close"


async def _body(headers: Mapping[str, str], reader: asyncio.StreamReader) -> bytes:
    names = {name.lower(): value for name, value in headers.items()}
    if names.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(names.get("content-length", 0)))
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return body
