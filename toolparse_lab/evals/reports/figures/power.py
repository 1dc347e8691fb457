"""How many cases a comparison needs, and the smallest drop that so many can show.

The test is the one of reports: exact and paired on cases, sign-flip on the cases' differences,
which with one trial a case is McNemar's.
"""

# How it works. A case's difference d lies between -1 and 1: the rate of one arm less that of the
# other. Power depends on two moments of d: its mean, which is the drop, and its mean square, which
# is called the spread here. With one trial a case d is -1, 0 or 1, and the spread is the share of
# cases that flip. The power of McNemar's exact test is then an exact sum: over the number of flips,
# the chance of so many times the chance that they lean far enough to one side. With several trials
# the sum is taken at the same two moments, which is on the safe side: finer steps of d give the
# sign-flip test more values of p to choose from.
#
# Spreads that come from a run are estimates from its cases. The upper end of a one-sided 80 %
# interval stands for them (Browne 1995), since a plan made with the estimate itself is too small
# every second time. Cost: one sum over the likely numbers of flips for each n that is looked at.

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats as scipy_stats

from ....errors import BadOptions
from ....values.printable import counted
from .stats import wilson

MOST_CASES = 1_000_000
"""The most cases that are looked at; a drop that needs more is as good as none."""
_CAUTIOUS = 0.6  # the level of the two-sided interval whose upper end is the one-sided 80 % one


@dataclass(frozen=True, slots=True)
class Spread:
    """The distance of the differences of cases from one another, and where it comes from.

    base: the mean square of the cases' differences without a drop. cases: those there are, or are
    planned. growth: the power of the drop added to the base: 1 if a drop is cases that disappear
    for good, 2 where the base is a variance, 0 if the mean square is as assumed.
    """

    base: float
    cases: int
    source: str
    growth: int = 0

    def mean_square(self, drop: float) -> float:
        """Return the mean of the squared differences under a drop, between the drop and 1.

        >>> Spread(0.1, 50, "assumed").mean_square(0.05)
        0.1
        >>> Spread(0.25, 50, "from a run", growth=1).mean_square(0.25)
        0.5
        """
        added = drop**self.growth if self.growth else 0.0
        # No fewer cases can flip than a drop takes.
        return min(1.0, max(self.base + added, drop))


