"""The eight cells of three layers, the tests between them, and the gain of each layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import factorial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ...core.types import Policy
from ...evals.reports.figures import Interval, stats
from ...evals.reports.figures.differences import paired_difference
from .intervals import mean_of, share_of

# How it works. The cells of one policy are eight columns over the same samples: layer 1 off and on
# are two base answers, layer 2 off is the policy "none", layer 3 off and on are the two ends of a
# path. So every comparison is paired, and the cases are its units.
#
# What is missing is told apart. A base answer that is missing says nothing of its rungs, and the
# others stand for it, with bounds. A correction that is missing does: only refused calls have one.
# To leave such answers out would raise the rate, so the rungs of that cell are NaN.

_OFF_AND_ON = (False, True)
CELLS = tuple((l1, l2, l3) for l1, l2, l3 in product(_OFF_AND_ON, _OFF_AND_ON, _OFF_AND_ON))
"""(layer 1, layer 2, layer 3) of each cell."""
START, FIRST, SECOND, ALL = "S000", "S100", "S110", "S111"
WATERFALL = (START, FIRST, SECOND, ALL)
CONTRASTS: Mapping[str, tuple[str, str]] = {
    "layer 1 alone": (START, FIRST),
    "layer 2 alone": (START, "S010"),
    "layer 3 alone": (START, "S001"),
    "layer 2 after 1": (FIRST, SECOND),
    "layer 3 after 1 and 2": (SECOND, ALL),
    "all three": (START, ALL),
}
"""What is compared -> the two cells."""
JUDGED = ("valid", "gold")
LAYERS = ("layer 1", "layer 2", "layer 3")
_SAMPLE = ("model", "protocol", "case_id", "trial")
Keys: TypeAlias = tuple[Any, ...]


def cell_name(l1: bool, l2: bool, l3: bool) -> str:
    """Return a cell as it is called.

    >>> cell_name(True, True, False)
    'S110'
    """
    return f"S{int(l1)}{int(l2)}{int(l3)}"


def groups_of(frame: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[Keys, pd.DataFrame]]:
    """Yield each combination of values that occurs, sorted, with its rows.

    () and all rows without `by`.
    """
    if not by:
        yield (), frame
        return
    for keys, part in frame.groupby(list(by), sort=True, observed=True):
        yield tuple(keys), part


def part_of(answers: pd.DataFrame, policy: Policy, cell: tuple[bool, bool, bool]) -> pd.DataFrame:
    """Return the rows of one cell."""
    l1, l2, l3 = cell
    return answers[
        (answers["policy"] == (policy if l2 else "none"))
        & (answers["l1"] == l1)
        & (answers["l3"] == l3)
    ]


def cells_frame(
    answers: pd.DataFrame, policy: Policy, by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per group × cell: the four rungs with n, the interval of gold, and the missing
    part.
    """
    rows = []
    for keys, part in groups_of(answers, by):
        for cell in CELLS:
            row = dict(zip(by, keys, strict=True)) | {"cell": cell_name(*cell)}
            row |= dict(zip(("l1", "l2", "l3"), cell, strict=True))
            rows.append(row | _cell(part_of(part, policy, cell), level))
    return pd.DataFrame(rows)


def _cell(part: pd.DataFrame, level: float) -> dict[str, Any]:
    recorded = part[part["parsed"].notna()]
    open_paths = int(recorded["valid"].isna().sum())
    graded = recorded[recorded["gold"].notna()]
    rates: dict[str, Any] = {}
    for rung in ("parsed", "valid", "accepted", "gold"):
        flags = recorded[recorded[rung].notna()]
        blank = rung != "parsed" and open_paths
        interval = _interval(flags.iloc[:0] if blank else flags, rung, level)
        rates |= {rung: interval.rate, f"{rung}_low": interval.low, f"{rung}_high": interval.high}
    unrecorded = len(part) - len(recorded)
    hits, unknown = int(graded["gold"].sum()), open_paths + unrecorded
    # An ungraded case is not missing: nobody can say what would be right.
    whole = len(graded) + unknown
    return {
        "n": len(graded),
        "n_cases": graded["case_id"].nunique(),
        "answers": len(recorded),
        "missing": unrecorded,
        "missing_corrections": open_paths,
        **rates,
        "worst": hits / whole if whole else stats.NAN,
        "best": (hits + unknown) / whole if whole else stats.NAN,
    }


def _interval(part: pd.DataFrame, column: str, level: float) -> Interval:
    # Cases as clusters.
    return share_of(part[column].to_numpy(bool), part["case_id"].to_numpy(), level)


