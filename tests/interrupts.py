"""Ctrl-C at random moments while a pool of processes starts, works and ends.

`python -m tests.interrupts 200` prints how many were tried, and hung or left a process behind.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PATIENCE = 20.0
"""Seconds, on a busy machine, for a program to end that was told to."""
# As a script without a handler of its own would do it: what is left of it is the interpreter's end.
_POOL = """
import sys
from toolparse_lab.evals.engines import run_pool
from tests.interrupts import busy
print("begun", flush=True)
held = run_pool(busy, iter(range(40)), 2)
for done in held:
    pass
"""


def busy(n: int) -> int:
    """A piece of work for a process of the pool."""
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        n += 1
    return n


def left_behind(group: int) -> list[int]:
    """The processes of a group that are still there."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(place.name))
    return found


def interrupted(after: float, sign: int = signal.SIGINT, everyone: bool = True) -> str:
    """Interrupt a pool after some seconds: "" if all ended, else what did not.

    everyone: the signal goes to all processes, as a terminal sends it, else to the first alone.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", _POOL],
        cwd=ROOT, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after)
        if process.poll() is None:
            (os.killpg if everyone else os.kill)(process.pid, sign)
        try:
            process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return "hung"
        end = time.monotonic() + PATIENCE
        while left_behind(process.pid):
            if time.monotonic() > end:
                return f"left {len(left_behind(process.pid))} processes"
            time.sleep(0.05)
        return ""
    finally:
        for pid in {process.pid, *left_behind(process.pid)}:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def main(times: int) -> int:
    """Print what came of so many interrupts, and return how many went wrong."""
    chance = random.Random(int(time.time()))
    wrong: list[str] = []
    for n in range(times):
        # A third each while it starts, works and ends; some kill the parent alone.
        after = chance.choice((0.3, 1.5, 3.5)) * chance.random()
        sign = signal.SIGKILL if n % 10 == 9 else signal.SIGINT
        found = interrupted(after, sign, everyone=n % 10 != 9)
        if found:
            wrong.append(f"{found} after {after:.3f} s")
            print(wrong[-1], flush=True)
    print(
        "Ctrl-C, or kill -9 of the parent, while a pool of processes starts, works and ends "
        f"| {times} | {len(wrong)} hung or left a process | | "
    )
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)))
