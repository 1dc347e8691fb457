"""Memory and time of runs of any length: planned, run, run again, and read back from the store.

Run with `python benchmarks/runner_size.py [10000 100000]`, the numbers of trials. Each is a process
of its own, whose peak memory is shown. Nothing is sent: a function in the same process answers at
once, so that what is measured is the plan, the pool and the store, and no provider's client.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp
from toolparse_lab.runner.exchange.types import Completion, Request
from toolparse_lab.runner.store.recording import export_recording, import_recording

_T = TypeVar("_T")
ANSWER = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}</tool_call>'
TOOL = {
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    },
}


async def answer(request: Request) -> Completion:
    await asyncio.sleep(0)
    return Completion(
        request.key,
        ANSWER,
        request=request.to_dict(),
        prompt_tokens=400,
        completion_tokens=30,
        cost=0.0,
    )


def step(name: str, work: Callable[[], _T]) -> _T:
    began, used = time.monotonic(), time.process_time()
    found = work()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds, cpu = time.monotonic() - began, time.process_time() - used
    print(f"  {name:24} {seconds:7.1f} s, {cpu:7.1f} s of CPU time, peak {peak:5.0f} MB")
    return found


def measure(trials: int, folder: Path) -> None:
    cases = [
        {"id": f"c{n}", "input": f"weather in city {n}?", "tools": [TOOL], "target": []}
        for n in range(trials // 10)
    ]
    models = {"m": tp.Model("openai/m", price=(0, 0), max_connections=16)}
    with tp.Lab(str(folder / "runs.db")) as lab:
        step("nothing yet", lambda: None)
        plan = step("plan", lambda: lab.plan(cases, models, ["hermes", "morph_xml"], trials=5))
        run = step("run", lambda: lab.run(plan, complete=answer, progress=False))
        assert "0 known before, 0 failed" in str(run.summary), run.summary
        again = step("run again, all known", lambda: lab.run(plan, complete=answer, progress=False))
        assert f"0 recorded, {trials} known" in str(again.summary), again.summary
        read = step("read all answers", lambda: sum(1 for _ in lab.store.completions(run.run_id)))
        file = folder / "recording.jsonl"
        written = step("export", lambda: export_recording(lab.store, file, run_id=run.run_id))
        with tp.Lab(str(folder / "other.db")) as other:
            new = step("import", lambda: import_recording(file, other.store))
        assert read == written == new == trials
    print(f"  the store takes {(folder / 'runs.db').stat().st_size / trials / 1024:.1f} KB a trial")


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("trials", type=int, nargs="*", default=[10_000, 100_000])
    options.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    for trials in chosen.trials:
        if chosen.here:
            with tempfile.TemporaryDirectory() as folder:
                measure(trials, Path(folder))
        else:
            print(f"{trials:,} trials, answered by a function", flush=True)
            subprocess.run([sys.executable, __file__, "--here", str(trials)], check=True)


if __name__ == "__main__":
    main()
