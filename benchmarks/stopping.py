"""How often a run that stops by its results is wrong, and what it saves: data sets of known truth.

    python -m benchmarks.stopping [--sets 2000] [--write]

Each scenario draws that many data sets of one trial a case and lets `Until` look at them as a run
does, at the same looks, by the same capital. *wrong* counts the sets in which any look speaks
against the truth; it must stay at 5 % or less. *decided* counts those in which the rule answers,
*saved* is the mean share of cases that were not asked, undecided sets included. Beside it stand
what a test at the fixed full size finds, and how often somebody is wrong who looks at that test
after every batch and stops at p < 0.05. `--write` puts the table into docs/measurements.md.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from toolparse_lab.evals.reports.figures.stats import log_capital
from toolparse_lab.experiments.until import Until

PAGE = Path(__file__).parents[1] / "docs" / "measurements.md"
MARK, END = "<!-- measured: stopping -->\n", "<!-- end -->"
ALPHA = 0.05


@dataclass(frozen=True)
class Scenario:
    """Two arms: the shares of cases lost and gained; or one rate that is held against another."""

    name: str
    cases: int
    lost: float = 0.0
    gained: float = 0.0
    rate: float | None = None
    against: float = 0.9

    @property
    def points(self) -> Any:
        """The values of a case, between 0 and 1."""
        return np.array([0.0, 1.0]) if self.rate is not None else np.array([0.0, 0.5, 1.0])

    @property
    def shares(self) -> list[float]:
        """How often each value comes."""
        if self.rate is not None:
            return [1 - self.rate, self.rate]
        return [self.lost, 1 - self.lost - self.gained, self.gained]

    @property
    def truth(self) -> float:
        """The mean of the values."""
        return float(np.dot(self.points, self.shares))

    @property
    def null(self) -> float:
        """The mean that the rule has to speak against."""
        return self.against if self.rate is not None else 0.5


SCENARIOS = (
    Scenario("same arms, 10 % of cases flip", 400, 0.05, 0.05),
    Scenario("same arms, 40 % flip", 400, 0.2, 0.2),
    Scenario("same arms, 40 % flip", 2000, 0.2, 0.2),
    Scenario("5 points worse, 15 % flip", 400, 0.1, 0.05),
    Scenario("5 points worse, 15 % flip", 2000, 0.1, 0.05),
    Scenario("10 points worse, 20 % flip", 400, 0.15, 0.05),
    Scenario("20 points worse, 30 % flip", 400, 0.25, 0.05),
    Scenario("rate 90 %, held against 90 %", 400, rate=0.9),
    Scenario("rate 50 %, held against 50 %", 400, rate=0.5, against=0.5),
    Scenario("rate 95 %, held against 90 %", 400, rate=0.95),
    Scenario("rate 70 %, held against 90 %", 400, rate=0.7),
)


def looks(cases: int) -> list[int]:
    """Return the numbers of cases after which a run looks, as `until.batches_of` makes them."""
    rule, at, size, numbers = Until(width=0.1), 0, Until(width=0.1).first, []
    while at < cases:
        at = min(cases, at + size)
        numbers.append(at)
        size = max(rule.step, at // 10)
    return numbers


def simulate(scenario: Scenario, sets: int, seed: int = 0) -> dict[str, float]:
    """Return the shares of one scenario: wrong, decided, saved, fixed, peeking."""
    random = np.random.default_rng(seed)
    numbers = looks(scenario.cases)
    steps = np.diff([0, *numbers])
    batches = np.stack([random.multinomial(n, scenario.shares, size=sets) for n in steps], axis=1)
    counts = batches.cumsum(axis=1)  # sets × looks × values
    limit = math.log(1 / ALPHA)
    wrong = log_capital(counts, scenario.points, scenario.truth) >= limit
    decided = log_capital(counts, scenario.points, scenario.null) >= limit
    ended = np.where(decided.any(axis=1), decided.argmax(axis=1), len(numbers) - 1)
    asked = np.array(numbers)[ended]
    small = _p_values(scenario, counts) <= ALPHA
    is_null = math.isclose(scenario.truth, scenario.null)
    return {
        "wrong": float(wrong.any(axis=1).mean()),
        "decided": float(decided.any(axis=1).mean()),
        "saved": float(1 - asked.mean() / scenario.cases),
        "fixed": float(small[:, -1].mean()),
        "peeking": float(small.any(axis=1).mean()) if is_null else math.nan,
    }


def _p_values(scenario: Scenario, counts: Any) -> Any:
    """Return the two-sided exact p of each set at each look: McNemar's, or the binomial."""
    least, most = counts[..., 0], counts[..., -1]
    if scenario.rate is None:
        return np.minimum(1, 2 * stats.binom.cdf(np.minimum(least, most), least + most, 0.5))
    n, share = least + most, scenario.against
    lower, upper = stats.binom.cdf(most, n, share), stats.binom.sf(most - 1, n, share)
    return np.minimum(1, 2 * np.minimum(lower, upper))


def table(sets: int) -> list[str]:
    """Return the lines of the table in Markdown."""
    lines = [
        "| scenario | cases | wrong | decided | cases saved | fixed size decides | "
        "wrong when peeking |",
        "|---|---|---|---|---|---|---|",
    ]
    for scenario in SCENARIOS:
        row = simulate(scenario, sets)
        cells = [f"{100 * row[name]:.1f} %" for name in ("wrong", "decided", "saved", "fixed")]
        peeking = "" if math.isnan(row["peeking"]) else f"{100 * row['peeking']:.1f} %"
        lines.append(f"| {scenario.name} | {scenario.cases:,} | {' | '.join(cells)} | {peeking} |")
    return lines


def main() -> None:
    """Print the table; raise SystemExit where a scenario is wrong too often."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=2000, help="data sets a scenario")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/measurements.md"
    )
    options = parser.parse_args()
    lines = table(options.sets)
    print("\n".join(lines))
    if options.write:
        head, mark, rest = PAGE.read_text("utf-8").partition(MARK)
        text = f"{head}{mark}" + "\n".join(lines) + f"\n{END}{rest.partition(END)[2]}"
        PAGE.write_text(text, "utf-8")
    bad = [s.name for s in SCENARIOS if simulate(s, options.sets)["wrong"] > ALPHA]
    if bad:
        raise SystemExit(f"wrong in more than {ALPHA:.0%} of the sets: {', '.join(bad)}")


if __name__ == "__main__":
    main()
