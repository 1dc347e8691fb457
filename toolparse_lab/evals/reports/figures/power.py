"""How many cases a comparison needs, and the smallest drop that so many can show.

The test is the one of reports: exact and paired on cases, sign-flip on the cases' differences,
which with one trial a case is McNemar's.
"""

# How it works. A case's difference d lies between -1 and 1: the rate of one arm less that of the
# other. With one trial a case d is -1, 0 or 1, and two moments decide: its mean, which is the drop,
# and its mean square, which is called the spread here and is the share of cases that flip. The
# power of McNemar's exact test is then an exact sum: over the number of flips, the chance of so
# many times the chance that they lean far enough to one side.
#
# With several trials d has finer steps, and the same spread consists of many small differences
# instead of few whole flips, which the sign-flip test sees far more often. `Steps` models the mean
# of a case: rates of cases are Beta, trials are drawn from them, and the chances of every step of d
# follow. Power is then the share of 50,000 simulated data sets (with fixed seeds) in which the test
# shows the drop. Its p is exact where few cases make a coarse lattice. Elsewhere it comes from a
# saddlepoint approximation (Lugannani and Rice 1980, with Daniels' correction for a lattice),
# because exact sums of so many data sets would take minutes.
#
# Spreads that come from a run are estimates from its cases. The upper end of a one-sided 80 %
# interval stands for them (Browne 1995), since a plan made with the estimate itself is too small
# every second time. Cost: one sum or simulation for each n that is looked at.

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy import special
from scipy import stats as scipy_stats

from ....core.errors import BadOptions
from ....core.values.printable import counted
from .stats import Array, wilson

MOST_CASES = 1_000_000
"""The most cases that are looked at; a drop that needs more is as good as none."""
_CAUTIOUS = 0.6  # the level of the two-sided interval whose upper end is the one-sided 80 % one

_SETS = 50_000
_SEARCH_SETS = 2000  # while a search looks at many sizes
_COARSE = 100  # the largest sum of steps whose p is exact: 33 cases of 3 trials
_NODES = (np.arange(1000) + 0.5) / 1000  # the quantiles at which rates of cases are taken

Chances: TypeAlias = Array
Steps: TypeAlias = Callable[[float], Chances]
"""The chances of a case's difference under a drop: of -1, -1 + 1/k, and so on to 1."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The distance of the differences of cases from one another, and where it comes from.

    base: the mean square of the cases' differences without a drop. cases: those there are, or are
    planned. growth: the power of the drop added to the base: 1 if a drop is cases that disappear
    for good, 2 where the base is a variance, 0 if the mean square is as assumed. steps: the chances
    of a case's difference where cases have several trials, None where every difference is a whole
    flip.
    """

    base: float
    cases: int
    source: str
    growth: int = 0
    steps: Steps | None = field(default=None, repr=False, compare=False)

    def mean_square(self, drop: float) -> float:
        """Return the mean of the squared differences under a drop, between the drop and 1.

        >>> Spread(0.1, 50, "assumed").mean_square(0.05)
        0.1
        >>> Spread(0.25, 50, "from a run", growth=1).mean_square(0.25)
        0.5
        """
        if self.steps is not None:
            chances = self.steps(drop)
            return float(chances @ _grid(chances) ** 2)
        added = drop**self.growth if self.growth else 0.0
        # No fewer cases can flip than a drop takes.
        return min(1.0, max(self.base + added, drop))


