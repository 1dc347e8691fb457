"""The power of a run: the differences that its own cases can show, arm against arm or against a run
to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import combinations
from typing import Any

import pandas as pd

from ....errors import BadOptions
from ....values.printable import counted
from .cells import check_trials, groups, read_under
from .power import Power, Spread, cautious, check_shares, power_of

_BY = ("model", "arm")


class PowerTable(Sequence[Power]):
    """Answers to "how many cases?", one a comparison. A frame by `frame()`."""

    def __init__(self, rows: Sequence[Power]) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def frame(self) -> pd.DataFrame:
        """Return one row per comparison, with the fields of `Power`."""
        return pd.DataFrame([row.to_dict() for row in self._rows])

    def __str__(self) -> str:
        return "\n".join(map(str, self._rows))

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        lines = "".join(f"<li>{escape(str(row))}</li>" for row in self._rows)
        return {"text/plain": str(self), "text/html": f"<ul>{lines}</ul>"}


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
    against a later run of the same cases. By default if there is one cell only. Raises BadOptions
    for a name the frame has not, for shares that are none, and where no case is judged.
    """
    check_trials(trials)
    check_shares(drop=drop, power=power, alpha=alpha)
    cells = _case_rates(read_under(trials, (), policy))
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
        [power_of(name, spread, drop, power=power, alpha=alpha) for name, spread in spreads]
    )


def _case_rates(part: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return successes and trials of each case, by the name of the cell."""
    judged = part[part["score_success"].notna()]
    by = [c for c in _BY if c in judged]
    varied = [c for c in by if judged[c].nunique() > 1] or by[-1:]
    return {" · ".join(values): case_counts(rows) for values, rows in groups(judged, varied)}


def case_counts(judged: pd.DataFrame) -> pd.DataFrame:
    """Return one row per case: its successes `hits` and its trials `n`, as floats.

    judged: trials that could be judged.
    """
    success = judged["score_success"].astype(bool).astype(float)
    counts = success.groupby(judged["case_id"].astype(object), sort=False, observed=True).agg(
        ["sum", "count"]
    )
    return counts.rename(columns={"sum": "hits", "count": "n"}).astype(float)


def _pairs(
    trials: pd.DataFrame, cells: dict[str, pd.DataFrame], a: str | None, b: str | None
) -> list[tuple[str, str]]:
    """Return the pairs of cells to compare: those that share all but one of model and arm."""
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
            "the run has no such two arms or models",
            got=f"{a}, {b}",
            expected=", ".join(cells),
        )
    return chosen


def _parts(name: str) -> set[str]:
    return set(name.split(" · "))


def _between(a: pd.DataFrame, b: pd.DataFrame) -> Spread:
    """Return the spread of two cells' differences, over the cases that both have."""
    both = a.add_suffix("_a").join(b.add_suffix("_b"), how="inner")
    gaps = both["hits_b"] / both["n_b"] - both["hits_a"] / both["n_a"]
    cases = len(gaps)
    if not cases:
        return Spread(1.0, 0, "no case was judged in both")
    square = cautious(float((gaps**2).mean()), cases)
    variance = max(0.0, square - float(gaps.mean()) ** 2)
    share = float((gaps != 0).mean())
    source = f"the two differ on {share:.0%} of {counted(cases, 'case')}"
    return Spread(variance, cases, source, growth=2)


def _again(rates: pd.DataFrame) -> Spread:
    """Return the spread of a cell's differences from a later run with as many trials.

    If nothing has changed, they differ by the noise of trials alone. See `noise`.
    """
    cases = len(rates)
    several = rates[rates["n"] >= 2]
    per_case = float((1 / rates["n"]).mean())
    if len(several):
        noise = float(disagreement(several).mean())
        size = counted(len(several), "case")
        source = f"two trials of a case disagree {noise:.0%} of the time ({size})"
        return Spread(cautious(noise, len(several)) * per_case, cases, source, growth=1)
    rate = float((rates["hits"] / rates["n"]).mean())
    source = (
        "assumed: two answers to a case are as different as answers to two cases, since there is "
        "one trial of each; with two trials the figure is measured"
    )
    return Spread(2 * rate * (1 - rate), cases, source, growth=1)


def disagreement(rates: pd.DataFrame) -> pd.Series[Any]:
    """Return how often two trials of a case disagree, for cases with two trials or more.

    It is twice the variance of a single trial about its case's rate, without bias.
    """
    k, n = rates["hits"], rates["n"]
    return 2 * k * (n - k) / (n * (n - 1))
