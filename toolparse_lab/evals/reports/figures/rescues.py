"""The outcome of each rule that changed something: rescued, falsely rescued, harmed."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ....core.rules import CODES, RULES
from ...scoring.rescues import is_recovery
from . import stats
from .cells import exploded, first_ids

Judged: TypeAlias = list[dict[str, list[int]]]
"""Of each trial: rule -> (values that are right, values that are wrong)."""

_RESCUES = (
    "rule", "stage", "lossless", "applied", "trials", "rescued", "false_rescues",
    "false_rescue_rate", "harmed", "values_right", "values_wrong", "meaning", "trial_ids",
)  # fmt: skip


def coercions_frame(trials: pd.DataFrame, policy: str, examples: int = 3) -> pd.DataFrame:
    """Coercion rules alone of `rescues_frame`."""
    frame = rescues_frame(trials, policy, examples)
    return frame[frame["stage"] == "coercion"].reset_index(drop=True)


def rescues_frame(trials: pd.DataFrame, policy: str, examples: int = 3) -> pd.DataFrame:
    """Rules that changed something, one row each: how often each was applied and the outcome of it.

    `stage`: repair, reading, recovery or coercion. `rescued`: trials that are wrong without the
    stage and right with it. `false_rescues`: trials made valid in which a value that this very rule
    changed is wrong. `false_rescue_rate` is their share of both. Any other fault in a call is no
    fault of the rule. `harmed`: trials that are right without the stage, wrong with it.
    `values_right`, `values_wrong`: the values it changed, each held to the target at its own place.
    """
    # Numbered anew: rows are looked up by number, and frames put together have numbers twice.
    part = trials[trials["policy"] == policy].reset_index(drop=True)
    # A frame of an older version has only the whole answers to go by.
    judged: Judged | None = None
    if "rescues_json" in part:
        # Most texts are the same few, and each is read once.
        numbers, texts = pd.factorize(part["rescues_json"])
        values = [json.loads(text) or {} for text in texts]
        judged = [values[number] if number >= 0 else {} for number in numbers]
    rows: list[dict[str, Any]] = []
    for column in ("rules_json", "codes_json"):
        for rule, (cases, applied) in exploded(part, column).items():
            if column == "codes_json" and not is_recovery(rule):
                continue
            rows.append(
                {
                    "rule": rule,
                    "stage": _stage_of(rule),
                    "applied": applied,
                    "trials": len(cases),
                    **_came_of(rule, cases, judged),
                    "trial_ids": first_ids(cases, examples),
                }
            )
    rows.sort(key=lambda r: (-r["trials"], r["rule"]))
    return pd.DataFrame(rows, columns=list(_RESCUES))


def _stage_of(rule: str) -> str:
    prefixes = {"coerce": "coercion", "read": "reading", "call": "recovery"}
    return prefixes.get(rule.split(".")[0], "repair")


def _came_of(rule: str, cases: pd.DataFrame, judged: Judged | None) -> dict[str, Any]:
    # judged: rule -> (right, wrong) of each trial, by the index of `cases`, or None if nothing was
    # judged at its place, so that each value counts as its answer does.
    graded = cases["score_success"].notna().to_numpy(dtype=bool)
    after = cases["score_success"].fillna(False).to_numpy(dtype=bool)
    if judged is None:
        counts = [(int(success), int(not success)) for success in after]
    else:
        counts = [judged[i].get(rule, (0, 0)) for i in cases.index]
    right = np.array([one[0] for one in counts], dtype=int)
    wrong = np.array([one[1] for one in counts], dtype=int)

    level = "score_repaired" if rule.startswith("coerce.") else "score_strict"
    before = cases[level].fillna(False).to_numpy(dtype=bool)
    # Made valid: every call keeps its schema, whether or not it is what was wanted.
    n_calls, n_valid = cases["n_calls"].fillna(0), cases["n_valid"].fillna(0)
    valid = ((n_calls > 0) & (n_valid == n_calls)).to_numpy(dtype=bool)

    rescued = int((graded & ~before & after).sum())
    false = int((graded & ~before & ~after & valid & (wrong > 0)).sum())
    entry = RULES.get(rule) or CODES.get(rule)
    return {
        "lossless": entry.lossless if entry is not None else None,
        "rescued": rescued,
        "false_rescues": false,
        "false_rescue_rate": false / (rescued + false) if rescued + false else stats.NAN,
        "harmed": int((graded & before & ~after).sum()),
        "values_right": int(right.sum()),
        "values_wrong": int(wrong.sum()),
        "meaning": entry.sentence if entry is not None else "",
    }
