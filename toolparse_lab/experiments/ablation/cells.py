"""The eight cells of three layers, the tests between them, and the gain of each layer.

How it works. The cells of one policy are eight columns over the same samples: layer 1 off and on
are two base answers, layer 2 off is the policy "none", layer 3 off and on are the two ends of a
path. So every comparison is paired, and the cases are its units.

What is missing is told apart. A base answer that is missing says nothing of its rungs: the rates
are those of the others, with bounds. A correction that is missing does say something: only refused
calls have one. To leave such answers out would raise the rate, so the rungs of that cell are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import combinations, product
from math import factorial
from typing import Any, ParamSpec, TypeAlias

import numpy as np
import pandas as pd

from ...core.types import Policy
from ...evals.reports.figures import Interval, stats
from ...evals.reports.figures.differences import paired_difference
from .frames import RUNGS, Frames
from .intervals import mean_of, share_of

CELLS: Mapping[str, tuple[bool, bool, bool]] = {
    f"S{l1:d}{l2:d}{l3:d}": (l1, l2, l3) for l1, l2, l3 in product((False, True), repeat=3)
}
"""Name of each cell -> whether layer 1, 2 and 3 is there."""
START, FIRST, SECOND, ALL = WATERFALL = ("S000", "S100", "S110", "S111")
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
_P = ParamSpec("_P")
Rows: TypeAlias = Iterator[dict[str, Any]]
SAMPLE = ["model", "protocol", "case_id", "trial"]


def frame_of(rows: Callable[_P, Rows]) -> Callable[_P, pd.DataFrame]:
    """Make a function that yields rows one that returns them as a frame."""

    @wraps(rows)
    def frame(*args: _P.args, **kwargs: _P.kwargs) -> pd.DataFrame:
        return pd.DataFrame(list(rows(*args, **kwargs)))

    return frame


def groups_of(
    frame: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield each combination of values that occurs, sorted, with its rows; all rows without
    `by`.
    """
    if not by:
        yield {}, frame
        return
    for keys, part in frame.groupby(list(by), sort=True, observed=True):
        yield dict(zip(by, keys, strict=True)), part


