"""How often the printed intervals hold the truth, and how often p and the gate are wrong.

    python benchmarks/intervals.py                 # 2,000 data sets a scenario: six minutes
    python benchmarks/intervals.py --sets 200      # a look
    python benchmarks/intervals.py --write         # the table, into docs/measurements.md

Each data set has a known truth: every case has a chance of its own (Beta, or the same for all), and
trials are drawn from it. `a` and `b` are alike, or b's chances are lower by the margin of the gate.
What is measured are the functions that reports and gates call, not formulas beside them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent.parent))

from toolparse_lab.evals.reports.figures.cells import REQUIRED
from toolparse_lab.evals.reports.figures.comparison import compare_arms
from toolparse_lab.evals.reports.figures.differences import Difference, paired_difference
from toolparse_lab.evals.reports.figures.gates import MARGIN, verdict_of
from toolparse_lab.evals.reports.figures.stats import clustered_interval

PAGE = Path(__file__).parent.parent / "docs" / "measurements.md"
BEGIN, END = "<!-- printed by python benchmarks/intervals.py -->", "<!-- end -->"
RATES = (0.5, 0.9, 0.98)
CASES = (5, 10, 20, 50, 200)
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Arm:
    """The trials of one arm: a success and a case each."""

    successes: Array
    cases: Array


@dataclass(frozen=True)
class Scenario:
    """A way in which data come about. draw: (chances of a, of b, generator) -> both arms.

    alike: all cases have one chance. clusters: cases of one conversation, which share a chance.
    rate_is_known: the rate of the judged trials is that of all, so that its interval can be held to
    it.
    """

    name: str
    draw: Callable[[Array, Array, np.random.Generator], tuple[Arm, Arm]]
    alike: bool = False
    clusters: int = 1
    rate_is_known: bool = True


def trials(chances: Array, counts: Array, rng: np.random.Generator) -> Arm:
    """Return `counts` trials of each case."""
    cases = np.repeat(np.arange(len(chances)), counts)
    return Arm(rng.random(len(cases)) < chances[cases], cases)


def equal(n_a: int, n_b: int) -> Callable[..., tuple[Arm, Arm]]:
    """Return the drawing of so many trials of each case by each arm."""

    def draw(a: Array, b: Array, rng: np.random.Generator) -> tuple[Arm, Arm]:
        return (trials(a, np.full(len(a), n_a), rng), trials(b, np.full(len(b), n_b), rng))

    return draw


def missing_at_random(a: Array, b: Array, rng: np.random.Generator) -> tuple[Arm, Arm]:
    """Three trials of each case, of which each is missing one time in five."""
    return tuple(trials(c, rng.binomial(3, 0.8, len(c)), rng) for c in (a, b))  # type: ignore[return-value]  # two arms


def hard_cases_time_out(a: Array, b: Array, rng: np.random.Generator) -> tuple[Arm, Arm]:
    """Five trials; in b those of the harder half of the cases time out three times in four."""
    kept = np.where(b < np.median(b), 0.25, 1.0)
    return trials(a, np.full(len(a), 5), rng), trials(b, rng.binomial(5, kept), rng)


def log(a: Array, b: Array, rng: np.random.Generator) -> tuple[Arm, Arm]:
    """A tenth of the cases holds twenty times the trials of the others, in both arms."""
    counts = np.where(np.arange(len(a)) < max(1, len(a) // 10), 20, 1)
    return trials(a, counts, rng), trials(b, counts, rng)


SCENARIOS = (
    Scenario("one trial of each case", equal(1, 1)),
    Scenario("one trial, all cases alike", equal(1, 1), alike=True),
    Scenario("five trials", equal(5, 5)),
    Scenario("one trial against five", equal(1, 5)),
    Scenario("one trial against five, all cases alike", equal(1, 5), alike=True),
    Scenario("missing at random", missing_at_random),
    Scenario("hard cases time out in b", hard_cases_time_out, rate_is_known=False),
    Scenario("a log: a tenth of the cases has 20 trials", log),
    Scenario("conversations of five cases, as clusters", equal(1, 1), clusters=5),
)


@dataclass
class Tally:
    """The counts of one scenario at one rate and number of cases."""

    sets: int = 0
    rate_held: int = 0
    difference_held: int = 0
    p_wrong: int = 0
    worse_wrong: int = 0
    not_worse_wrong: int = 0


def chances_of(
    scenario: Scenario, rate: float, cases: int, rng: np.random.Generator
) -> tuple[Array, dict[int, int] | None]:
    """Return the chance of each case, and the cluster of each case."""
    units = cases if scenario.clusters == 1 else max(cases, 5)
    each = np.full(units, rate)
    if not scenario.alike:
        each = rng.beta(2 * rate, 2 * (1 - rate), units)
    if scenario.clusters == 1:
        return each, None
    n = units * scenario.clusters
    return np.repeat(each, scenario.clusters), {c: c // scenario.clusters for c in range(n)}


def measure(scenario: Scenario, rate: float, cases: int, sets: int, seed: int) -> Tally:
    """Return the counts of `sets` data sets."""
    rng = np.random.default_rng([seed, round(1000 * rate), cases])
    tally = Tally(sets)
    for _ in range(sets):
        chances, clusters = chances_of(scenario, rate, cases, rng)
        a, b = scenario.draw(chances, chances, rng)
        if scenario.rate_is_known:
            interval = clustered_interval(a.successes, a.cases, clusters=clusters)
            tally.rate_held += interval.low <= rate <= interval.high
        else:
            tally.rate_held += 1
        same = compared(a, b, clusters)
        tally.difference_held += not same.n_cases or same.low <= 0 <= same.high
        tally.p_wrong += same.p <= 0.05
        tally.worse_wrong += verdict_of(same) == "worse"
        # The drop of the margin, shared out so that no chance is below nothing.
        a, b = scenario.draw(chances, chances * (1 - MARGIN / rate), rng)
        tally.not_worse_wrong += verdict_of(compared(a, b, clusters)) == "not worse"
    return tally


def compared(a: Arm, b: Arm, clusters: dict[int, int] | None) -> Difference:
    """Return the difference that a comparison prints."""
    return paired_difference(a.successes, a.cases, b.successes, b.cases, clusters=clusters)


def rows(sets: int, seed: int, cases: tuple[int, ...] = CASES) -> Iterator[list[str]]:
    """Yield the table's rows: a scenario at a rate, over all numbers of cases."""
    for scenario in SCENARIOS:
        for rate in RATES:
            tallies = [measure(scenario, rate, m, sets, seed) for m in cases]

            def shares(name: str, tallies: list[Tally] = tallies) -> list[float]:
                return [getattr(t, name) / t.sets for t in tallies]

            held = shares("rate_held")
            yield [
                scenario.name,
                f"{rate:g}",
                f"{min(held):.3f}–{max(held):.3f}" if scenario.rate_is_known else "–",
                f"{min(shares('difference_held')):.3f}–{max(shares('difference_held')):.3f}",
                f"{100 * max(shares('p_wrong')):.1f} %",
                f"{100 * max(shares('worse_wrong')):.1f} %",
                f"{100 * max(shares('not_worse_wrong')):.1f} %",
            ]


