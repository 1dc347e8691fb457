"""Trials frames made of rates, for tests of figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from toolparse_lab.evals.reports.figures.cells import REQUIRED


def trials_of(successes: dict[tuple[str, str], np.ndarray[Any, Any]]) -> pd.DataFrame:
    """A trials frame: (model, arm) -> successes, cases × trials."""
    parts = []
    for (model, arm), table in successes.items():
        case, trial = (index.ravel().astype(str) for index in np.indices(table.shape))
        place = np.char.add(np.char.add(case, "."), trial)
        parts.append(
            pd.DataFrame(
                {
                    "model": model,
                    "arm": arm,
                    "case_id": np.char.add("c", case).astype(object),
                    "trial": trial.astype(int),
                    "score_success": table.ravel().astype(bool),
                    "trial_id": np.char.add(f"{model}{arm}", place).astype(object),
                    "raw": place.astype(object),
                }
            )
        )
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(**{c: None for c in REQUIRED if c not in frame}).assign(policy="safe")


def twice(frame: pd.DataFrame, *, same_answers: bool) -> pd.DataFrame:
    """The frame's cases under a second id each: one answer for both ids, or those of the first half
    of the trials under one id and the rest under the other."""
    asked = "Question " + frame["case_id"].astype(str)
    frame = frame.assign(input=asked, completion_key=frame["trial_id"], created="2026-01-01")
    other = frame.assign(case_id=frame["case_id"] + " again", trial_id=frame["trial_id"] + "again")
    if same_answers:
        return pd.concat([frame, other], ignore_index=True)
    half = (frame["trial"].max() + 1) // 2
    late = other[other["trial"] >= half]
    late = late.assign(trial=late["trial"] - half)
    halves: pd.DataFrame = pd.concat([frame[frame["trial"] < half], late], ignore_index=True)
    return halves
