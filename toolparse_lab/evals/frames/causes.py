"""Which rows of a trials frame are failures, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..scoring.outcomes import cause_of

if TYPE_CHECKING:
    import pandas as pd


def causes(trials: pd.DataFrame, *, graded: bool = True) -> list[str]:
    """Return why each row of a trials frame is a failure, '' for one that is none, see `cause_of`.

    trials: needs the columns `outcome`, `sub_code`, `error_code` and `target` alone. graded: False
    asks of every row what is asked without a target.
    """
    words = [
        trials[name].astype("string").fillna("").tolist() if name in trials else [""] * len(trials)
        for name in ("outcome", "sub_code", "error_code")
    ]
    wanted = trials["target"].notna().tolist() if graded and "target" in trials else None
    known: dict[tuple[str, str, str, bool], str] = {}
    found = []
    for key in zip(*words, wanted or [False] * len(trials), strict=True):
        if key not in known:
            known[key] = cause_of(*key[:3], graded=key[3])
        found.append(known[key])
    return found


def failed_rows(trials: pd.DataFrame) -> list[bool]:
    """Return True for each row of a trials frame that has a cause to be a failure, see `causes`."""
    return [bool(cause) for cause in causes(trials)]