@dataclass(frozen=True, slots=True)
class Power:
    """Answers to "how many cases?" for one comparison. Shares are of 0 to 1.

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
        cases = f"{counted(self.cases, 'case')} {'shows' if self.cases == 1 else 'show'}"
        now = f"no drop, however large, with {self.power:.0%} power."
        if self.detectable is not None:
            now = f"a drop of {100 * self.detectable:.1f} points or more ({self.power:.0%} power)."
        needed = f"more than {MOST_CASES:,}" if self.needed is None else f"{self.needed:,}"
        return (
            f"{self.name}: {cases} {now} A drop of {100 * self.drop:.1f} points needs {needed} "
            f"cases; these find it {self.chance:.0%} of the time. Spread: {self.spread.source}."
        )


def power_of(
    name: str, spread: Spread, drop: float, *, power: float = 0.8, alpha: float = 0.05
) -> Power:
    """Return the drop that the cases of a spread can show, and how many a drop needs.

    power: the wanted chance to find it. alpha: the level of the two-sided test. Raises BadOptions.

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
        _chance_to_show(spread, drop, alpha)(spread.cases),
    )


def _chance_to_show(
    spread: Spread, drop: float, alpha: float, sets: int = _SETS
) -> Callable[[int], float]:
    if spread.steps is None:
        square = spread.mean_square(drop)
        return lambda cases: paired_power(cases, square, drop, alpha)
    chances = spread.steps(drop)
    return lambda cases: simulated_power(cases, chances, alpha, sets)


def check_shares(**shares: Any) -> None:
    """Raise BadOptions for a value that is not a number above 0 and at most 1 (a drop) or below."""
    for name, value in shares.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Not `value <= 0`, so that NaN is refused, too.
        if not number or not 0 < value <= 1 or (name != "drop" and value == 1):
            raise BadOptions(f"{name} is a share", got=value, expected="0.05, for example")


def paired_power(cases: int, spread: float, drop: float, alpha: float = 0.05) -> float:
    """Return the chance that the exact paired test shows a drop.

    spread: the mean of the squared differences, with one trial a case the share of cases that flip.

    >>> round(paired_power(100, 0.2, 0.15), 3)
    0.933
    """
    if cases < 1 or spread <= 0:
        return 0.0
    # All numbers of flips but those ten standard deviations away.
    middle, width = cases * spread, 10 * math.sqrt(cases * spread * (1 - spread)) + 10
    flips = np.arange(max(0, int(middle - width)), min(cases, int(middle + width)) + 1)
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


def simulated_power(cases: int, chances: Chances, alpha: float = 0.05, sets: int = _SETS) -> float:
    """Return the share of simulated data sets in which the sign-flip test shows a difference.

    >>> simulated_power(40, np.array([0, 0, 0.6, 0.4, 0])) > 0.99  # halves, all to one side
    True
    """
    if cases < 1:
        return 0.0
    counts = np.random.default_rng(0).multinomial(cases, chances / chances.sum(), size=sets)
    return float((_sign_flip_ps(counts) <= alpha + 1e-12).mean())


def _sign_flip_ps(counts: Array) -> Array:
    # One row per data set: the numbers of cases by the step of their difference.
    k = counts.shape[1] // 2
    sizes = np.arange(1, k + 1)
    coins = (counts[:, k + 1 :] + counts[:, :k][:, ::-1]).astype(float)
    sums = np.abs(counts[:, k + 1 :] @ sizes - counts[:, :k][:, ::-1] @ sizes).astype(float)
    # The largest sum is one of the 2^coins, and its negative another.
    ps = np.where(sums == coins @ sizes, np.minimum(1.0, 2.0 ** (1 - coins.sum(axis=1))), 1.0)
    inner = (sums > 1) & (sums < coins @ sizes)
    tails = _exact_tails if inner.any() and (coins @ sizes).max() <= _COARSE else _tails
    # Signs change a sum by even numbers, so that half a step of the lattice is 1.
    ps[inner] = np.minimum(1.0, 2 * tails(coins[inner], sums[inner] - 1, sizes))
    return ps


