"""How many cases a comparison needs, and the smallest drop that so many can show.

The test is the one of reports: exact and paired on cases, sign-flip on the cases' differences,
which with one trial a case is McNemar's.
"""

# How it works. A case's difference lies between -1 and 1: the rate of one arm less that of the
# other. Its mean is the drop, and its mean square is called the spread. With one trial a case a
# difference is -1, 0 or 1, and the power of McNemar's exact test is a sum over the number of cases
# that flip: the chance of so many times the chance that they lean far enough to one side. With
# several trials, where differences have finer steps, it is the power of the paired t test.
#
# The spread of a run is an estimate from its cases. The upper end of a one-sided 80 % interval
# stands for it (Browne 1995), since a plan made with the estimate itself is too small every second
# time.

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ...core.errors import BadOptions
from ...core.types import Policy
from ...core.values.printable import counted
from ...core.values.wording import plain_points, share
from ...evals.reports.figures.cells import by_question, check_trials, groups, read_under
from ...evals.reports.figures.stats import disagreement, wilson
from ...experiments.run import HEADLINE, Run

MOST_CASES = 1_000_000  # a drop that needs more is as good as none
_CAUTIOUS = 0.6  # the level of the two-sided interval whose upper end is the one-sided 80 % one
_BY = ("model", "arm")
_ANSWER = ("completion_key", "created")  # the columns that tell one recorded answer from another


@dataclass(frozen=True, slots=True)
class Spread:
    """How far the differences of cases lie apart, and where that is known from.

    base: the mean square of the cases' differences without a drop. growth: the power of the drop
    added to it: 1 if a drop is cases that fail from then on, 2 where the base is a variance, 0 if
    the mean square is as assumed. trials: of a case; with one every difference is a flip.
    """

    base: float
    cases: int
    source: str
    growth: int = 0
    trials: int = 1

    def mean_square(self, drop: float) -> float:
        """Return the mean of the squared differences under a drop.

        >>> Spread(0.25, 50, "from a run", growth=1).mean_square(0.25)
        0.5
        """
        added = drop**self.growth if self.growth else 0.0
        # No fewer cases can flip than a drop takes.
        return min(1.0, max(self.base + added, drop if self.trials == 1 else drop**2))

    def power(self, cases: int, drop: float, alpha: float = 0.05) -> float:
        """Return the chance that so many cases show a drop."""
        # The smallest p of the sign-flip test, where all cases agree.
        if 2.0 ** (1 - cases) > alpha:
            return 0.0
        square = self.mean_square(drop)
        if self.trials == 1:
            return mcnemar_power(cases, square, drop, alpha)
        error = math.sqrt(max(square - drop**2, 1e-12) / cases)
        critical = stats.t.isf(alpha / 2, cases - 1)
        # A sign changes the sum of the differences by two steps or more; half of that is the
        # correction for continuity. The chance of the wrong side is left out.
        seen = max(drop - 1 / (self.trials * cases), 0.0)
        return float(np.nan_to_num(stats.nct.sf(critical, cases - 1, seen / error), nan=1.0))


def mcnemar_power(cases: int, spread: float, drop: float, alpha: float = 0.05) -> float:
    """Return the chance that McNemar's exact test shows a drop where a share of cases flips.

    >>> round(mcnemar_power(100, 0.2, 0.15), 3)
    0.933
    """
    if cases < 1 or spread <= 0:
        return 0.0
    # All numbers of flips but those ten standard deviations away.
    middle, width = cases * spread, 10 * math.sqrt(cases * spread * (1 - spread)) + 10
    flips = np.arange(max(0, int(middle - width)), min(cases, int(middle + width)) + 1)
    # The most flips the other way with which p is still at most alpha, -1 where none will do: one
    # below the quantile, unless its tail is alpha / 2 exactly.
    critical = stats.binom.ppf(alpha / 2, flips, 0.5)
    critical -= stats.binom.cdf(critical, flips, 0.5) > alpha / 2
    lost = min(1.0, (1 + drop / spread) / 2)
    rejected = stats.binom.cdf(critical, flips, 1 - lost) + stats.binom.cdf(critical, flips, lost)
    return float((stats.binom.pmf(flips, cases, spread) * rejected).sum())


