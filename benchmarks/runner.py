"""What the lab and its runner cost over a bare loop of litellm, in one run: calls of Python
functions and CPU time, per call and per stream of 46 chunks.

Run with `python benchmarks/runner.py [--calls 5000] [--streams 500] [--inspect PYTHON]`. The
endpoint is a mock in a process of its own, and only the client counts. Function calls are counted
in all threads of a process of its own; a machine's load does not distort them, so the goal is
theirs: a call or a stream by the runner at most 10 % over litellm alone. For the CPU time, blocks
of all three take turns, and what is printed is the median of the blocks' ratios. The runner's part
holds everything a run does: its plan is recorded, each answer is on disk before the next step, and
the same number of connections is open; the lab's part makes the plan and its prompts too.
`--inspect` names the interpreter of an environment with inspect-ai (`python -m venv DIR;
DIR/bin/pip install inspect-ai openai`), which then asks the same questions.

`--faults` asks 5,000 questions of an endpoint that fails in every way there is, and checks what was
recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.bridge import CALL as ANSWER
from benchmarks.bridge import TOOLS
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.experiments.plan import Plan
from toolparse_lab.formats.registry import protocol_of
from toolparse_lab.lab import Lab
from toolparse_lab.runner.exchange.summary import Summary
from toolparse_lab.runner.exchange.types import Model, PlanItem, Request
from toolparse_lab.runner.litellm_door import recording_litellm
from toolparse_lab.runner.loop import run_sync
from toolparse_lab.runner.pool import run_requests
from toolparse_lab.runner.store.store import Store

STREAMED = (ANSWER + " That is what I would ask. " * 9)[
    : 4 * 44
]  # 44 pieces, one opening and one finish part
# calls in a block: a shared machine changes its speed within seconds, so neighbours must be near
BLOCK = 100
GOAL = 0.10
# As long as a real one: it is looked for in every record.
KEY = "benchmark-0123456789abcdef"


def serve(pipe: Connection, latency: float) -> None:
    from tests.mock_openai import MockOpenAI

    with MockOpenAI(latency=latency, keep=False) as mock:
        pipe.send(mock.url)
        pipe.recv()


@contextmanager
def endpoint(latency: float = 0.005) -> Iterator[str]:
    """The address of a mock endpoint in a process of its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there, latency), daemon=True)
    server.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        server.join(5)


def planned(lab: Lab, model: Model, texts: list[str], *, stream: bool) -> Plan:
    cases = [{"id": str(n), "input": text, "tools": TOOLS} for n, text in enumerate(texts)]
    return lab.plan(
        cases, {"m": model}, "hermes", temperature=0, max_tokens=256, seed=0, stream=stream
    )


async def bare(requests: list[Request], connections: int) -> None:
    """The loop that one would write without this package."""
    litellm = recording_litellm()
    gate = asyncio.Semaphore(connections)

    async def ask(request: Request) -> None:
        async with gate:
            answer = await litellm.acompletion(
                model=request.model.name,
                messages=[dict(m) for m in request.messages],
                api_base=request.model.api_base,
                api_key=KEY,
                stream=request.stream,
                timeout=60,
                max_retries=0,
                **request.params,
                **({"stream_options": {"include_usage": True}} if request.stream else {}),
            )
            if request.stream:
                text = "".join(
                    [c.choices[0].delta.content or "" async for c in answer if c.choices]
                )
            else:
                text = answer.choices[0].message.content
            assert text

    await asyncio.gather(*map(ask, requests))


async def recorded(requests: list[Request], store: Store) -> Summary:
    items = [PlanItem(str(n), "m", r.key) for n, r in enumerate(requests)]
    run_id = store.begin_run({}, items, requests=requests)
    return await run_requests(requests, store, run_id=run_id, progress=False)


def cpu(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    run_sync(asyncio.sleep(0.2))  # litellm logs its calls a little later, which belongs to them
    return time.process_time() - began


CONTESTANTS = ("litellm alone", "runner", "lab")


def measured(
    measure: Callable[[Callable[[], Any]], float],
    url: str,
    connections: int,
    stream: bool,
    size: int,
    rounds: int,
) -> dict[str, list[float]]:
    """What `measure` returns for `rounds` blocks of so many questions, by contestant."""
    model = Model(
        "openai/m", api_base=url, api_key=KEY, max_connections=connections, timeout=60, price=(0, 0)
    )
    said = STREAMED if stream else ANSWER
    values: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(Path(folder) / "runs.db") as store,
        Lab(str(Path(folder) / "lab.db")) as lab,
    ):

        def work(name: str, texts: list[str], asked: list[Request]) -> Any:
            if name == "litellm alone":
                return run_sync(bare(asked, connections))
            if name == "runner":
                return run_sync(recorded(asked, store))
            return lab.run(planned(lab, model, texts, stream=stream), progress=False)

        for n in range(-1, rounds):
            texts = [f"no={n}.{i} say={said}" for i in range(size if n >= 0 else 20)]
            asked = list(planned(lab, model, texts, stream=stream).requests.values())
            # Each goes first every third time, so that none always finds the others' memory warm.
            for name in CONTESTANTS[n % 3 :] + CONTESTANTS[: n % 3]:
                value = measure(partial(work, name, texts, asked))
                if n >= 0:  # the first block opens connections and imports what is imported late
                    values[name].append(value)
    return values


