"""The gateway and the proxy beside an upstream server that does everything wrong.

`python benchmarks/bad_upstream.py [seconds of each kind]` prints a row for each kind of fault: what
callers got, the slowest of the answers that 50 others waited for, and the most memory.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent
CALLERS = 50
ATTACKERS = 4  # of each kind, half of them with streams
LIMIT_SECONDS, LIMIT_MB = 0.5, 300
WHOLE = "Content-Type: application/json\r\n"
EVENTS = "Content-Type: text/event-stream\r\n"
OPEN = b'{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"'
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def delta(text: str, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return f"data: {json.dumps({'id': 'c', 'choices': [choice]})}\n\n".encode()


Pieces = AsyncIterator[bytes]


async def repeated(first: bytes, piece: bytes, gap: float = 0.0) -> Pieces:
    yield first
    for _ in range(10 * 2**30 // len(piece)):
        yield piece
        if gap:
            await asyncio.sleep(gap)


async def bomb() -> Pieces:
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield pack.compress(OPEN)
    piece = pack.compress(b"a" * 2**24) + pack.flush(zlib.Z_FULL_FLUSH)
    yield piece
    again = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = again.compress(b"a" * 2**24) + again.flush(zlib.Z_FULL_FLUSH)
    for _ in range(640):
        yield block


async def in_order(*pieces: bytes) -> Pieces:
    for piece in pieces:
        yield piece


GOOD = json.dumps(
    {
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
        ]
    }
).encode()
# Kind -> (more of the head, the body). "close" ends the connection after the body, "reset" cuts it.
KINDS: dict[str, Callable[[bool], tuple[str, Pieces]]] = {
    "10 GB of a body": lambda stream: (WHOLE, repeated(OPEN, b"a" * 65536)),
    "a line without end": lambda stream: (
        EVENTS,
        repeated(b'data: {"choices":[{"delta":{"content":"', b"a" * 65536),
    ),
    "a stream without end": lambda stream: (EVENTS, repeated(delta(""), delta("word ") * 200)),
    "a stream of large parts": lambda stream: (
        EVENTS,
        repeated(delta(""), delta("word " * 10_000)),
    ),
    "comments without end": lambda stream: (EVENTS, repeated(b"", b": x\n\n" * 10_000)),
    "lines of one event without end": lambda stream: (EVENTS, repeated(b"", b"data: x\n" * 5_000)),
    "a call without end": lambda stream: (
        EVENTS,
        repeated(delta('<tool_call>{"name": "f", "arguments": {"a": "'), delta("word ") * 100),
    ),
    "gzip of 10 GB": lambda stream: (WHOLE + "Content-Encoding: gzip\r\n", bomb()),
    "drips": lambda stream: (EVENTS if stream else WHOLE, repeated(OPEN, b"a", 0.05)),
    "bursts": lambda stream: (EVENTS, repeated(delta(""), delta("word ") * 2_000, 0.5)),
    "a reset": lambda stream: (WHOLE + "Content-Length: 900\r\n", in_order(OPEN)),
    "a shorter body than told": lambda stream: (WHOLE + "Content-Length: 9000\r\n", in_order(GOOD)),
    "a longer body than told": lambda stream: (WHOLE + "Content-Length: 20\r\n", in_order(GOOD)),
    "a redirect elsewhere": lambda stream: (
        "Location: http://localhost:{port}/elsewhere\r\nContent-Length: 0\r\n",
        in_order(),
    ),
    "headers without end": lambda stream: ("", repeated(b"", b"X-A: " + b"a" * 1000 + b"\r\n")),
    "8 MB of text": lambda stream: (
        WHOLE,
        in_order(OPEN, b"word <tool_call> " * (7 * 2**16), b'"}}]}'),
    ),
}
elsewhere: Counter[str] = Counter()


async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = re.search(r"content-length: (\d+)", head, re.I)
        body = await reader.readexactly(int(size[1]) if size else 0)
        if "/elsewhere" in head:
            print("ELSEWHERE", head, body, file=sys.stderr)
            elsewhere["asked"] += 1
        asked = json.loads(body or b"{}")
        kind = str(asked.get("model", "")).removeprefix("openai/")
        if kind not in KINDS:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(GOOD) + GOOD
            )
        else:
            more, pieces = KINDS[kind](bool(asked.get("stream")))
            more = more.format(port=writer.get_extra_info("sockname")[1])
            status = "307 Temporary Redirect" if "redirect" in kind else "200 OK"
            end = "" if kind == "headers without end" else "\r\n"
            writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\n{more}{end}".encode())
            async for piece in pieces:
                writer.write(piece)
                await writer.drain()
            if kind == "a reset":
                writer.transport.abort()
        await writer.drain()
    writer.close()


async def ask(port: int, model: str, stream: bool, seconds: float) -> tuple[str, int]:
    """What came: a status, and how many bytes."""
    body = json.dumps(
        {
            "model": model,
            "stream": stream,
            "tools": TOOLS,
            "messages": [{"role": "user", "content": "Hi"}],
        }
    ).encode()
    got = 0
    head = b""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
                b"Authorization: Bearer the-key-of-the-caller\r\n"
                b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            while piece := await reader.read(65536):
                head = head or piece
                tail = piece[-400:]
                got += len(piece)
            writer.close()
    except TimeoutError:
        return f"{head[9:12].decode() or 'nothing'} and goes on", got
    except OSError as e:
        return type(e).__name__, got
    if b'"error"' in head + tail:
        return f"{head[9:12].decode()} with an error", got
    return head[9:12].decode(), got


async def health(port: int, until: float, times: list[float]) -> None:
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            async with asyncio.timeout(20):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(
                    b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                )
                await reader.read()
                writer.close()
        except (OSError, TimeoutError):
            times.append(20.0)
        times.append(time.monotonic() - began)
        await asyncio.sleep(0.5)


def most_memory(pid: int) -> int:
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) // 1024  # type: ignore[index]


def started(*words: str) -> tuple[subprocess.Popen[str], int]:
    env = os.environ | {
        "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    command = [sys.executable, "-m", "toolparse_lab.cli", "serve", *words]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    )
    assert server.stdout is not None
    line = server.stdout.readline()
    return server, int(re.search(r":(\d+)", line.partition("http")[2])[1])  # type: ignore[index]


async def work(seconds: float, chosen: list[str]) -> int:
    faults = 0
    async with await asyncio.start_server(upstream, "127.0.0.1", 0, limit=2**26) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        print(
            "| fault of the upstream server | server | n | callers got "
            "| slowest of the others | memory |"
        )
        print("|---|---|--:|---|--:|--:|")
        for kind in KINDS:
            if chosen and kind not in chosen:
                continue
            for name, words in {
                "gateway": ("--upstream", f"{address}/v1"),
                "proxy": ("--pass-through", "--upstream", address),
            }.items():
                process, port = await asyncio.to_thread(started, *words)
                try:
                    await ask(port, "good", False, 20)  # all is imported then
                    until, times = time.monotonic() + seconds, list[float]()
                    others = asyncio.gather(*(health(port, until, times) for _ in range(CALLERS)))
                    answers = await asyncio.gather(
                        *(ask(port, kind, n % 2 == 1, seconds) for n in range(ATTACKERS))
                    )
                    await others
                    memory, slowest = most_memory(process.pid), max(times)
                finally:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                said = ", ".join(
                    f"{n} × {words}" for words, n in Counter(a for a, _ in answers).items()
                )
                bad = slowest > LIMIT_SECONDS or memory > LIMIT_MB
                faults += bad
                print(
                    f"| {kind} | {name} | {ATTACKERS} | {said} "
                    f"| {slowest:.2f} s | {memory} MB |{' !' if bad else ''}",
                    flush=True,
                )
    print(f"\nRequests that followed a redirect to another host: {elsewhere['asked']}")
    return faults + elsewhere["asked"]


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(bool(asyncio.run(work(float(given[0]) if given else 10.0, given[1:]))))