def wide_frame(answers: pd.DataFrame, policy: Policy, rung: str) -> pd.DataFrame:
    """Return one row per sample, with a column for each of the eight cells: 1, 0, NaN if it is
    unknown.

    The index holds model, protocol, case and trial. A cell of which a correction is missing is NaN
    as a whole, by model and protocol.
    """
    columns: dict[str, pd.Series[Any]] = {}
    for cell in CELLS:
        part = part_of(answers, policy, cell)
        values = part.set_index(list(_SAMPLE))[rung].astype("Float64").astype(float)
        is_open = (part["parsed"].notna() & part["valid"].isna()).to_numpy()
        arms = pd.MultiIndex.from_frame(part[["model", "protocol"]])
        values[arms.isin(arms[is_open].unique())] = np.nan
        columns[cell_name(*cell)] = values
    return pd.DataFrame(columns)


def tests_frame(
    answers: pd.DataFrame, policy: Policy, by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per rung × contrast × group: the difference of two cells on the same samples.

    test: "McNemar" if each case has one sample, else "sign-flip" on the cases' rates. p_holm is
    adjusted over the groups of one contrast.
    """
    rows: list[dict[str, Any]] = []
    for rung in JUDGED:
        groups = list(groups_of(wide_frame(answers, policy, rung).reset_index(), by))
        for contrast, names in CONTRASTS.items():
            family = []
            for keys, part in groups:
                row = dict(zip(by, keys, strict=True)) | {"rung": rung, "contrast": contrast}
                family.append(row | _difference(part, *names, level))
            adjusted = stats.holm([row["p"] for row in family])
            rows += [row | {"p_holm": p} for row, p in zip(family, adjusted, strict=True)]
    return pd.DataFrame(rows)


def _difference(part: pd.DataFrame, a: str, b: str, level: float) -> dict[str, Any]:
    # On the samples that both have.
    both = part[part[a].notna() & part[b].notna()]
    cases = both["case_id"].to_numpy()
    x, y = both[a].to_numpy(bool), both[b].to_numpy(bool)
    gap = paired_difference(x, cases, y, cases, level)
    return {
        "a": a,
        "b": b,
        "n": len(both),
        "n_cases": both["case_id"].nunique(),
        "rate_a": gap.rate_a,
        "rate_b": gap.rate_b,
        "difference": gap.rate,
        "ci_low": gap.low,
        "ci_high": gap.high,
        "only_a": int((x & ~y).sum()),
        "only_b": int((y & ~x).sum()),
        "test": "McNemar" if both["case_id"].is_unique else "sign-flip",
        "p": gap.p,
    }


def attribution_frame(
    answers: pd.DataFrame, policy: Policy, by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per rung × group × layer: what it adds in the order 1, 2, 3, and its Shapley
    share.

    `from` and `to` are the cells of the waterfall. `gain` is their difference. A layer's Shapley
    share is its gain averaged over all orders of the three. Both add up to S111 - S000 on the same
    samples, and each has an interval from resampling cases. n: samples of which every cell is
    known.
    """
    rows = []
    for rung in JUDGED:
        for keys, part in groups_of(wide_frame(answers, policy, rung).reset_index(), by):
            whole = part.dropna(subset=[cell_name(*cell) for cell in CELLS])
            steps = part.dropna(subset=list(WATERFALL))
            for i, layer in enumerate(LAYERS):
                before, after = WATERFALL[i], WATERFALL[i + 1]
                cases = steps["case_id"].to_numpy()
                x, y = steps[before].to_numpy(bool), steps[after].to_numpy(bool)
                gain = paired_difference(x, cases, y, cases, level)
                share = mean_of(_shapley(whole, i), whole["case_id"].to_numpy(), level)
                rows.append(
                    dict(zip(by, keys, strict=True))
                    | {"rung": rung, "layer": layer, "from": before, "to": after}
                    | {"n": len(steps), "n_cases": steps["case_id"].nunique()}
                    | {"rate_from": gain.rate_a, "rate_to": gain.rate_b}
                    | {"gain": gain.rate, "gain_low": gain.low, "gain_high": gain.high}
                    | {"n_shapley": len(whole), "shapley": share.rate}
                    | {"shapley_low": share.low, "shapley_high": share.high}
                )
    return pd.DataFrame(rows)


def _shapley(part: pd.DataFrame, layer: int) -> Any:
    # In each sample its gain over all sets of the other two layers: a set of k others counts for k!
    # (2 - k)! of the 3! orders.
    others = [i for i in range(3) if i != layer]
    share = np.zeros(len(part))
    for size in range(3):
        weight = factorial(size) * factorial(2 - size) / factorial(3)
        for present in combinations(others, size):
            without = cell_name(*(i in present for i in range(3)))
            with_it = cell_name(*(i in present or i == layer for i in range(3)))
            share += weight * (part[with_it] - part[without]).to_numpy(dtype=float)
    return share
