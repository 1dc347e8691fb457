"""How long `lab.ingest` takes for a log, and how much memory: python benchmarks/ingest.py [--rows
100000]

The log is JSONL of that many different questions to three models, each row with its three tools,
half of them with a target. It is taken in twice: the second time the answers are there already. CPU
time is the process's own; the peak of memory is that of the whole process, the import of the
package included.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where"}, "days": {"type": "integer"},
        "flag": {"type": "boolean"},
    },
    "required": ["city"],
}  # fmt: skip
TOOLS = [
    {
        "name": f"tool_{n}",
        "description": "Does what one sentence can say.",
        "parameters": PARAMETERS,
    }
    for n in range(3)
]


def rows(count: int) -> Iterator[dict[str, Any]]:
    """A log: one in ten answers is cut off."""
    chance = random.Random(1)
    for n in range(count):
        name, arguments = f"tool_{chance.randrange(3)}", {"city": f"City {n}", "days": n % 30}
        call = (
            f'<tool_call>\n{{"name": "{name}", "arguments": {json.dumps(arguments)}}}\n</tool_call>'
        )
        row: dict[str, Any] = {
            "prompt": f"What about City {n} for {n % 30} days? "
                "" + "Please be careful. " * 6, "model": f"model-{n % 3}",
            "output": "I will look that "
                f"up.\n{call[:-20] if chance.random() < 0.1 else call}", "tools": TOOLS,
            "latency": round(chance.random(), 3), "user": f"u{n % 100}",
        }  # fmt: skip
        if n % 2:
            row["target"] = [{"name": name, "arguments": arguments}]
        yield row


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=100_000)
    count = options.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with log.open("w", encoding="utf-8") as f:
            f.writelines(json.dumps(row) + "\n" for row in rows(count))
        with tp.Lab(Path(folder) / "runs.db") as lab:
            for turn in ("first", "second"):
                wall, cpu = time.monotonic(), time.process_time()
                run = lab.ingest(log, protocol="hermes")
                wall, cpu = time.monotonic() - wall, time.process_time() - cpu
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                sizes = f"{len(run.plan.items):,} rows of {len(run.plan.cases):,} cases"
                del run  # or its cases would be in memory twice
                print(
                    f"{turn} time: {sizes} in {cpu:.0f} s of CPU, {wall:.0f} s; peak of memory "
                    f"{peak:,.0f} MB"
                )
        kept, stored = (file.stat().st_size / 2**20 for file in (log, Path(folder) / "runs.db"))
        print(f"log {kept:,.0f} MB, store {stored:,.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