@dataclass(frozen=True, slots=True)
class Power:
    """Answers to "how many cases?" for one comparison.

    Shares are of 0 to 1.

    name: the quantity compared. cases: those there are, or are planned. detectable: the smallest
    drop they show with the wanted power, None if no drop is large enough. drop, needed: the drop
    asked for and the cases it needs, None if a million are too few. chance: the power for that drop
    with the cases there are.
    """

    name: str
    spread: Spread
    drop: float
    power: float
    alpha: float
    detectable: float | None
    needed: int | None
    chance: float

    @property
    def cases(self) -> int:
        """The cases there are, or are planned."""
        return self.spread.cases

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by column, as a row of a frame."""
        return {
            "comparison": self.name,
            "cases": self.cases,
            "detectable": self.detectable,
            "drop": self.drop,
            "needed": self.needed,
            "chance": self.chance,
            "spread": self.spread.mean_square(self.drop),
            "power": self.power,
            "alpha": self.alpha,
            "source": self.spread.source,
        }

    def __str__(self) -> str:
        return f"{self.name}: {self._now()} {self._wanted()} Spread: {self.spread.source}."

    def _now(self) -> str:
        cases = f"{counted(self.cases, 'case')} {'shows' if self.cases == 1 else 'show'}"
        if self.detectable is None:
            return f"{cases} no drop, however large, with {self.power:.0%} power."
        return f"{cases} a drop of {_points(self.detectable)} or more ({self.power:.0%} power)."

    def _wanted(self) -> str:
        needed = f"more than {MOST_CASES:,}" if self.needed is None else f"{self.needed:,}"
        return (
            f"A drop of {_points(self.drop)} needs {needed} cases; these find it "
            f"{self.chance:.0%} of the time."
        )


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def power_of(
    name: str, spread: Spread, drop: float, *, power: float = 0.8, alpha: float = 0.05
) -> Power:
    """Return the amount by which the cases of a spread can show, and how many a drop needs.

    drop: above 0 and at most 1. power: the wanted chance to find it. alpha: the level of the
    two-sided test. Raises BadOptions for a share that is none.

    >>> answer = power_of("a v b", Spread(0.2, 100, "assumed"), 0.05)
    >>> answer.needed, round(answer.detectable, 3), round(answer.chance, 2)
    (658, 0.128, 0.14)
    """
    check_shares(drop=drop, power=power, alpha=alpha)
    return Power(
        name,
        spread,
        drop,
        power,
        alpha,
        detectable_drop(spread, power=power, alpha=alpha),
        cases_needed(spread, drop, power=power, alpha=alpha),
        paired_power(spread.cases, spread.mean_square(drop), drop, alpha),
    )


def check_shares(**shares: Any) -> None:
    """Raise BadOptions for a value that is not a number above 0 and at most 1."""
    for name, value in shares.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Not `value <= 0`, so that NaN is refused, too.
        if not number or not 0 < value <= 1 or (name != "drop" and value == 1):
            raise BadOptions(f"{name} is a share", got=value, expected="0.05, for example")


def paired_power(cases: int, spread: float, drop: float, alpha: float = 0.05) -> float:
    """Return the chance that the exact paired test shows a drop.

    spread: the mean of the squared differences, with one trial a case the share of cases that flip.
    At least the drop. 0 if there are no cases.

    >>> round(paired_power(100, 0.2, 0.15), 3)
    0.933
    """
    if cases < 1 or spread <= 0:
        return 0.0
    flips = _likely_flips(cases, spread)
    # The most flips against the grain with which p is still at most alpha; -1 where none are few
    # enough. The quantile is the first count whose tail reaches alpha / 2, so that one below it is
    # the last one under it, unless it hits alpha / 2 exactly.
    critical = scipy_stats.binom.ppf(alpha / 2, flips, 0.5)
    critical -= scipy_stats.binom.cdf(critical, flips, 0.5) > alpha / 2
    lost = min(1.0, (1 + drop / spread) / 2)
    # Flips lean either way; the wrong way counts, too, since the test is two-sided.
    rejected = scipy_stats.binom.cdf(critical, flips, 1 - lost)
    rejected = rejected + scipy_stats.binom.cdf(critical, flips, lost)
    return float((scipy_stats.binom.pmf(flips, cases, spread) * rejected).sum())


def _likely_flips(cases: int, spread: float) -> npt.NDArray[Any]:
    """Return the numbers of flips that may come: all but those ten standard deviations away."""
    middle, width = cases * spread, 10 * math.sqrt(cases * spread * (1 - spread)) + 10
    return np.arange(max(0, int(middle - width)), min(cases, int(middle + width)) + 1)


def detectable_drop(spread: Spread, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """Return the smallest drop that the cases show with this power, to a tenth of a point or finer,
    or None if they show none.

    >>> detectable_drop(Spread(0.2, 5, "assumed")) is None  # five flips are no proof
    True
    """

    def shows(drop: float) -> bool:
        return paired_power(spread.cases, spread.mean_square(drop), drop, alpha) >= power

    low, high = 0.0, 1.0
    if not shows(high):
        return None
    while high - low > 0.0005:
        middle = (low + high) / 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def cases_needed(
    spread: Spread, drop: float, *, power: float = 0.8, alpha: float = 0.05
) -> int | None:
    """Return the smallest number of cases that show the drop.

    None for more than a million.

    The exact test's power falls a little now and then as cases are added. The number is one from
    which on it stays above.
    """
    size = spread.mean_square(drop)

    def shows(cases: int) -> bool:
        return paired_power(cases, size, drop, alpha) >= power

    high = 2
    while not shows(high):
        high *= 2
        if high > MOST_CASES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def cautious(share: float, cases: int) -> float:
    """Return the upper end of the one-sided 80 % interval of a mean of values of 0 to 1.

    >>> round(cautious(0.2, 100), 3), round(cautious(0.0, 20), 3)
    (0.236, 0.034)
    """
    return 1.0 if cases < 1 else wilson(share * cases, cases, level=_CAUTIOUS).high


def assumed_spread(
    cases: int,
    drop: float,
    *,
    rate: float = 0.5,
    correlation: float = 0.0,
    flips: float | None = None,
    trials: int = 1,
    noise: float = 0.0,
) -> Spread:
    """Return the spread of an experiment that no one has run yet.

    rate: the success of the better arm. correlation: of the two arms' answers to one case. With the
    defaults, one half and none, no more cases are ever needed, unless arms succeed on opposite
    cases. flips: the share of cases that flip, in the place of both. trials: of each case in each
    arm. noise: how often two trials of one case by one arm disagree, which is the part that more
    trials reduce. 0, which is the cautious value, where it is unknown. Raises BadOptions.

    >>> assumed_spread(100, 0.05, flips=0.2).base
    0.2
    >>> round(assumed_spread(100, 0.05, rate=0.9, correlation=0.5).base, 3)
    0.113
    """
    lower = max(0.0, rate - drop) if isinstance(rate, (int, float)) else rate
    _check_range("rate", rate, 0, 1)
    _check_range("correlation", correlation, -1, 1)
    _check_range("noise", noise, 0, 1)
    if flips is None:
        own, other = rate * (1 - rate), lower * (1 - lower)
        square = own + other - 2 * correlation * math.sqrt(own * other) + drop**2
        source = f"assumed: rate {rate:g}, correlation {correlation:g} between the arms"
    else:
        _check_range("flips", flips, drop, 1)
        square = flips
        source = f"assumed: {flips:.0%} of the cases flip"
    square -= noise * (1 - 1 / trials)
    if trials > 1:
        source += f", {trials} trials, of which two disagree {noise:.0%} of the time"
    return Spread(max(0.0, square), cases, source)


def _check_range(name: str, value: Any, low: float, high: float) -> None:
    """Raise BadOptions for a value outside its range, and for anything that is not a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise BadOptions(f"{name} is a number", got=value, expected=f"{low:g} to {high:g}")
