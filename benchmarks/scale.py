"""What the lab costs as runs grow: python benchmarks/scale.py [10000 100000 …] [--only STEP …]
[--tools SETS]

A log of so many answers of three models is ingested, read, and reported, each step in a process of
its own over the same store, as a person does who comes back the next day. Printed for each step:
seconds of CPU (children included) and of wall, the peak of memory of the largest process, and the
size on disk of what it left. At the end the law of growth: the exponent of CPU over rows.

The log: two questions in three are graded, one answer in ten is cut off, one in ten has a value of
the wrong type, one in twenty is prose, one in twenty calls a tool that there is not.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import duckdb
import pyarrow.parquet as pq

import toolparse_lab as tp

WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where"},
        "days": {"type": "integer"},
        "flag": {"type": "boolean"},
    },
    "required": ["city"],
}


def tools_of(kind: str) -> list[dict[str, Any]]:
    """Return three tools, whose names end with `kind`."""
    return [
        {
            "name": f"tool_{n}{kind}",
            "description": "Does what one sentence can say.",
            "parameters": PARAMETERS,
        }
        for n in range(3)
    ]


def rows(count: int, sets: int = 1) -> Iterator[dict[str, Any]]:
    """The log: so many answers, three models to each question. sets: of tools, in turn."""
    chance = random.Random(1)
    tools = [tools_of(f"_{n}" if n else "") for n in range(sets)]
    for n in range(count):
        question = n // 3
        offered = tools[question % sets]
        name, arguments = (
            offered[question % 3]["name"],
            {"city": f"City {question}", "days": question % 30},
        )
        written: dict[str, Any] = dict(arguments)
        if chance.random() < 0.1:
            written["days"] = str(written["days"])
        called = "tool_9" if chance.random() < 0.05 else name
        call = f'{{"name": "{called}", "arguments": {json.dumps(written)}}}'
        answer = f"I will look that up.\n<tool_call>\n{call}\n</tool_call>"
        kind = chance.random()
        if kind < 0.1:
            answer = answer[: -chance.randrange(15, 40)]
        elif kind < 0.15:
            answer = f"The weather in City {question} is fine, as far as I know."
        row: dict[str, Any] = {
            "prompt": f"What about City {question} for {question % 30} days? " + "Be careful. " * 6,
            "model": f"model-{n % 3}",
            "output": answer,
            "tools": offered,
            "latency": round(chance.random(), 3),
            "user": f"u{n % 100}",
        }
        if question % 3:
            row["target"] = [{"name": name, "arguments": arguments}]
        yield row


def ingest(folder: Path, lab: tp.Lab) -> str:
    log = folder / "log.jsonl"
    run = lab.ingest(log, protocol="hermes", progress=False)
    return f"{len(run.plan.items):,} rows, {len(run.plan.cases):,} cases"


def frame(folder: Path, lab: tp.Lab) -> str:
    frame = newest(lab).frame()
    size = frame.memory_usage(deep=True).sum() / 2**20
    return f"{len(frame):,} rows, {size:,.0f} MB in memory"


def report_only(folder: Path, lab: tp.Lab) -> str:
    return f"{len(newest(lab).report().frame)} cells"


def report(folder: Path, lab: tp.Lab) -> str:
    run = newest(lab)
    path = run.report().save(folder / "report.html")
    return f"page of {path.stat().st_size / 2**20:.1f} MB"


def calls(folder: Path, lab: tp.Lab) -> str:
    return f"{len(newest(lab).calls_df()):,} calls"


def failures(folder: Path, lab: tp.Lab) -> str:
    return f"{len(newest(lab).failures(code='wrong_call')):,} wrong calls"


def parse(folder: Path, lab: tp.Lab) -> str:
    return f"{len(newest(lab).frame(policies=('safe', 'middleware'))):,} readings"


def forget(folder: Path, lab: tp.Lab) -> str:
    return f"{lab.forget_parses() / 2**20:,.0f} MB of readings thrown away"


def columns(folder: Path, lab: tp.Lab) -> str:
    table = newest(lab).frame(engine="arrow", policies=("safe", "middleware"))
    size = table.get_total_buffer_size() / 2**20
    pq.write_table(table, folder / "answers.parquet")
    return f"{len(table):,} rows, {size:,.0f} MB in memory"


QUERIES = (
    "select model, avg(score_success::int), count(*) from {} where policy = 'safe' group by 1",
    "select outcome, count(*) from {} where policy = 'safe' group by 1 order by 2 desc",
    "select policy, avg(score_success::int) from {} group by 1",
    "select model, quantile_cont(latency, 0.95) from {} group by 1",
    "select codes_json, count(*) from {} where outcome = 'wrong_call' group by 1 order by 2 desc",
)


def queries(folder: Path, lab: tp.Lab) -> str:
    file = f"'{folder / 'answers.parquet'}'"
    seconds = []
    for query in QUERIES:
        began = time.perf_counter()
        duckdb.execute(query.format(file)).fetchall()
        seconds.append(time.perf_counter() - began)
    return "DuckDB: " + ", ".join(f"{s:.2f}" for s in seconds) + " s"


def report_of_file(folder: Path, lab: tp.Lab) -> str:
    return f"{len(tp.report(folder / 'answers.parquet').frame)} cells"


def matrix(folder: Path, lab: tp.Lab) -> str:
    return f"{len(newest(lab).matrix().frame)} cells"


def parquet(folder: Path, lab: tp.Lab) -> str:
    run = newest(lab)
    out = lab.reparse(run, policies=["safe"], to=folder / "again.parquet", progress=False)
    return f"{out.stat().st_size / 2**20:.1f} MB of Parquet"


STEPS: dict[str, tuple[str, Callable[[Path, tp.Lab], str]]] = {
    "ingest": ("ingest", ingest),
    "frame": ("frame, the first time", frame),
    "frame-again": ("frame again", frame),
    "report": ("report, a second policy the first time", report_only),
    "report-again": ("report again", report_only),
    "page": ("report and page", report),
    "calls": ("calls_df", calls),
    "failures": ("failures by outcome", failures),
    "matrix": ("matrix", matrix),
    "parquet": ("reparse, two processes, to Parquet", parquet),
    "forget": ("forget the readings", forget),
    "parse": ("parse under two policies, all cores", parse),
    "columns": ("frame as Arrow, to Parquet", columns),
    "queries": ("five queries of the Parquet file", queries),
    "report-file": ("report of the Parquet file", report_of_file),
}


def newest(lab: tp.Lab) -> Any:
    return lab.open(lab.runs()[0].run_id)


def step(name: str, folder: Path) -> None:
    """One step, in a process of its own: its figures as a line of JSON."""
    wall, before = time.perf_counter(), used()
    with tp.Lab(folder / "runs.db") as lab:
        said = STEPS[name][1](folder, lab)
    sizes = [f.stat().st_size for f in folder.rglob("*") if f.is_file() and "runs.db" in str(f)]
    peak = max(resource.getrusage(who).ru_maxrss for who in WHO) / 1024
    figures = [time.perf_counter() - wall, used() - before, peak, sum(sizes) / 2**20, said]
    print(json.dumps(figures))


def used() -> float:
    usages = [resource.getrusage(who) for who in WHO]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(count: int, names: list[str], sets: int) -> dict[str, float]:
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        with (Path(folder) / "log.jsonl").open("w", encoding="utf-8") as log:
            log.writelines(json.dumps(row) + "\n" for row in rows(count, sets))
        print(f"{count:,} rows")
        for name in names:
            command = [sys.executable, __file__, "--step", name, "--folder", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"  {STEPS[name][0]:<36} failed: {done.stderr.strip().splitlines()[-1]}")
                continue
            wall, cpu, peak, store, said = json.loads(done.stdout.splitlines()[-1])
            seconds[name] = cpu
            print(
                f"  {STEPS[name][0]:<36} {cpu:7.1f} s CPU {wall:7.1f} s wall {peak:6,.0f} MB peak, "
                f"store {store:6,.0f} MB; {said}",
                flush=True,
            )
    return seconds


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("counts", nargs="*", type=int, default=[10_000])
    options.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS))
    options.add_argument("--tools", type=int, default=1, help="different sets of tools")
    options.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.step:
        step(chosen.step, chosen.folder)
        return 0
    names = [name for name in STEPS if name in chosen.only or name == "ingest"]
    laws = {count: measure(count, names, chosen.tools) for count in sorted(chosen.counts)}
    small, large = min(laws), max(laws)
    if small < large:
        grown = math.log(large / small)
        for name in names:
            if name in laws[small] and name in laws[large]:
                power = math.log(laws[large][name] / max(laws[small][name], 0.01)) / grown
                print(f"  {STEPS[name][0]:<36} CPU grows as rows ** {power:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