@dataclass(frozen=True, slots=True)
class Power:
    """Answers to "how many cases?" for one comparison. Shares are of 0 to 1.

    detectable: the smallest drop that the cases show with the wanted power, to a tenth of a point,
    None if no drop is large enough. needed: the cases that `drop` needs, None if a million are too
    few. chance: the power for `drop` with the cases there are.
    """

    name: str
    spread: Spread
    drop: float
    power: float
    alpha: float
    detectable: float | None
    needed: int | None
    chance: float

    @classmethod
    def of(
        cls, name: str, spread: Spread, drop: float, power: float = 0.8, alpha: float = 0.05
    ) -> Power:
        """Return the answers for a spread. Raises BadOptions for shares that are none.

        >>> answer = Power.of("a v b", Spread(0.2, 100, "assumed"), 0.05)
        >>> answer.needed, round(answer.detectable, 3), round(answer.chance, 2)
        (658, 0.128, 0.14)
        """
        check_shares(drop=drop, power=power, alpha=alpha)
        sizes, tenths = range(1, MOST_CASES + 1), range(1, 1001)
        size = bisect_left(sizes, power, key=lambda n: spread.power(n, drop, alpha))
        tenth = bisect_left(
            tenths, power, key=lambda n: spread.power(spread.cases, n / 1000, alpha)
        )
        return cls(
            name,
            spread,
            drop,
            power,
            alpha,
            tenths[tenth] / 1000 if tenth < len(tenths) else None,
            sizes[size] if size < len(sizes) else None,
            spread.power(spread.cases, drop, alpha),
        )

    @property
    def cases(self) -> int:
        """The cases there are, or are planned."""
        return self.spread.cases

    def __str__(self) -> str:
        cases = f"{counted(self.cases, 'case')} {'shows' if self.cases == 1 else 'show'}"
        now = f"no drop, however large, with {share(self.power)} power."
        if self.detectable is not None:
            drop = plain_points(self.detectable)
            now = f"a drop of {drop} points or more ({share(self.power)} power)."
        needed = f"more than {MOST_CASES:,}" if self.needed is None else f"{self.needed:,}"
        return (
            f"{self.name}: {cases} {now} A drop of {plain_points(self.drop)} points needs {needed} "
            f"cases; these find it {share(self.chance)} of the time. Spread: {self.spread.source}."
        )


