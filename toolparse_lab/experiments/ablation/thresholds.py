"""The thresholds of a running service, read off the recorded calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ...core.types import Policy
from ...middleware.correction.monitoring import THRESHOLDS, Reading
from .cells import groups_of
from .intervals import share_of


def thresholds_frame(
    calls: pd.DataFrame, policy: Policy, by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per group × level of layer 1 × threshold, for calls under layers 2 and 3.

    count, total: the quantity counted, and out of what (`of` says it). ok: False if the rate is on
    the worse side of its limit, None out of nothing. tells: whether the interval lies on one side
    of the limit. advice: "" if the threshold holds. The two rates of corrections count nothing
    while one of them is not on record.
    """
    rows = []
    part = calls[calls["policy"] == policy]
    for keys, some in groups_of(part, (*by, "l1")):
        names = dict(zip((*by, "l1"), keys, strict=True))
        for threshold, hits, out_of in zip(THRESHOLDS, *_counted(some), strict=True):
            reading = Reading(threshold, int(hits.sum()), len(out_of))
            share = share_of(hits, out_of["case_id"].to_numpy(), level)
            rows.append(
                {
                    **names,
                    "threshold": threshold.name,
                    "of": threshold.of,
                    "worse": threshold.worse,
                    "limit": threshold.limit,
                    "count": reading.count,
                    "total": reading.total,
                    "rate": share.rate,
                    "ci_low": share.low,
                    "ci_high": share.high,
                    "ok": reading.ok if reading.total else None,
                    "tells": not share.low <= threshold.limit <= share.high
                    if reading.total
                    else False,
                    "advice": "" if reading.ok else threshold.advice,
                }
            )
    return pd.DataFrame(rows)


def _counted(part: pd.DataFrame) -> tuple[list[Any], list[pd.DataFrame]]:
    # Hits, and the calls that they are counted out of, for each of `THRESHOLDS`.
    entered = part[part["entered"].fillna(False).astype(bool)]
    # A call of a tool that nobody offered is not known either, but no tool takes it.
    is_open = bool(entered["corrected_accepted"].isna().any())
    ended, rescued = (part.iloc[:0], entered.iloc[:0]) if is_open else (part, entered)
    hits = [
        part["steps"].to_numpy() > 0,
        part["entered"].fillna(False).to_numpy(bool),
        rescued["needed"].to_numpy() > 0,
        ended["corrected_accepted"].fillna(False).to_numpy(bool),
    ]
    return hits, [part, part, rescued, ended]
