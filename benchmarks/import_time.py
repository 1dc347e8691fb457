"""CPU time of `import toolparse_lab` in fresh interpreters, in milliseconds; the goal is less than
150.

Run with `make bench-import`. CPU time is taken inside each interpreter around the import alone, so
that start-up and a busy machine do not count.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNS = 9
GOAL_MS = 150
CODE = (
    "import time; t = time.process_time(); import toolparse_lab; "
    "print((time.process_time() - t) * 1000)"
)


def measure(runs: int = RUNS) -> list[float]:
    """Milliseconds of CPU time for each of `runs` fresh interpreters, after one that writes the
    bytecode."""
    times = []
    for _ in range(runs + 1):
        done = subprocess.run(
            [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, cwd=ROOT
        )
        times.append(float(done.stdout))
    return times[1:]


def main() -> int:
    times = measure()
    median = statistics.median(times)
    print(
        f"import toolparse_lab: median {median:.0f} ms CPU ({min(times):.0f} to {max(times):.0f}, "
        f"{len(times)} runs), "
        f"goal < {GOAL_MS} ms"
    )
    return int(median >= GOAL_MS)


if __name__ == "__main__":
    raise SystemExit(main())
