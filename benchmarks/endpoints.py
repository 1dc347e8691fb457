"""How often `study.endpoints` finds a degraded endpoint, and how often it gives a false alarm:
python benchmarks/endpoints.py [RUNS [DEGRADATION]]

Simulated verdicts of 2,000 cases at a reference and two other endpoints of the same model. Case by
case endpoints differ by chance in 4 % of the answers. Three degradations: 3 points fewer calls
where one is due, 2 % of arguments corrupted, and another parser, which drops a tenth of the calls
and leaves them in the text. The exit code is 1 where false alarms are surely above 5 %.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolparse_lab.evals.reports.figures.stats import wilson
from toolparse_lab.extensions.study import Endpoints

CASES, CHANCE = 2000, 0.02
DEGRADATIONS: dict[str, tuple[float, float, float]] = {
    "none": (0.0, 0.0, 0.0),
    "fewer calls": (0.03, 0.0, 0.0),
    "corrupted": (0.0, 0.02, 0.0),
    "another parser": (0.0, 0.0, 0.1),
}


def answers(rng: np.random.Generator, hard: Any, model: str, kind: str) -> pd.DataFrame:
    """The trials of one endpoint."""
    silent, corrupt, dropped = DEGRADATIONS[kind]
    n = len(hard)
    due = np.arange(n) % 5 != 0
    right = (rng.random(n) < CHANCE) ^ ~hard  # hard cases are wrong everywhere, but for chance
    called = np.where(due, right | (rng.random(n) < 0.5), ~right)
    lost = due & called & ((rng.random(n) < silent) | (rng.random(n) < dropped))
    called &= ~lost
    right &= ~lost & ~(due & (rng.random(n) < corrupt))
    return pd.DataFrame(
        {
            "model": model,
            "case_id": np.char.add("c", np.arange(n).astype(str)),
            "target": np.where(due, "[{}]", "[]"),
            "n_calls": called.astype(int),
            "n_valid": called.astype(int),
            "sub_code": ["" if ok else "wrong_argument" for ok in right],
            "score_success": right,
            "latency": 1.0,
            "cost": 0.0,
            "blame_layer": "none",
            "blame_code": None,
        }
    )


def verdict_of(seed: int, kind: str) -> str:
    """The verdict on a degraded endpoint, "alarm" if any endpoint is called worse or better."""
    rng = np.random.default_rng(seed)
    hard = rng.random(CASES) < 0.2
    names = {"a": "none", "b": kind, "c": "none"}
    parts = [answers(rng, hard, model, of) for model, of in names.items()]
    seen = Endpoints("a", 0.05, 0.05, pd.concat(parts, ignore_index=True))
    rows = set(seen.frame["verdict"]) if kind == "none" else {seen.verdict("b")}
    return "alarm" if rows & {"worse", "better"} else seen.verdict("b")


def main(runs: int, kinds: Sequence[str]) -> int:
    """Print the table."""
    print(f"n = {runs} runs a row, {CASES} cases")
    print(f"{'degradation':>15} {'called worse':>13} {'95 % interval':>17} {'the same':>9}")
    failed = False
    for kind in kinds:
        ends = [verdict_of(seed, kind) for seed in range(runs)]
        alarms, same = ends.count("alarm"), ends.count("the same")
        i = wilson(alarms, runs)
        bounds = f"{i.low:.1%} to {i.high:.1%}"
        print(f"{kind:>15} {alarms / runs:>13.1%} {bounds:>17} {same / runs:>9.1%}", flush=True)
        failed |= kind == "none" and i.low > 0.05
    return int(failed)


if __name__ == "__main__":
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    sys.exit(main(runs, sys.argv[2:] or list(DEGRADATIONS)))