def under(frame: pd.DataFrame, names: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows that have these values."""
    for name, value in names.items():
        frame = frame[frame[name] == value]
    return frame


def ends(interval: Interval, name: str, prefix: str | None = None) -> dict[str, float]:
    """Return a rate and its interval as columns.

    prefix: of the ends' columns, by default the name itself.
    """
    stem = f"{name}_" if prefix is None else prefix
    return {name: interval.rate, f"{stem}low": interval.low, f"{stem}high": interval.high}


def share(
    name: str, flags: Any, rows: pd.DataFrame, level: float, prefix: str | None = None
) -> dict[str, float]:
    """Return the share of rows with a flag as columns, with cases as clusters."""
    interval = share_of(np.asarray(flags, dtype=bool), rows["case_id"].to_numpy(), level)
    return ends(interval, name, prefix)


# The eight cells, and the differences between them.


def part_of(answers: pd.DataFrame, policy: Policy, cell: str) -> pd.DataFrame:
    """Return the rows of one cell."""
    l1, l2, l3 = CELLS[cell]
    return answers[
        (answers["policy"] == (policy if l2 else "none"))
        & (answers["l1"] == l1)
        & (answers["l3"] == l3)
    ]


@frame_of
def cells_frame(a: Frames) -> Rows:
    """One row per group × cell: the four rungs with n and intervals, and the missing part."""
    for names, part in groups_of(a.answers, a.by):
        for cell, layers in CELLS.items():
            row = {**names, "cell": cell, **dict(zip(("l1", "l2", "l3"), layers, strict=True))}
            yield row | _cell(part_of(part, a.settings.policy, cell), a.settings.level)


def _cell(part: pd.DataFrame, level: float) -> dict[str, Any]:
    recorded = part[part["parsed"].notna()]
    open_paths = int(recorded["valid"].isna().sum())
    graded = recorded[recorded["gold"].notna()]
    rates: dict[str, Any] = {}
    for rung in RUNGS:
        flags = recorded[recorded[rung].notna()]
        if rung != "parsed" and open_paths:
            flags = flags.iloc[:0]
        rates |= share(rung, flags[rung], flags, level)
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


def wide_frame(answers: pd.DataFrame, policy: Policy, rung: str) -> pd.DataFrame:
    """Return one row per sample, with a column for each of the eight cells: 1, 0, NaN if it is
    unknown.

    A cell of which a correction is missing is NaN as a whole, by model and protocol.
    """
    columns: dict[str, pd.Series[Any]] = {}
    for cell in CELLS:
        part = part_of(answers, policy, cell)
        values = part.set_index(SAMPLE)[rung].astype("Float64").astype(float)
        is_open = (part["parsed"].notna() & part["valid"].isna()).to_numpy()
        arms = pd.MultiIndex.from_frame(part[["model", "protocol"]])
        values[arms.isin(arms[is_open].unique())] = np.nan
        columns[cell] = values
    return pd.DataFrame(columns).reset_index()


@frame_of
def tests_frame(a: Frames) -> Rows:
    """One row per rung × contrast × group: the difference of two cells on the same samples.

    test: "McNemar" if each case has one sample, else "sign-flip" on the cases' rates. p_holm is
    adjusted over the groups of one contrast.
    """
    for rung in JUDGED:
        groups = list(groups_of(wide_frame(a.answers, a.settings.policy, rung), a.by))
        for contrast, cells in CONTRASTS.items():
            family = [
                {**names, "rung": rung, "contrast": contrast}
                | _difference(part, *cells, a.settings.level)
                for names, part in groups
            ]
            adjusted = stats.holm([row["p"] for row in family])
            for row, p in zip(family, adjusted, strict=True):
                yield row | {"p_holm": p}


def _difference(part: pd.DataFrame, a: str, b: str, level: float) -> dict[str, Any]:
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


@frame_of
def attribution_frame(a: Frames) -> Rows:
    """One row per rung × group × layer: what it adds in the order 1, 2, 3, and its Shapley share.

    `from` and `to` are the cells of the waterfall. `gain` is their difference. A layer's Shapley
    share is its gain averaged over all orders of the three. The gains add up to S111 - S000 over
    the `n` samples whose four waterfall cells are known, the shares over the `n_shapley` samples
    whose eight cells are. Each has an interval from resampling cases.
    """
    level = a.settings.level
    for rung in JUDGED:
        wide = wide_frame(a.answers, a.settings.policy, rung)
        for names, part in groups_of(wide, a.by):
            whole, steps = part.dropna(subset=list(CELLS)), part.dropna(subset=list(WATERFALL))
            for i, layer in enumerate(LAYERS):
                step = _difference(steps, WATERFALL[i], WATERFALL[i + 1], level)
                shapley = mean_of(_shapley(whole, i), whole["case_id"].to_numpy(), level)
                yield {
                    **names,
                    "rung": rung,
                    "layer": layer,
                    "from": step["a"],
                    "to": step["b"],
                    "n": step["n"],
                    "n_cases": step["n_cases"],
                    "rate_from": step["rate_a"],
                    "rate_to": step["rate_b"],
                    "gain": step["difference"],
                    "gain_low": step["ci_low"],
                    "gain_high": step["ci_high"],
                    "n_shapley": len(whole),
                    **ends(shapley, "shapley"),
                }


def _shapley(part: pd.DataFrame, layer: int) -> Any:
    # In each sample its gain over all sets of the other two layers: a set of k others counts for k!
    # (2 - k)! of the 3! orders.
    names = {layers: name for name, layers in CELLS.items()}
    gain = np.zeros(len(part))
    for size in range(3):
        weight = factorial(size) * factorial(2 - size) / factorial(3)
        for present in combinations([i for i in range(3) if i != layer], size):
            without, with_it = (
                names[(0 in layers, 1 in layers, 2 in layers)]
                for layers in (present, (*present, layer))
            )
            gain += weight * (part[with_it] - part[without]).to_numpy(dtype=float)
    return gain
