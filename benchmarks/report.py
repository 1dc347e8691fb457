"""What a report of many trials costs: python benchmarks/report.py [TRIALS]

The frame is the shipped recording many times over: other models, other cases, ten trials each, a
fifth of the successes turned over, read under two policies. Prints seconds of CPU and of wall for
each part, and for the page from nothing.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import toolparse_lab as tp
from toolparse_lab.evals.frames.dtypes import conform
from toolparse_lab.evals.reports.figures.report import Report

TRIALS = 10


def recorded() -> pd.DataFrame:
    """The trials of the shipped recording under two policies: one row a trial and policy."""
    with tempfile.TemporaryDirectory() as folder, tp.Lab(Path(folder) / "runs.db") as lab:
        lab.replaying(tp.example_recording())
        models = {"m": tp.Model("toolparse-local/smollm2-135m")}
        plan = lab.plan(
            tp.example_cases(), models, ["hermes", "morph_xml"], decoding=["free", "grammar"],
            wording="brief", max_tokens=128,
        )  # fmt: skip
        return lab.run(plan, progress=False).frame(policies=("safe", "middleware"))


def many(trials: int) -> pd.DataFrame:
    """At least so many trials, each under both policies."""
    one = recorded()
    rng = np.random.default_rng(0)
    copies = -(-2 * trials // len(one))
    parts = []
    for i in range(copies):
        part = one.copy()
        part["model"] = f"model {i // TRIALS % 5}"
        part["case_id"] += f" {i // TRIALS // 5}"
        part["trial"] = i % TRIALS
        part["trial_id"] += f"-{i}"
        turned = rng.random(len(part)) < 0.2
        part["score_success"] = (part["score_success"].astype(bool) ^ turned).astype("boolean")
        part["raw"] += " " * int(rng.integers(0, 4))
        parts.append(part)
    return conform(pd.concat(parts, ignore_index=True), "trials")


def timed(name: str, do: Callable[[], object]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    do()
    print(
        f"{name:<34} {time.process_time() - cpu:6.2f} s CPU {time.perf_counter() - wall:6.2f} s "
        "wall"
    )


def main(trials: int) -> None:
    frame = many(trials)
    print(f"{len(frame):,} rows, {(frame['policy'] == 'safe').sum():,} trials")
    by = ["model", "arm"]
    report = Report(frame, by=by, baseline="hermes free")
    timed("cells, intervals and differences", lambda: report.frame)
    timed("outcomes", lambda: (report.waterfall, report.failures))
    timed("codes and coercions", lambda: (report.codes, report.coercions))
    timed("warnings and notes", lambda: report.notes)
    timed("two arms within each model", lambda: report.compare("hermes free", "hermes grammar"))
    timed("a gate", lambda: report.gate(success=0.5))
    with tempfile.TemporaryDirectory() as folder:
        timed("JUnit XML", lambda: report.save(Path(folder) / "r.xml"))
        timed(
            "the page, from nothing",
            lambda: Report(frame, by=by, baseline="hermes free").save(f"{folder}/r.html"),
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
