"""Cases that one cell of a report gets right and another gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd


def flip_grid_frame(
    headline: pd.DataFrame, by: Sequence[str], name_of: Callable[[Mapping[Any, Any]], str]
) -> pd.DataFrame:
    """Return one row per case that flips, and in a column per cell the share of its trials that
    succeeded; NaN where no trial of the case was judged.

    A case flips if most of its trials succeed in one cell and most fail in another. Cases on which
    the cells differ most come first.

    headline: the trials under one policy. by: the columns that name a cell. name_of: the name of a
    cell, called with those columns.
    """
    judged = headline[headline["score_success"].notna()]
    shares: dict[str, pd.Series[Any]] = {}
    for keys, part in judged.groupby(list(by), sort=False, dropna=False, observed=True):
        values = keys if isinstance(keys, tuple) else (keys,)
        success = part["score_success"].astype(float)
        shares[name_of(dict(zip(by, values, strict=True)))] = success.groupby(
            part["case_id"], observed=True
        ).mean()
    grid = pd.DataFrame(shares)
    flips = grid[(grid.max(axis=1) > 0.5) & (grid.min(axis=1) < 0.5)]
    # A stable sort, so that equal cases stand in the order of their ids.
    order = (flips.mean(axis=1) - 0.5).abs().sort_values(kind="stable").index
    return flips.loc[order].rename_axis("case_id").reset_index()