def function_calls(url: str, connections: int, stream: bool) -> dict[str, float]:
    """Calls of Python functions for one question, by contestant. To be called in a new process:
    only threads that begin later are counted."""
    counter = itertools.count()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            next(counter)

    threading.setprofile(note)
    sys.setprofile(note)

    def count(work: Callable[[], Any]) -> float:
        before = next(counter)
        work()
        run_sync(asyncio.sleep(0.2))
        return next(counter) - before

    values = measured(count, url, connections, stream, BLOCK, 3)
    return {name: statistics.median(counts) / BLOCK for name, counts in values.items()}


def compare_calls(url: str, connections: int, stream: bool) -> float:
    """Prints the function calls; returns the runner's above litellm's alone, as a share."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        counts = pool.apply(function_calls, (url, connections, stream))
    alone = counts["litellm alone"]
    for name, found in counts.items():
        over = "" if name == "litellm alone" else f", {found / alone - 1:+.1%}"
        print(f"  {name:14} {found:6,.0f} calls of Python functions{over}")
    return counts["runner"] / alone - 1


def compare(url: str, count: int, connections: int, stream: bool) -> None:
    """Prints the milliseconds of a call."""
    size = max(1, min(BLOCK, count // 10))
    times = measured(cpu, url, connections, stream, size, max(1, count // size))
    for name, taken in times.items():
        ratios = sorted(
            ours / alone - 1 for ours, alone in zip(taken, times["litellm alone"], strict=True)
        )
        share = statistics.median(ratios)
        quarter = len(ratios) // 4
        half = f"half of the blocks {ratios[quarter]:+.1%} to {ratios[-quarter - 1]:+.1%}"
        over = f", median {share:+.1%} ({half})" if any(ratios) else ""
        print(f"  {name:14} {statistics.median(taken) / size * 1000:6.2f} ms{over}")


def beside(python: str, url: str, count: int, connections: int) -> None:
    """The same questions by inspect-ai, in its own interpreter, which measures itself."""
    script = Path(__file__).with_name("runner_inspect.py")
    system = protocol_of("hermes").format_tools(tool_specs(TOOLS))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, str(script), url, str(count), str(connections), system, ANSWER],
            capture_output=True, text=True, cwd=folder, check=False,
        )  # fmt: skip
    print(
        "  " + (done.stdout.strip().splitlines() or [done.stderr.strip()[-400:] or "no answer"])[-1]
    )


FAULTS = {
    "": 80,
    "status=429 after=0.05 times=1 ": 5,
    "status=500 times=1 ": 5,
    "status=500 ": 1,
    "status=401 ": 0,
    "cut=3 ": 2,
    "abort=2 gap=0.05 ": 2,
    "size=20 gap=0.01 ": 4,
    "hang ": 1,
}
"""What the endpoint is told to do -> how many of a hundred questions say so."""


def faults(url: str, count: int, connections: int, store: Store) -> bool:
    """Whether all that went wrong was recorded as what it was, and all that could be had was
    had."""
    model = Model(
        "openai/m",
        api_base=url,
        api_key="k",
        max_connections=connections,
        timeout=5,
        max_retries=1,
        price=(0, 0),
    )
    orders = [order for order, share in FAULTS.items() for _ in range(share)]
    with Lab(":memory:") as lab:
        texts = [f"{orders[n % 100]}no={n} say={ANSWER}" for n in range(count)]
        whole, streams = (
            list(planned(lab, model, texts, stream=stream).requests.values())
            for stream in (False, True)
        )
    asked = [(streams if n // 100 % 2 else whole)[n] for n in range(count)]
    began = time.monotonic()
    summary = run_sync(recorded(asked, store))
    wanted: Counter[str] = Counter()
    for n in range(count):
        order, stream = orders[n % 100].strip(), n // 100 % 2 == 1
        kind = {"status=500": "server_error", "hang": "timeout"}.get(order)
        if order.startswith(("cut", "abort")) and stream:
            kind = "cut_stream"
        wanted[kind or "ok"] += 1
    found = Counter({"ok": summary.done, **summary.failures})
    # One that broke before anything of it was read is no stream that was cut.
    found["cut_stream"] += found.pop("connection", 0)
    print(f"  {summary}")
    print(f"  as told: {found == wanted} {dict(found)}; {time.monotonic() - began:.0f} s")
    return found == wanted


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--calls", type=int, default=5000)
    options.add_argument("--streams", type=int, default=500)
    options.add_argument("--connections", type=int, default=16)
    options.add_argument("--inspect", help="the interpreter of an environment with inspect-ai")
    options.add_argument(
        "--faults", action="store_true", help="ask an endpoint that fails in every way"
    )
    chosen = options.parse_args()
    met = True
    with endpoint() as url:
        if chosen.faults:
            print(f"{chosen.calls} questions to an endpoint that fails: {json.dumps(FAULTS)}")
            with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "runs.db") as store:
                return int(not faults(url, chosen.calls, 4 * chosen.connections, store))
        for kind, count in (("call", chosen.calls), ("stream of 46 chunks", chosen.streams)):
            print(f"{kind} by {chosen.connections} connections (goal of the runner: {GOAL:+.0%})")
            met &= compare_calls(url, chosen.connections, kind != "call") <= GOAL
            if count:
                print(f"CPU time of {count:,} of them")
                compare(url, count, chosen.connections, kind != "call")
        if chosen.inspect and not Path(chosen.inspect).exists():
            print(f"inspect-ai is skipped: there is no {chosen.inspect}")
        elif chosen.inspect:
            print(f"inspect-ai, {chosen.calls} calls")
            beside(chosen.inspect, url, chosen.calls, chosen.connections)
    return int(not met)


if __name__ == "__main__":
    raise SystemExit(main())
