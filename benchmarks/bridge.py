"""CPU time of the litellm bridge over litellm alone, in one run: per call, per chunk of a stream,
by the provider.

Run with `python benchmarks/bridge.py [calls]`. The endpoint is a mock in a process of its own.
litellm alone sends what the drop-in sends; short blocks of all ways alternate, and what counts is
the median of the ratios of neighbours, because a machine that is shared changes its speed from one
second to the next. Goals: a call at most 5 % over litellm alone, a chunk 10 %, and the provider at
most one more call of litellm.
"""

from __future__ import annotations

import base64
import itertools
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from toolparse_lab.integrations import litellm_bridge
from toolparse_lab.middleware import create_tool_middleware
from toolparse_lab.runner.litellm_door import litellm_module

CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}</tool_call>'
PROSE = "The weather in Oslo is a matter of some days, and nobody knows it before it comes. " * 4
BLOCK = 20
CHUNKS = -(-len(PROSE) // 4) + -(-len(CALL) // 4)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"Answers what is asked about {name}.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name of the city."},
                    "days": {"type": "integer", "minimum": 1},
                    "units": {"enum": ["metric", "imperial"]},
                },
                "required": ["city"],
            },
        },
    }
    for name in ("get_weather", "get_forecast", "find_city")
]


def serve(ready: Connection) -> None:
    from tests.mock_openai import MockOpenAI

    with MockOpenAI() as mock:
        ready.send(mock.url)
        ready.recv()


def compare(ways: dict[str, Callable[[], Any]], calls: int) -> tuple[float, dict[str, float]]:
    """(CPU milliseconds of one call of the first way, name -> how much more each other way takes,
    as a share of it).

    A block is so many calls one after the other, as a program under load makes them: after a pause
    any code finds the processor's caches empty, and the figure would be theirs.
    """
    for work, _ in itertools.product(ways.values(), range(3)):
        work()
    names = list(ways)
    times: dict[str, list[float]] = {name: [] for name in names}
    for n in range(max(4, calls // BLOCK)):
        # Each goes first every third time, so that none always follows the same one.
        for name in names[n % len(names) :] + names[: n % len(names)]:
            work = ways[name]
            began = time.process_time()
            for _ in range(BLOCK):
                work()
            time.sleep(0.05)  # litellm logs calls in a thread of its own, which belongs to them
            times[name].append((time.process_time() - began) * 1000 / BLOCK)
    first = times[names[0]]
    over = {
        name: statistics.median(a / b - 1 for a, b in zip(times[name], first, strict=True))
        for name in names[1:]
    }
    return statistics.median(first), over


def measure(url: str, calls: int) -> dict[str, tuple[float, dict[str, float]]]:
    litellm = litellm_module()
    litellm_bridge.register()
    out: dict[str, tuple[float, dict[str, float]]] = {}
    for kind, said, stream, times in (
        ("call", CALL, False, calls),
        ("stream", PROSE + CALL, True, calls // 4),
    ):
        # A call written out in a question is no longer one when it is sent, nor in the answer.
        order = "say64=" + base64.b64encode(said.encode()).decode()
        asked: dict[str, Any] = {
            "messages": [{"role": "user", "content": order}],
            "api_base": url,
            "api_key": "k",
            "stream": stream,
        }
        sent = create_tool_middleware("hermes").transform_params({**asked, "tools": TOOLS}).params

        def all_of(answer: Any, stream: bool = stream) -> Any:
            return list(answer) if stream else answer

        out[kind] = compare(
            {
                "litellm alone": lambda sent=sent: all_of(
                    litellm.completion(model="openai/m", **sent)
                ),  # type: ignore[misc]
                "drop-in": lambda asked=asked: all_of(  # type: ignore[misc]
                    litellm_bridge.completion("openai/m", tools=TOOLS, **asked)
                ),
                "provider": lambda asked=asked: all_of(  # type: ignore[misc]
                    litellm.completion(model="toolparse/hermes/openai/m", tools=TOOLS, **asked)
                ),
            },
            times,
        )
    return out


def main() -> int:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    here, there = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    try:
        found = measure(here.recv(), calls)
    finally:
        here.send(None)
        server.join(5)
    met = True
    for kind, (parts, share) in {"call": (1, 0.05), "stream": (CHUNKS, 0.10)}.items():
        alone, over = found[kind]
        unit = "ms a call" if parts == 1 else f"ms a stream of {parts} chunks"
        print(f"litellm alone: {alone:.2f} {unit}, {alone / parts * 1000:.0f} µs each")
        for name, limit in (("drop-in", share), ("provider", 1 + share)):
            met &= over[name] <= limit
            more = over[name] * alone / parts * 1000
            print(f"  {name}: {over[name]:+.1%} ({more:+.0f} µs each), goal at most {limit:+.0%}")
    return int(not met)


if __name__ == "__main__":
    raise SystemExit(main())