HEAD = (
    "data", "rate", "rate held", "difference held", "p ≤ .05", "false worse", "false not worse",
)  # fmt: skip


def ten_points_on_ten_cases(sets: int, seed: int) -> dict[str, float]:
    """Return how often each verdict is given on a true drop of ten points with ten cases."""
    rng = np.random.default_rng(seed)
    verdicts: dict[str, int] = {}
    for _ in range(sets):
        chances = rng.beta(1.8, 0.2, 10)
        a, b = equal(1, 1)(chances, chances * (1 - 0.1 / 0.9), rng)
        verdict = verdict_of(compared(a, b, None))
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
    return {name: n / sets for name, n in verdicts.items()}


def equal_arms(rng: np.random.Generator, arms: int = 18, cases: int = 100) -> pd.DataFrame:
    """Return a trials frame of arms that are alike."""
    chances = rng.beta(1.4, 0.6, cases)
    right = rng.random((arms, cases)) < chances
    index = np.indices(right.shape)
    frame = pd.DataFrame(
        {
            "arm": np.char.add("arm", index[0].ravel().astype(str)),
            "case_id": index[1].ravel(),
            "score_success": right.ravel(),
            "trial": 0,
            "policy": "safe",
        }
    )
    frame["trial_id"] = frame.index
    return frame.assign(**{c: None for c in REQUIRED if c not in frame})


def picked_pair(sets: int, seed: int) -> tuple[float, float, float]:
    """Return how often the pair of 18 equal arms that looks most different is called different.

    By p alone, by the adjusted p, and by its interval.
    """
    rng = np.random.default_rng(seed)
    counts = np.zeros(3)
    for _ in range(sets):
        frame = equal_arms(rng)
        right = frame["score_success"].to_numpy(float).reshape(18, -1)
        gaps = right[:, None] - right[None]
        apart = np.abs(gaps.sum(axis=2)) / np.sqrt(np.maximum(1, (gaps**2).sum(axis=2)))
        a, b = np.unravel_index(int(apart.argmax()), apart.shape)
        row = compare_arms(frame, f"arm{a}", f"arm{b}", within=None).frame.iloc[0]
        excluded = row["ci_low"] > 0 or row["ci_high"] < 0
        counts += [row["p"] <= 0.05, row["p_holm"] <= 0.05, excluded]
    alone, adjusted, interval = counts / sets
    return float(alone), float(adjusted), float(interval)


def table(sets: int, seed: int, cases: tuple[int, ...] = CASES) -> str:
    """Return the whole text: the table, and the verdicts on ten cases."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|--:|--:|--:|--:|--:|--:|"]
    for row in rows(sets, seed, cases):
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
    ten = ten_points_on_ten_cases(sets, seed)
    verdicts = ", ".join(f"*{name}* {100 * share:.1f} %" for name, share in sorted(ten.items()))
    alone, adjusted, interval = (f"{100 * share:.1f} %" for share in picked_pair(sets, seed))
    return "\n".join(
        [
            *lines,
            "",
            f"A true drop of ten points, ten cases of one trial: {verdicts}.",
            "",
            "The pair that looks most different among 18 equal arms, 100 cases: "
            f"p ≤ .05 {alone}, p_holm ≤ .05 {adjusted}, interval without 0 {interval}.",
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 where an interval holds the truth in fewer than 93 of 100 data sets, or p
    or the gate is wrong in more than 5.5."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/measurements.md"
    )
    options = parser.parse_args(arguments)
    text = table(options.sets, options.seed)
    print(text.partition("\n\n")[2])
    if options.write:
        page = PAGE.read_text("utf-8")
        head, rest = page.split(BEGIN, 1)
        page = f"{head}{BEGIN}\n{text}\n{END}{rest.split(END, 1)[1]}"
        PAGE.write_text(page, "utf-8")
    return 0 if is_honest(text) else 1


def is_honest(text: str) -> bool:
    """Tell if a table keeps its bounds."""
    for line in text.splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != len(HEAD):
            continue
        lows = [float(cell.split("–")[0]) for cell in cells[2:4] if cell != "–"]
        wrong = [float(cell.split(" ")[0]) for cell in cells[4:]]
        if min(lows) < 0.93 or max(wrong) > 5.5:
            return False
    return True


if __name__ == "__main__":
    raise SystemExit(main())
