"""Answers in an object store, read in partitions: python benchmarks/partitions.py [100000]
[--partitions 4]

A local object store (moto, on the loopback interface) holds so many answers in four Parquet files.
They are read once by one process, then by two at a time, a process a partition, each from the store
and back into it. One of them is killed midway and started again. Printed: seconds of wall, the peak
of memory of a process, and whether all rows and the report are equal, to the last digit.

It needs moto[server] and s3fs beside the package.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

import toolparse_lab as tp
from benchmarks.scale import rows
from toolparse_lab.core.remote import opened, written
from toolparse_lab.core.values import write_canonical

HOST = "http://127.0.0.1:5005"
PLACE = "s3://logs/{}/{}.parquet"
BATCH = 5000


def answers(count: int) -> pa.Table:
    """The log of benchmarks/scale.py as columns."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("raw", "input", "model", "target", "tools_json", "case_id")
    }
    tools = None
    for number, row in enumerate(rows(count)):
        tools = tools or write_canonical(row["tools"])
        target = row.get("target")
        cells = (row["output"], row["prompt"], row["model"], target and write_canonical(target))
        for column, cell in zip(columns.values(), (*cells, tools, str(number // 3)), strict=True):
            column.append(cell)
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})


def read(part: str, out: str) -> None:
    """Read a partition in pieces, so that memory does not grow with it."""
    with opened(PLACE.format("answers", part)) as file, written(PLACE.format(out, part)) as target:
        writer = None
        for batch in pq.ParquetFile(file).iter_batches(BATCH):
            table = tp.read_table(batch, "hermes")
            writer = writer or pq.ParquetWriter(target, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
    # `ru_maxrss` begins with what the process had that started this one.
    status = Path("/proc/self/status").read_text("ascii")
    print(int(status.partition("VmHWM:")[2].split()[0]) / 1024)


def started(part: str, out: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--part", part, "--out", out]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def all_parts(parts: list[str], out: str, at_once: int, kill: bool) -> tuple[float, float]:
    """Seconds and megabytes of reading all partitions. kill: one process, midway."""
    began, peak = time.perf_counter(), 0.0
    waiting, running = list(parts), dict[str, subprocess.Popen[str]]()
    victim = started_at = None
    while waiting or running:
        while waiting and len(running) < at_once:
            part = waiting.pop(0)
            running[part] = started(part, out)
            if kill and victim is None:
                victim, started_at = part, time.perf_counter()
        time.sleep(0.1)
        if kill and started_at and time.perf_counter() - started_at > 4:
            if victim in running:
                running[victim].kill()
            kill = False
        for part, process in list(running.items()):
            if process.poll() is None:
                continue
            said = process.communicate()[0]
            del running[part]
            if process.returncode:
                print(f"  the process of partition {part} was killed, and starts again")
                waiting.insert(0, part)
            else:
                peak = max(peak, float(said))
    return time.perf_counter() - began, peak


def table_of(out: str, parts: list[str]) -> pa.Table:
    tables = []
    for part in parts:
        with opened(PLACE.format(out, part)) as file:
            tables.append(pq.read_table(file))
    return pa.concat_tables(tables).unify_dictionaries()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("count", nargs="?", type=int, default=100_000)
    options.add_argument("--partitions", type=int, default=4)
    options.add_argument("--part", help=argparse.SUPPRESS)
    options.add_argument("--out", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    known = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    os.environ.update(known, AWS_ENDPOINT_URL=HOST, AWS_DEFAULT_REGION="us-east-1")
    if chosen.part:
        read(chosen.part, chosen.out)
        return
    port = HOST.rpartition(":")[2]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(5)
        fsspec.filesystem("s3").mkdir("logs")
        table = answers(chosen.count)
        parts = [str(n) for n in range(chosen.partitions)]
        size = -(-len(table) // len(parts))
        for n, part in enumerate(parts):
            with written(PLACE.format("answers", part)) as target:
                pq.write_table(table.slice(n * size, size), target)
        seconds = {}
        for out, at_once, kill in (("serial", 1, False), ("two", 2, False), ("killed", 2, True)):
            seconds[out], peak = all_parts(parts, out, at_once, kill)
            rate = f"{chosen.count / seconds[out]:,.0f} rows/s"
            print(
                f"{out:<8} {seconds[out]:7.1f} s wall, {peak:5.0f} MB at most, {rate}", flush=True
            )
        print(f"two processes over one: {seconds['serial'] / seconds['two']:.2f} ×")
        wanted = table_of("serial", parts)
        equal = [table_of(out, parts).equals(wanted) for out in ("two", "killed")]
        print(f"rows equal to serial: {equal}")
        began = time.perf_counter()
        reports = [tp.report(f"s3://logs/{out}/*.parquet").frame for out in ("serial", "killed")]
        spent = (time.perf_counter() - began) / 2
        print(f"reports equal: {reports[0].equals(reports[1])}, {spent:.1f} s each")
        for row in islice(reports[0].itertuples(), 3):
            print(f"  {row.model}: {row.success:.4f}")
    finally:
        server.kill()


if __name__ == "__main__":
    main()
