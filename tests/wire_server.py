"""An upstream server of bytes, for tests only: it answers over real HTTP with exactly what it was
told to send, in the pieces it was told, and keeps what it was sent.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass
class Answer:
    """Bytes of a response. `pieces` are written one by one, `gap` seconds apart.

    chunked: each piece as a chunk. cut: the connection breaks after so many pieces. hang: nothing
    comes after the pieces, and the connection stays.
    """

    pieces: Sequence[bytes] = (b"{}",)
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})
    chunked: bool = False
    cut: int | None = None
    gap: float = 0.0
    hang: bool = False


@dataclass(frozen=True)
class Asked:
    """A request as it came: its line, its headers in their order, its body."""

    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class WireServer:
    """`with WireServer(answer) as server`: `server.url` has no path, `server.asked` what came.

    answers: by path; the one of "" is for all others.
    """

    def __init__(self, answer: Answer | None = None, **answers: Answer) -> None:
        self.answer = answer or Answer()
        self.answers: dict[str, Answer] = dict(answers)
        self.asked: list[Asked] = []
        self.gone = 0  # connections that the client left before the end
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result()
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
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
        tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
                headers = tuple((k, v) for k, _, v in (line.partition(": ") for line in lines))
                body = await _body({k.lower(): v for k, v in headers}, reader)
                self.asked.append(Asked(line, headers, body))
                path = line.split(" ")[1].partition("?")[0]
                if not await self._write(self.answers.get(path, self.answer), line, writer):
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except OSError:
            self.gone += 1
        finally:
            writer.close()

    async def _write(self, answer: Answer, line: str, writer: asyncio.StreamWriter) -> bool:
        headers = dict(answer.headers)
        if answer.chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif not answer.status.startswith(("204", "304")):
            headers["Content-Length"] = str(sum(map(len, answer.pieces)))
        lines = [f"HTTP/1.1 {answer.status}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode("latin-1"))
        if line.startswith("HEAD "):
            return True
        for n, piece in enumerate(answer.pieces):
            if n == answer.cut:
                await writer.drain()
                return False
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if answer.chunked else piece)
            await writer.drain()
            if answer.gap:
                await asyncio.sleep(answer.gap)
        if answer.hang:
            await asyncio.sleep(3600)
        if answer.chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _body(headers: Mapping[str, str], reader: asyncio.StreamReader) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return body
