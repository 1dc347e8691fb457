"""The gateway and the proxy beside an upstream server that does everything wrong.

`python benchmarks/bad_upstream.py [seconds of each kind] [kinds]` prints a row for each kind of
fault: what callers got, the slowest of the answers that 50 others waited for, and the most memory.
The first row of a server is without a fault: what the machine itself costs. The last lines sum up.
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
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
CALLERS = 50
ATTACKERS = 4  # of each kind, half of them with streams
LIMIT_SECONDS, LIMIT_MB = 0.5, 300
NONE = "nothing wrong"
Row = tuple[str, float, int]  # what callers got, the slowest of the others, the most memory
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


@cache
def packed() -> tuple[bytes, bytes]:
    """The beginning of a packed body, and a block of it that may follow any number of times."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    first = pack.compress(OPEN) + pack.compress(b"a" * 2**24) + pack.flush(zlib.Z_FULL_FLUSH)
    again = zlib.compressobj(9, zlib.DEFLATED, -15)
    return first, again.compress(b"a" * 2**24) + again.flush(zlib.Z_FULL_FLUSH)


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
CHUNKED = EVENTS + "Transfer-Encoding: chunked\r\n"
OK = b"HTTP/1.1 200 OK\r\n"


def event(choice: object, times: int = 1) -> bytes:
    return f"data: {json.dumps({'id': 'c', 'choices': choice})}\n\n".encode() * times


async def numbered(piece: Callable[[int], bytes]) -> Pieces:
    yield delta("")
    for n in range(10**6):
        yield piece(n)
        if n % 50 == 0:
            await asyncio.sleep(0)


def call_event(n: int) -> bytes:
    call = {"index": n, "id": f"c{n}", "function": {"name": "f", "arguments": "{}"}}
    return event([{"index": 0, "delta": {"tool_calls": [call]}}])


