"""What the size of a run can tell: the differences that its cases can show, arm against arm or
against a run to come.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from ....core.errors import BadOptions
from ....core.values.printable import counted
from .cells import by_question, check_trials, groups, read_under
from .power import (
    Power,
    Spread,
    case_rates,
    cautious,
    check_shares,
    gaps_of,
    hits_of,
    power_of,
    tilted,
)
from .stats import Array, disagreement

_BY = ("model", "arm")
_FINEST = 20  # the most steps of a success in which differences are counted


_Row = TypeVar("_Row", bound=Power)


class _Sentences(Sequence[_Row]):
    def __init__(self, rows: Sequence[_Row], note: str = "") -> None:
        self._rows: tuple[_Row, ...] = tuple(rows)
        self.note = note

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def frame(self) -> pd.DataFrame:
        """Return one row per sentence, with its figures."""
        return pd.DataFrame([row.to_dict() for row in self._rows])

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> list[str]:
        return [*map(str, self._rows), *filter(None, [self.note])]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._lines())
        return {"text/plain": str(self), "text/html": f"<ul>{lines}</ul>"}


class PowerTable(_Sentences[Power]):
    """Answers to "how many cases?", one a comparison. A frame by `frame()`.

    `note` says which cases count as one, '' for none.
    """


def power_table(
    trials: pd.DataFrame,
    drop: float = 0.05,
    *,
    a: str | None = None,
    b: str | None = None,
    again: bool | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    policy: str = "safe",
) -> PowerTable:
    """Return the power of every comparison of two cells (model and arm) of a trials frame.

    a, b: arms, models or protocols, to see their comparison alone. again: instead, of each cell
    against a later run of the same cases. By default if there is one cell only. Cases that ask the
    same question count as one case, which has the trials of all of them. Raises BadOptions
    for a name the frame has not, for shares that are none, and where no case is judged.
    """
    check_trials(trials)
    check_shares(drop=drop, power=power, alpha=alpha)
    part, note = by_question(read_under(trials, (), policy))
    judged = part[part["score_success"].notna()]
    by = [c for c in _BY if c in judged]
    varied = [c for c in by if judged[c].nunique() > 1] or by[-1:]
    cells = {
        " · ".join(values): case_counts(asked_anew(rows)) for values, rows in groups(judged, varied)
    }
    if not cells:
        raise BadOptions(
            "power needs trials that can be judged", got="none", expected="cases with a target"
        )
    pairs = _pairs(trials, cells, a, b)
    if again or (again is None and not pairs):
        spreads = [(f"{name} v a later run", _again(rates)) for name, rates in cells.items()]
    else:
        spreads = [(f"{x} v {y}", _between(cells[x], cells[y])) for x, y in pairs]
    return PowerTable(
        [power_of(name, spread, drop, power=power, alpha=alpha) for name, spread in spreads], note
    )


ANSWER = ("completion_key", "created")
"""The columns that tell one recorded answer from another."""


def asked_anew(judged: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one cell without a second row of a recorded answer: one that a later run
    has only read again, or that two cases with the same question share.
    """
    columns = [c for c in (*ANSWER, "case_id", "trial") if c in judged]
    if len(columns) < 4:
        return judged
    again = judged.duplicated(columns) & judged["created"].notna()
    return judged[~again]


def case_counts(judged: pd.DataFrame) -> pd.DataFrame:
    """Return one row per case of judged trials: its successes `hits` and trials `n`, as floats."""
    success = judged["score_success"].astype(bool).astype(float)
    counts = success.groupby(judged["case_id"].astype(object), sort=False, observed=True).agg(
        ["sum", "count"]
    )
    return counts.rename(columns={"sum": "hits", "count": "n"}).astype(float)


def _pairs(
    trials: pd.DataFrame, cells: dict[str, pd.DataFrame], a: str | None, b: str | None
) -> list[tuple[str, str]]:
    # Cells to compare share all but one of model and arm.
    if (a is None) != (b is None):
        raise BadOptions("power compares two names", got=a or b, expected="both a= and b=")
    every = [
        (x, y)
        for x, y in combinations(cells, 2)
        if len(_parts(x) ^ _parts(y)) == 2  # one part of each is its own
    ]
    if a is None or b is None:
        return every
    chosen = [
        (x, y) if a in _parts(x) else (y, x) for x, y in every if _parts(x) ^ _parts(y) == {a, b}
    ]
    if not chosen:
        raise BadOptions(
            "the run has no such two arms or models", got=f"{a}, {b}", expected=", ".join(cells)
        )
    return chosen


def _parts(name: str) -> set[str]:
    return set(name.split(" · "))


def _between(a: pd.DataFrame, b: pd.DataFrame) -> Spread:
    both = a.add_suffix("_a").join(b.add_suffix("_b"), how="inner")
    gaps = both["hits_b"] / both["n_b"] - both["hits_a"] / both["n_a"]
    cases = len(gaps)
    if not cases:
        return Spread(1.0, 0, "no case was judged in both")
    square = cautious(float((gaps**2).mean()), cases)
    variance = max(0.0, square - float(gaps.mean()) ** 2)
    share = float((gaps != 0).mean())
    source = f"the two differ on {share:.0%} of {counted(cases, 'case')}"
    # The number of equal steps in which rates of so many trials differ.
    parts = math.lcm(*(int(n) for side in ("n_a", "n_b") for n in both[side].unique()))
    parts = min(parts, _FINEST)
    if parts == 1:
        return Spread(variance, cases, source, growth=2)
    # One more case, of which every difference is as likely, since others than these will be seen.
    middle = np.rint(gaps.to_numpy() * parts).astype(int) + parts
    seen = np.bincount(middle, minlength=2 * parts + 1) + 1 / (2 * parts + 1)
    base = seen + seen[::-1]  # of two arms that are alike, either may be the better one

    def steps(drop: float) -> Array:
        return tilted(base, drop, variance + drop**2)

    return Spread(variance, cases, source, growth=2, steps=steps)


def _again(rates: pd.DataFrame) -> Spread:
    # From a later run with as many trials. If nothing has changed, they differ by the noise of
    # trials alone.
    cases = len(rates)
    several = rates[rates["n"] >= 2]
    per_case = float((1 / rates["n"]).mean())
    rate = float((rates["hits"] / rates["n"]).mean())
    if not len(several):
        source = (
            "assumed: two answers to a case are as different as answers to two cases, since there "
            "is one trial of each; with two trials the figure is measured"
        )
        return Spread(2 * rate * (1 - rate), cases, source, growth=1)
    measured = float(disagreement(several["hits"], several["n"]).mean())
    size = counted(len(several), "case")
    source = f"two trials of a case disagree {measured:.0%} of the time ({size})"
    noise = cautious(measured, len(several))
    trials = min(round(1 / per_case), _FINEST)
    if trials == 1:
        return Spread(noise * per_case, cases, source, growth=1)
    chances = case_rates(rate, min(noise, 2 * rate * (1 - rate)))
    hits = hits_of(chances, trials)
    none = np.eye(1, trials + 1).repeat(len(hits), axis=0)

    def steps(drop: float) -> Array:
        lost = min(1.0, drop / rate) if rate else 1.0
        return (1 - lost) * gaps_of(hits, hits) + lost * gaps_of(hits, none)

    return Spread(noise * per_case, cases, source, growth=1, steps=steps)