def _exact_tails(coins: Array, sums: Array, sizes: Array) -> Array:
    # The chance that coins of these sizes, one row a data set, sum up to more than `sums`: from the
    # characteristic function of their sum, at as many angles as the sum has values.
    rows, place = np.unique(np.column_stack([coins, sums]), axis=0, return_inverse=True)
    coins, sums = rows[:, :-1], rows[:, -1:]
    most = coins @ sizes
    angles = np.pi * np.arange(1, most.max() + 1) / (most.max() + 1)
    cosines = np.cos(np.outer(sizes, angles))
    # The product of their powers by logarithms, which is a product of matrices; the sign apart.
    chances = np.exp(coins @ np.log(np.abs(cosines))) * (1 - 2 * (coins @ (cosines < 0) % 2))
    # The cosines of the sums beyond, which are `beyond` many and two apart, in closed form.
    beyond = (most[:, None] - sums + 1) / 2
    waves = np.sin(beyond * angles) / np.sin(angles) * np.cos((sums + beyond) * angles)
    tails = (beyond[:, 0] + (chances * waves).sum(axis=1)) / (most.max() + 1)
    return np.asarray(tails[place.ravel()])


def _tails(coins: Array, sums: Array, sizes: Array) -> Array:
    # As `_exact_tails`, by Lugannani and Rice's formula at the saddlepoint t, where the tilted
    # coins have the mean `sums`.
    t = sums / (coins @ sizes**2)
    # The mean is concave in t, so that Newton's steps approach from below and never pass the root.
    for _ in range(20):
        tanh = np.tanh(np.outer(t, sizes))
        variance = (coins * (1 - tanh**2)) @ sizes**2
        change = (sums - (coins * tanh) @ sizes) / np.maximum(variance, 1e-12)
        t += change
        if not len(t) or np.abs(change / t).max() < 1e-3:
            break
    angle = np.outer(t, sizes)
    variance = (coins * (1 - np.tanh(angle) ** 2)) @ sizes**2
    log_cosh = angle + np.log1p(np.exp(-2 * angle)) - math.log(2)
    w = np.sqrt(np.maximum(2 * (t * sums - (coins * log_cosh).sum(axis=1)), 1e-12))
    u = np.sinh(t) * np.sqrt(variance)
    density = np.exp(-(w**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(special.ndtr(-w) + density * (1 / u - 1 / w))


def _grid(chances: Chances) -> Array:
    return np.linspace(-1, 1, len(chances))


def tilted(chances: Chances, mean: float, square: float) -> Chances:
    """Return the chances nearest to these, by relative entropy, whose mean and mean square are as
    given: each times exp(a·d + b·d²). A square that the mean rules out becomes the nearest one.
    """
    d = _grid(chances)
    step = d[1] - d[0]
    below = math.floor(mean / step + 1e-9) * step
    # A mean between two steps needs both of them.
    least = below**2 + (mean - below) * (2 * below + step)
    moments = np.stack([d, d**2])
    want = np.array([mean, min(max(square, least + 0.02 * step * mean), 1 - 1e-6)])
    logs = np.log(np.maximum(chances, 1e-12))

    def at(tilt: Array) -> tuple[float, Chances]:
        weights = logs + tilt @ moments
        top = weights.max()
        raw = np.exp(weights - top)
        return float(top + math.log(raw.sum()) - tilt @ want), raw / raw.sum()

    # Newton's method on a convex function, with halved steps where a whole one goes too far.
    tilt = np.zeros(2)
    height, found = at(tilt)
    for _ in range(100):
        gradient = moments @ found - want
        if np.abs(gradient).max() < 1e-9:
            break
        spread = (moments * found) @ moments.T - np.outer(moments @ found, moments @ found)
        change = np.linalg.solve(spread + 1e-12 * np.eye(2), gradient)
        while np.abs(change).max() > 1e-10:
            lower, chances = at(tilt - change)
            if lower <= height:
                break
            change = change / 2
        else:
            break
        tilt, height, found = tilt - change, lower, chances
    return found


def case_rates(rate: float, noise: float) -> Array:
    """Return rates of cases: quantiles of the Beta distribution with this mean, of which two trials
    of a case disagree so often.
    """
    own = rate * (1 - rate)
    between = own - noise / 2
    if between <= 1e-6 * own:
        return np.full(len(_NODES), rate)
    # The precision of the Beta: small where cases are nearly certain to succeed or fail.
    total = max(own / between - 1, 1e-3)
    return np.asarray(special.betaincinv(rate * total, (1 - rate) * total, _NODES))


def hits_of(rates: Array, trials: int) -> Array:
    """Return the chances of 0 to `trials` successes, one row a case."""
    return np.asarray(scipy_stats.binom.pmf(np.arange(trials + 1), trials, rates[:, None]))


def gaps_of(a: Array, b: Array) -> Chances:
    """Return the chances of a's successes less b's, over the rows of both."""
    joint = a.T @ b / len(a)
    trials = len(joint) - 1
    return np.array([np.trace(joint, offset=-gap) for gap in range(-trials, trials + 1)])


def detectable_drop(spread: Spread, *, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """Return the smallest drop that the cases show with this power, to a tenth of a point, or None.

    >>> detectable_drop(Spread(0.2, 5, "assumed")) is None  # five flips are no proof
    True
    """

    def shows(drop: float) -> bool:
        return _chance_to_show(spread, drop, alpha, _SEARCH_SETS)(spread.cases) >= power

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
    """Return the smallest number of cases that show the drop, None for more than a million.

    The exact test's power falls a little now and then as cases are added. The number is one from
    which on it stays above.
    """
    chance = _chance_to_show(spread, drop, alpha, _SEARCH_SETS)
    high = 2
    while chance(high) < power:
        high *= 2
        if high > MOST_CASES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
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
    _check_range("rate", rate, 0, 1)
    _check_range("correlation", correlation, -1, 1)
    _check_range("noise", noise, 0, 1)
    if flips is None:
        source = f"assumed: rate {rate:g}, correlation {correlation:g} between the arms"
    else:
        _check_range("flips", flips, drop, 1)
        source = f"assumed: {flips:.0%} of the cases flip"
    if trials > 1:
        source += f", {trials} trials, of which two disagree {noise:.0%} of the time"
    one = _flipping(rate, drop, correlation) if flips is None else flips
    if trials == 1 or not noise:
        return Spread(one, cases, source)

    def steps(drop: float) -> Chances:
        lower = max(0.0, rate - drop)
        own, other = rate * (1 - rate), lower * (1 - lower)
        flip = _flipping(rate, drop, correlation) if flips is None else max(flips, drop)
        # The noise is that of both arms, each by the variance of its answers, which it can't pass.
        part = min(1.0, noise / (own + other)) if own + other else 0.0
        noise_a, noise_b = 2 * own * part, 2 * other * part
        rates = case_rates(rate, noise_a)
        a = hits_of(rates, trials)
        # What both arms' answers to a case have in common is a share of what cases differ by. Of
        # these cases each loses the same share of its rate, the others have a rate of their own.
        common = (own + other + drop**2 - flip) / 2
        between = math.sqrt(max(own - noise_a / 2, 0) * max(other - noise_b / 2, 0))
        alike = min(1.0, max(0.0, common / between)) if between > 0 else 0.0
        shared = gaps_of(a, hits_of(rates * lower / rate if rate else rates, trials))
        apart = gaps_of(
            a.mean(axis=0, keepdims=True),
            hits_of(case_rates(lower, noise_b), trials).mean(axis=0, keepdims=True),
        )
        square = flip - (noise_a + noise_b) / 2 * (1 - 1 / trials)
        return tilted(alike * shared + (1 - alike) * apart, drop, square)

    return Spread(one, cases, source, steps=steps)


def _flipping(rate: float, drop: float, correlation: float) -> float:
    # The chance that single answers of two arms to a case differ in success.
    lower = max(0.0, rate - drop)
    own, other = rate * (1 - rate), lower * (1 - lower)
    return own + other - 2 * correlation * math.sqrt(own * other) + drop**2


def _check_range(name: str, value: Any, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise BadOptions(f"{name} is a number", got=value, expected=f"{low:g} to {high:g}")