class PowerTable(Sequence[Power]):
    """The power of each comparison of a run. `note` says which cases count as one, '' for none."""

    def __init__(self, rows: Sequence[Power], note: str = "") -> None:
        self._rows = tuple(rows)
        self.note = note

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def frame(self) -> pd.DataFrame:
        """Return one row per comparison."""
        rows = [{**asdict(row), "cases": row.cases, "spread": row.spread.source} for row in self]
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        return "\n".join([*map(str, self._rows), *filter(None, [self.note])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<ul>{''.join(f'<li>{escape(x)}</li>' for x in str(self).splitlines())}</ul>"


def power(
    run: Run | pd.DataFrame,
    drop: float = 0.05,
    *,
    a: str | None = None,
    b: str | None = None,
    again: bool | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    policy: Policy = HEADLINE,
) -> PowerTable:
    """Return the smallest drop that the cases of a run can show, and the cases that `drop` needs.

    Cases that ask the same question count as one case with all of their trials.

    Args:
        run: a run, or its trials frame.
        drop: the drop to be found, a share.
        a, b: arms or models, to see their comparison alone, not every one of the run.
        again: compare each cell with a later run of the same cases, as where there is only one.
        power: the wanted chance to find the drop.
        alpha: the level of the two-sided test.

    Raises BadOptions for a name that the run does not have, for shares that are none, and where no
    case is judged.
    """
    trials = run.frame(policies=(policy,)) if isinstance(run, Run) else run
    check_trials(trials)
    check_shares(drop=drop, power=power, alpha=alpha)
    part, note = by_question(read_under(trials, (), policy))
    judged = part[part["score_success"].notna()]
    by = [c for c in _BY if c in judged]
    varied = [c for c in by if judged[c].nunique() > 1] or by[-1:]
    cells = {" · ".join(values): _counts(rows) for values, rows in groups(judged, varied)}
    if not cells:
        raise BadOptions(
            "power needs trials that can be judged", got="none", expected="cases with a target"
        )
    pairs = _pairs(cells, a, b)
    if again or (again is None and not pairs):
        spreads = [(f"{name} v a later run", _again(rates)) for name, rates in cells.items()]
    else:
        spreads = [(f"{x} v {y}", _between(cells[x], cells[y])) for x, y in pairs]
    return PowerTable(
        [Power.of(name, spread, drop, power, alpha) for name, spread in spreads], note
    )


def planned_power(
    cases: int,
    trials: int = 1,
    drop: float = 0.05,
    *,
    like: Run | None = None,
    flips: float = 0.5,
    noise: float = 0.0,
    power: float = 0.8,
    alpha: float = 0.05,
) -> Power:
    """Return the power of a comparison of two arms that no one has run yet.

    Args:
        cases, trials: of the plan: `len(plan.cases)`, `plan.trials`.
        like: an earlier run. Of its comparisons the one with the largest spread stands for this
            one, at the trials that the earlier run had, instead of the two assumptions below.
        flips: the share of cases in which single answers of the two arms differ in success, at most
            half where the arms have nothing in common.
        noise: how often two trials of one case disagree, the part that more trials reduce.
        power, alpha: as for `power`.

    Raises BadOptions.

    >>> print(planned_power(200, 1, 0.05, flips=0.2))  # doctest: +NORMALIZE_WHITESPACE
    two arms: 200 cases show a drop of 9.2 points or more (80 % power). A drop of 5 points needs
    658 cases; these find it 30 % of the time. Spread: assumed: 20 % of the cases flip.
    """
    check_shares(drop=drop, flips=flips, noise=noise, power=power, alpha=alpha)
    if like is not None:
        spreads = [row.spread for row in _power_of_run(like, drop)]
        widest = max(spreads, key=lambda spread: spread.mean_square(drop))
        spread = replace(widest, cases=cases, source=f"{widest.source}, in run {like.run_id}")
        return Power.of("two arms", spread, drop, power, alpha)
    source = f"assumed: {share(flips)} of the cases flip"
    if trials > 1:
        source += f", {trials} trials, of which two disagree {share(noise)} of the time"
    trials = trials if noise else 1
    # Each arm's noise is half of how often two of its trials disagree, and trials share it out.
    square = max(flips - noise * (1 - 1 / trials), 0.0)
    return Power.of("two arms", Spread(square, cases, source, 0, trials), drop, power, alpha)


_power_of_run = power  # which an argument hides


def check_shares(**shares: Any) -> None:
    """Raise BadOptions for a value that is not between 0 and 1. Some may be 1, and `noise` 0."""
    for name, value in shares.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        ends = {"drop": (1,), "flips": (1,), "noise": (0, 1)}.get(name, ())
        # Written so that NaN is refused, too.
        if not number or not (0 < value < 1 or value in ends):
            raise BadOptions(f"{name} is a share", got=value, expected="0.05, for example")


def cautious(share: float, cases: int) -> float:
    """Return the upper end of the one-sided 80 % interval of a mean of values of 0 to 1.

    >>> round(cautious(0.2, 100), 3), round(cautious(0.0, 20), 3)
    (0.236, 0.034)
    """
    return 1.0 if cases < 1 else wilson(share * cases, cases, level=_CAUTIOUS).high


def _counts(judged: pd.DataFrame) -> pd.DataFrame:
    # One row per case: successes and trials. An answer that a later run has only read again, or
    # that two cases with the same question share, counts once.
    columns = [c for c in (*_ANSWER, "case_id", "trial") if c in judged]
    if len(columns) == 4:
        judged = judged[~(judged.duplicated(columns) & judged["created"].notna())]
    success = judged["score_success"].astype(bool).astype(float)
    counts = success.groupby(judged["case_id"].astype(object), sort=False, observed=True)
    return counts.agg(["sum", "count"]).set_axis(["hits", "n"], axis=1).astype(float)


def _pairs(cells: dict[str, pd.DataFrame], a: str | None, b: str | None) -> list[tuple[str, str]]:
    # Cells to compare share all but one of model and arm.
    if (a is None) != (b is None):
        raise BadOptions("power compares two names", got=a or b, expected="both a= and b=")
    parts = {name: set(name.split(" · ")) for name in cells}
    every = [(x, y) for x, y in combinations(cells, 2) if len(parts[x] ^ parts[y]) == 2]
    if a is None or b is None:
        return every
    chosen = [
        (x, y) if a in parts[x] else (y, x) for x, y in every if parts[x] ^ parts[y] == {a, b}
    ]
    if not chosen:
        raise BadOptions(
            "the run has no such two arms or models", got=f"{a}, {b}", expected=", ".join(cells)
        )
    return chosen


def _between(a: pd.DataFrame, b: pd.DataFrame) -> Spread:
    both = a.add_suffix("_a").join(b.add_suffix("_b"), how="inner")
    gaps = both["hits_b"] / both["n_b"] - both["hits_a"] / both["n_a"]
    if not len(gaps):
        return Spread(1.0, 0, "no case was judged in both")
    square = cautious(float((gaps**2).mean()), len(gaps))
    variance = max(0.0, square - float(gaps.mean()) ** 2)
    differing = share(float((gaps != 0).mean()))
    source = f"the two differ on {differing} of {counted(len(gaps), 'case')}"
    trials = math.ceil(float(both[["n_a", "n_b"]].to_numpy().mean()))
    return Spread(variance, len(gaps), source, 2, trials)


def _again(rates: pd.DataFrame) -> Spread:
    # A later run with as many trials differs by the noise of trials alone, if nothing has changed.
    several = rates[rates["n"] >= 2]
    if several.empty:
        rate = float((rates["hits"] / rates["n"]).mean())
        source = (
            "assumed: two answers to a case differ as answers to two cases do; with two trials of "
            "a case the figure is measured"
        )
        return Spread(2 * rate * (1 - rate), len(rates), source, growth=1)
    measured = float(disagreement(several["hits"], several["n"]).mean())
    size = counted(len(several), "case")
    source = f"two trials of a case disagree {share(measured)} of the time ({size})"
    base = cautious(measured, len(several)) * float((1 / rates["n"]).mean())
    return Spread(base, len(rates), source, 1, math.ceil(float(rates["n"].mean())))