# Kind -> (more of the head, the body). Without a head the pieces are all that is sent.
KINDS: dict[str, Callable[[], tuple[str | None, Pieces]]] = {
    "10 GB of a body": lambda: (WHOLE, repeated(OPEN, b"a" * 65536)),
    "a line without end": lambda: (
        EVENTS,
        repeated(b'data: {"choices":[{"delta":{"content":"', b"a" * 65536),
    ),
    "a stream without end": lambda: (EVENTS, repeated(delta(""), delta("word ") * 200)),
    "a stream of large parts": lambda: (EVENTS, repeated(delta(""), delta("word " * 10_000))),
    "comments without end": lambda: (EVENTS, repeated(b"", b": x\n\n" * 10_000)),
    "lines of one event without end": lambda: (EVENTS, repeated(b"", b"data: x\n" * 5_000)),
    "lines that end with CR": lambda: (EVENTS, repeated(b"", b"data: x\r" * 8_000)),
    "events without content": lambda: (EVENTS, repeated(delta(""), delta("") * 300)),
    "events that are none": lambda: (
        EVENTS,
        repeated(delta(""), event(None, 200) + b"data: null\n\ndata: 5\n\n"),
    ),
    "a call without end": lambda: (
        EVENTS,
        repeated(delta('<tool_call>{"name": "f", "arguments": {"a": "'), delta("word ") * 100),
    ),
    "calls without end": lambda: (EVENTS, numbered(call_event)),
    "choices without end": lambda: (
        EVENTS,
        numbered(lambda n: event([{"index": n, "delta": {"content": "x"}}])),
    ),
    "thoughts without end": lambda: (
        EVENTS,
        repeated(b"", event([{"index": 0, "delta": {"reasoning_content": "word "}}], 200)),
    ),
    "gzip of 10 GB": lambda: (WHOLE + "Content-Encoding: gzip\r\n", repeated(*packed())),
    "gzip of gzip": lambda: (WHOLE + "Content-Encoding: gzip, gzip\r\n", repeated(*packed())),
    "deflate that is none": lambda: (WHOLE + "Content-Encoding: deflate\r\n", repeated(*packed())),
    "drips": lambda: (WHOLE, repeated(OPEN, b"a", 0.05)),
    "dripping headers": lambda: (None, repeated(OK + b"X", b"X", 0.05)),
    "bursts": lambda: (EVENTS, repeated(delta(""), delta("word ") * 2_000, 0.5)),
    "a reset": lambda: (WHOLE + "Content-Length: 900\r\n", in_order(OPEN)),
    "a shorter body than told": lambda: (WHOLE + "Content-Length: 9000\r\n", in_order(GOOD)),
    "a longer body than told": lambda: (WHOLE + "Content-Length: 20\r\n", in_order(GOOD)),
    "a chunk longer than it is": lambda: (CHUNKED, repeated(b"ffffffffffff\r\n", b"a" * 65536)),
    "a chunk below nothing": lambda: (CHUNKED, in_order(b"-5\r\nabc\r\n")),
    "a chunk's size without end": lambda: (CHUNKED, repeated(b"", b"0" * 65536)),
    "chunks of a byte": lambda: (CHUNKED, repeated(b"", b"1\r\na\r\n" * 5_000)),
    "trailers without end": lambda: (CHUNKED, repeated(b"0\r\n", b"X-A: b\r\n" * 4_000)),
    "headers without end": lambda: (None, repeated(OK, b"X-A: " + b"a" * 1000 + b"\r\n")),
    "interim responses without end": lambda: (
        None,
        repeated(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 500),
    ),
    "another protocol": lambda: (
        None,
        repeated(b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", b"a" * 65536),
    ),
    "a status of 5 KB": lambda: (
        None,
        in_order(b"HTTP/1.1 999999999 " + b"\xff" * 5000 + b"\r\n\r\n"),
    ),
    "no HTTP": lambda: (None, in_order(b"<html>hello</html>")),
    "an error of 10 GB": lambda: (None, repeated(b"HTTP/1.1 500 X\r\n\r\n", b"a" * 65536)),
    "a wait of NaN seconds": lambda: (
        None,
        in_order(b"HTTP/1.1 429 X\r\nRetry-After: NaN\r\nContent-Length: 2\r\n\r\n{}"),
    ),
    "a redirect elsewhere": lambda: (
        None,
        in_order(
            b"HTTP/1.1 307 X\r\nLocation: http://localhost:{port}/elsewhere\r\n"
            b"Content-Length: 0\r\n\r\n"
        ),
    ),
    "a redirect to itself": lambda: (
        None,
        in_order(
            b"HTTP/1.1 307 X\r\nLocation: /v1/chat/completions\r\nContent-Length: 0\r\n\r\n"
        ),
    ),
    "bytes that are no UTF-8": lambda: (WHOLE, in_order(GOOD.replace(b"ok", b"\xff\xed\xa0\x80"))),
    "NaN": lambda: (WHOLE, in_order(GOOD.replace(b'"index": 0', b'"index": NaN'))),
    "a number of 5 MB": lambda: (
        WHOLE,
        in_order(GOOD.replace(b'"index": 0', b'"index": ' + b"9" * 5_000_000)),
    ),
    "4 MB of brackets": lambda: (WHOLE, in_order(b"[" * 2**22)),
    "4 MB of brackets in a call": lambda: (
        WHOLE,
        in_order(OPEN, b"<tool_call>" + b"[" * 2**22, b'"}}]}'),
    ),
    "8 MB of text": lambda: (
        WHOLE,
        in_order(OPEN, b"word <tool_call> " * (7 * 2**16), b'"}}]}'),
    ),
}  # fmt: skip


async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = re.search(r"content-length: (\d+)", head, re.I)
        body = await reader.readexactly(int(size[1]) if size else 0)
        if "/elsewhere" in head:
            print("elsewhere", flush=True)
        kind = str(json.loads(body or b"{}").get("model", "")).removeprefix("openai/")
        more, pieces = KINDS[kind]() if kind in KINDS else (WHOLE, in_order(GOOD))
        if more is not None:
            writer.write(OK + f"Connection: close\r\n{more}\r\n".encode())
        port = str(writer.get_extra_info("sockname")[1]).encode()
        async for piece in pieces:
            writer.write(piece.replace(b"{port}", port) if len(piece) < 200 else piece)
            await writer.drain()
        if kind == "a reset":
            writer.transport.abort()
        await writer.drain()
    writer.close()


async def serve_upstream() -> None:
    packed()  # now, because it keeps all others waiting
    async with await asyncio.start_server(upstream, "127.0.0.1", 0, limit=2**26) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Event().wait()


async def ask(port: int, model: str, stream: bool, seconds: float) -> str:
    """What came: a status, and what is to be said of it."""
    body = json.dumps(
        {
            "model": model,
            "stream": stream,
            "tools": TOOLS,
            "messages": [{"role": "user", "content": "Hi"}],
        }
    ).encode()
    head = tail = b""
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
            writer.close()
    except TimeoutError:
        return f"{head[9:12].decode() or 'nothing'} and goes on"
    except OSError as e:
        return type(e).__name__
    if b'"error"' in head + tail:
        return f"{head[9:12].decode()} with an error"
    return head[9:12].decode()


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


def attacked(port: int, kind: str, seconds: float) -> subprocess.Popen[str]:
    # In a process of its own, so that reading much keeps none of those who measure.
    command = [sys.executable, __file__, "attack", str(port), kind, str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def attack(port: int, kind: str, seconds: float) -> None:
    answers = await asyncio.gather(
        *(ask(port, kind, n % 2 == 1, seconds) for n in range(ATTACKERS))
    )
    print(", ".join(f"{n} × {words}" for words, n in Counter(answers).items()), flush=True)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def rested(pid: int) -> None:
    # Wait until the last attack's work is done, and forget the most memory of before.
    for _ in range(40):
        before = cpu_seconds(pid)
        await asyncio.sleep(0.1)
        if cpu_seconds(pid) - before < 0.02:
            break
    with suppress(OSError):  # of a kernel that cannot
        Path(f"/proc/{pid}/clear_refs").write_text("5")


async def tried(server: subprocess.Popen[str], port: int, kind: str, seconds: float) -> Row:
    await rested(server.pid)
    until, times = time.monotonic() + seconds, list[float]()
    attacking = attacked(port, kind, seconds)
    await asyncio.gather(*(health(port, until, times) for _ in range(CALLERS)))
    memory = most_memory(server.pid)
    said = (await asyncio.to_thread(attacking.communicate))[0].strip()
    return said, max(times), memory


async def work(seconds: float, chosen: list[str]) -> int:
    faults = 0
    upstream = subprocess.Popen(
        [sys.executable, __file__, "upstream"], stdout=subprocess.PIPE, text=True
    )
    assert upstream.stdout is not None
    address = f"http://127.0.0.1:{int(upstream.stdout.readline())}"
    print(
        "| fault of the upstream server | server | n | callers got "
        "| slowest of the others | memory |\n|---|---|--:|---|--:|--:|"
    )
    sums = []
    kinds = chosen or list(KINDS)
    for name, words in {
        "gateway": ("--upstream", f"{address}/v1"),
        "proxy": ("--pass-through", "--upstream", address),
    }.items():
        server, port = await asyncio.to_thread(started, *words)
        slowest, most = 0.0, 0
        try:
            await ask(port, NONE, False, 20)  # all is imported then
            for kind in (NONE, *kinds):
                said, slow, memory = await tried(server, port, kind, seconds)
                bad = slow > LIMIT_SECONDS or memory > LIMIT_MB
                faults += bad
                slowest, most = max(slowest, slow), max(most, memory)
                print(
                    f"| {kind} | {name} | {ATTACKERS} | {said} "
                    f"| {slow:.2f} s | {memory} MB |{' !' if bad else ''}",
                    flush=True,
                )
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()
        sums.append((name, slowest, most))
    upstream.kill()
    asked = upstream.communicate()[0].count("elsewhere")
    for name, slowest, most in sums:
        faulty = (
            f"{name}: {len(kinds)} faults of an upstream server, {CALLERS} others ask beside each"
        )
        seen = f"{asked} requests followed a redirect to another host"
        print(f"{faulty} | {ATTACKERS * len(kinds)} | {seen} | {slowest:.2f} s | {most} MB")
    return faults + asked


if __name__ == "__main__":
    given = sys.argv[1:]
    if given == ["upstream"]:
        asyncio.run(serve_upstream())
    elif given[:1] == ["attack"]:
        asyncio.run(attack(int(given[1]), given[2], float(given[3])))
    else:
        sys.exit(bool(asyncio.run(work(float(given[0]) if given else 2.0, given[1:]))))
