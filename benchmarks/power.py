"""How far the power that a plan prints is from the share of simulated data sets that show the drop.

    python benchmarks/power.py                # 4,000 data sets a row: four minutes
    python benchmarks/power.py --sets 400     # a look
    python benchmarks/power.py --write        # a summary, into docs/measurements.md

Each data set has cases with a rate of their own, of which b's are lower by the drop, and trials
drawn from them. Its p is the one that comparisons print. The printed power is told what is true of
the data: how often the arms differ on a case, and two trials of a case.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent.parent))

from toolparse_lab.evals.reports.figures.differences import sign_flip
from toolparse_lab.extensions.study.power_analysis import planned_power

PAGE = Path(__file__).parent.parent / "docs" / "measurements.md"
BEGIN, END = "<!-- printed by python benchmarks/power.py -->", "<!-- end -->"
HEAD = ("cases", "trials", "drop", "data", "printed", "simulated", "apart")
BOUND = 0.05
FEW = 20  # cases, below which a t test says too much for a lattice so coarse
DROPS = {13: 0.3, 40: 0.15, 100: 0.1, 200: 0.07}
TRIALS = (1, 3, 5)
Array = npt.NDArray[Any]
Rates = Callable[[int, float, np.random.Generator], tuple[Array, Array]]


@dataclass(frozen=True)
class Scenario:
    """A way in which cases get their rates: (cases, drop, generator) -> those of a and of b."""

    name: str
    rate: float
    rates: Rates


def alike(rate: float) -> Scenario:
    """All cases have one rate."""
    return Scenario(
        f"all cases alike, rate {rate:g}",
        rate,
        lambda cases, drop, _: (np.full(cases, rate), np.full(cases, rate - drop)),
    )


def apart(rate: float) -> Scenario:
    """Cases have rates of their own, in each arm others."""

    def rates(cases: int, drop: float, rng: np.random.Generator) -> tuple[Array, Array]:
        lower = rate - drop
        return (rng.beta(2 * rate, 2 - 2 * rate, cases), rng.beta(2 * lower, 2 - 2 * lower, cases))

    return Scenario(f"hard in one arm alone, rate {rate:g}", rate, rates)


def shared(rate: float) -> Scenario:
    """A case is as hard in both arms, and b has less of each."""

    def rates(cases: int, drop: float, rng: np.random.Generator) -> tuple[Array, Array]:
        a = rng.beta(2 * rate, 2 - 2 * rate, cases)
        return a, a * (1 - drop / rate)

    return Scenario(f"as hard in both arms, rate {rate:g}", rate, rates)


SCENARIOS = (alike(0.5), alike(0.8), apart(0.7), shared(0.7), shared(0.9))


def printed(scenario: Scenario, cases: int, trials: int, drop: float) -> float:
    """Return the power that is printed for what is true of the scenario."""
    a, b = scenario.rates(400_000, drop, np.random.default_rng(5))
    noise = float((a * (1 - a) + b * (1 - b)).mean())
    flips = float((a * (1 - b) + b * (1 - a)).mean())
    return planned_power(cases, trials, drop, flips=flips, noise=noise).chance


def simulated(
    scenario: Scenario, cases: int, trials: int, drop: float, sets: int, seed: int = 1
) -> float:
    """Return the share of data sets in which p is at most .05."""
    rng = np.random.default_rng([seed, cases, trials])
    keys = np.repeat(np.arange(cases), trials)
    shown = 0
    for _ in range(sets):
        a, b = scenario.rates(cases, drop, rng)
        # Cases stay in their order, so that each trial is compared with its own case.
        one, other = (rng.random(len(keys)) < side[keys] for side in (a, b))
        shown += sign_flip(one, keys, other, keys) <= 0.05
    return shown / sets


def rows(sets: int, seed: int = 1) -> Iterator[list[str]]:
    """Yield the table's rows."""
    for cases, drop in DROPS.items():
        for trials in TRIALS:
            for scenario in SCENARIOS:
                said = printed(scenario, cases, trials, drop)
                found = simulated(scenario, cases, trials, drop, sets, seed)
                figures = [f"{said:.2f}", f"{found:.2f}", f"{said - found:+.3f}"]
                yield [str(cases), str(trials), f"{drop:g}", scenario.name, *figures]


def summary(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of the page's table: the kinds of data of one size together."""
    sizes: dict[tuple[str, ...], list[Sequence[str]]] = {}
    for row in rows:
        sizes.setdefault(tuple(row[:3]), []).append(row)
    lines = [
        "| cases | trials | drop | printed power, lowest to highest | largest error |",
        "|--:|--:|--:|---|--:|",
    ]
    for size, found in sizes.items():
        said = sorted(row[4] for row in found)
        furthest = max(abs(float(row[6])) for row in found)
        lines.append(f"| {' | '.join(size)} | {said[0]} to {said[-1]} | {furthest:.3f} |")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each size and kind of data.

    1 if a printed power is more than five points from the simulated one.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--write", action="store_true", help="put a summary into docs/measurements.md"
    )
    options = parser.parse_args(arguments)
    print("| " + " | ".join(HEAD) + " |", "|--:|--:|--:|---|--:|--:|--:|", sep="\n")
    found = []
    for row in rows(options.sets, options.seed):
        found.append(row)
        print("| " + " | ".join(row) + " |", flush=True)
    furthest = max(abs(float(row[-1])) for row in found if int(row[0]) >= FEW)
    text = "\n".join(summary(found))
    print(f"\n{text}")
    if options.write:
        head, rest = PAGE.read_text("utf-8").split(BEGIN, 1)
        PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}", "utf-8")
    return 0 if furthest <= BOUND else 1


if __name__ == "__main__":
    raise SystemExit(main())
