"""What ingesting the logs of other tools costs: python benchmarks/shapes.py [ROWS] [SHAPE …]

Each shape's first row of the test data many times over, with its own ids and arguments, as lines of
JSON in one file. Prints seconds of CPU for 100,000 answers, beginning the run included, and the
answers read: a row of promptfoo or tau2 holds several.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from pathlib import Path

import toolparse_lab as tp

ROWS = Path(__file__).parents[1] / "tests" / "cases_evals" / "shapes.jsonl"
# What tells rows apart: ids, and a word of the arguments.
_OWN = re.compile(r'Ystad|"\w*(?:id|Id|ID|testIdx|trial|data_index)": (?:"[^"]*|\d+)')


def written(path: Path, row: object, count: int) -> None:
    text = json.dumps(row)
    with path.open("w", encoding="utf-8") as file:
        for n in range(count):
            file.write(_OWN.sub(rf"\g<0>{n}", text) + "\n")


def main(count: int, wanted: set[str]) -> None:
    first: dict[str, object] = {}
    for line in ROWS.read_text("utf-8").splitlines():
        case = json.loads(line)
        first.setdefault(case["shape"], case["row"])
    print(f"n = {count} rows a shape\n{'shape':>15} {'answers':>8} {'s CPU a 1e5':>13}")
    for shape, row in first.items():
        if wanted and shape not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.jsonl"
            written(path, row, count)
            with tp.Lab(Path(folder) / "runs.db") as lab:
                before = time.process_time()
                run = lab.ingest(path, progress=False, shape=shape)
                cpu = time.process_time() - before
                answers = len(run.plan.items)
                print(f"{shape:>15} {answers:>8} {cpu / answers * 1e5:>13.1f}", flush=True)


if __name__ == "__main__":
    numbers = [int(float(word)) for word in sys.argv[1:] if word[0].isdigit()]
    main((numbers or [100_000])[0], {word for word in sys.argv[1:] if not word[0].isdigit()})
