"""What the proxy and the recorder of litellm cost: python benchmarks/proxy.py [REQUESTS]

A server answers at once, with the same bytes each time: whole, or as a stream of 53 pieces. It is
asked directly and through `toolparse serve --pass-through`, which runs in a process of its own and
records into a store. Prints the time to the first piece, 200 streams at once with their bytes
compared and the records counted, the CPU and memory of the server in between, and how much of
litellm's CPU `Recorder` takes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

import toolparse_lab as tp
from toolparse_lab.extensions.serve import Recorder

PIECES = 53
TOGETHER = 200
TEXT = "A berth for two nights is free. "


def _chunk(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice]}  # fmt: skip
    return b"data: " + json.dumps(body).encode() + b"\n\n"


STREAM = [*(_chunk(TEXT) for _ in range(PIECES - 2)), _chunk("", "stop"), b"data: [DONE]\n\n"]
WHOLE = json.dumps(
    {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
     "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT * 50},
                  "finish_reason": "stop"}],
     "usage": {"prompt_tokens": 9, "completion_tokens": 400, "total_tokens": 409}}
).encode()  # fmt: skip
ASKED = {"model": "m", "messages": [{"role": "user", "content": "A berth?"}]}


async def _answer(request: web.Request) -> web.StreamResponse:
    if not (await request.json()).get("stream"):
        return web.Response(body=WHOLE, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for piece in STREAM:
        await response.write(piece)
        await asyncio.sleep(0)
    await response.write_eof()
    return response


@contextmanager
def upstream() -> Iterator[str]:
    """The server, in a thread; its CPU is not the proxy's."""
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), []

    async def start() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", _answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        found.append(runner.addresses[0][1])
        ready.set()

    def serve() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()

    threading.Thread(target=serve, daemon=True).start()
    ready.wait()
    yield f"http://127.0.0.1:{found[0]}"
    loop.call_soon_threadsafe(loop.stop)


@contextmanager
def proxied(url: str, store: Path) -> Iterator[tuple[str, int]]:
    """The proxy as a process: its address and the process id."""
    words = [sys.executable, "-m", "toolparse_lab.cli", "serve", "--upstream", url]
    process = subprocess.Popen(
        [*words, "--pass-through", "--record", str(store), "--port", "0", "--app", "bench"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    address = None
    while address is None:
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
    threading.Thread(target=process.stdout.read, daemon=True).start()
    yield address[0], process.pid
    process.terminate()
    process.wait()


def cpu_of(pid: int) -> float:
    """Seconds of CPU of a process, from /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid: int) -> float:
    """Peak memory of a process in MB, from /proc."""
    match = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text("utf-8"))
    return int(match[1]) / 1000 if match else 0.0


async def ask(session: aiohttp.ClientSession, url: str, stream: bool) -> tuple[float, bytes]:
    """Seconds to the first piece, and all bytes."""
    began = time.perf_counter()
    asked = {**ASKED, "stream": stream}
    async with session.post(f"{url}/v1/chat/completions", json=asked) as response:
        first = await response.content.readany()
        seconds = time.perf_counter() - began
        return seconds, first + await response.content.read()


async def measured(direct: str, proxy: str, pid: int, count: int) -> None:
    """Print all figures of the proxy."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        for url in (direct, proxy):
            for _ in range(50):
                await ask(session, url, True)
        firsts: dict[str, list[float]] = {direct: [], proxy: []}
        for _ in range(count):
            for url in (direct, proxy):
                firsts[url].append((await ask(session, url, True))[0])
        for share, name in ((0.5, "median"), (0.95, "95 %")):
            at = [sorted(firsts[url])[int(share * count)] * 1000 for url in (direct, proxy)]
            print(
                f"first piece, {name}: {at[0]:.2f} ms directly, {at[1]:.2f} through the proxy, "
                f"{at[1] - at[0]:.2f} more (n = {count})"
            )
        whole = b"".join(STREAM)
        many = await asyncio.gather(*(ask(session, proxy, True) for _ in range(TOGETHER)))
        same = sum(body == whole for _, body in many)
        print(f"{TOGETHER} streams at once: {same} with the same bytes")
        for stream, name in ((False, "plain answers"), (True, "streams")):
            before = cpu_of(pid)
            for _ in range(count):
                await ask(session, proxy, stream)
            spent = (cpu_of(pid) - before) / count * 1000
            print(f"CPU of the proxy for 1,000 {name}: {spent:.2f} s (n = {count})")
    print(f"peak memory of the proxy: {peak_of(pid):.0f} MB")


def callback_cost(url: str, store: Path, count: int) -> None:
    """Print what the recorder takes of litellm's CPU."""
    import litellm

    def cpu() -> float:
        before = time.process_time()
        for _ in range(count):
            litellm.completion(
                "openai/m", messages=ASKED["messages"], api_base=f"{url}/v1", api_key="k"
            )
        return time.process_time() - before

    cpu()
    shares = []
    for _ in range(3):
        without = cpu()
        recorder = Recorder(str(store))
        litellm.callbacks = [recorder]
        shares.append(cpu() / without - 1)
        litellm.callbacks = []
        recorder.close()
    print(
        f"Recorder: {statistics.median(shares):+.1%} of litellm's CPU, the server's in it "
        f"({min(shares):+.1%} to {max(shares):+.1%}; 3 × {count} calls)"
    )


def main(count: int) -> None:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as folder, upstream() as url:
        store = Path(folder) / "live.db"
        with proxied(url, store) as (proxy, pid):
            asyncio.run(measured(url, proxy, pid, count))
        with tp.Lab(store) as lab:
            recorded = len(lab.ingest(lab.store).trials())
        print(f"recorded: {recorded} of {50 + count + TOGETHER + 2 * count}")
        callback_cost(url, Path(folder) / "calls.db", min(count, 300))


if __name__ == "__main__":
    sent: Any = sys.argv[1:]
    main(int(sent[0]) if sent else 1000)
