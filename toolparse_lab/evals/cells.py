"""What a trials frame says, cell by cell: rates with intervals, outcomes, failures, codes and coercions as frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import BadOptions
from ..rules import CODES, RULES
from . import stats
from .outcomes import MISSING, OUTCOMES

LEVELS = ("strict", "repaired", "naive")
COERCED_POLICIES = ("middleware", "seed-layer2", "lossy")
REQUIRED = (
    "trial_id", "case_id", "trial", "model", "prompt_protocol", "policy", "target", "raw", "outcome",
    "sub_code", "detail", "missing_reason", "score_success", "score_strict", "score_repaired", "score_naive",
    "score_fabricated", "n_calls", "n_ok", "n_valid", "n_edits", "n_coercions", "codes_json", "rules_json", "cost",
    "latency", "completion_tokens",
)  # fmt: skip
UNRECORDED = "not recorded"


def check_trials(trials: pd.DataFrame) -> None:
    """Raise BadOptions where a trials frame has not the columns that reports read."""
    if not isinstance(trials, pd.DataFrame):
        raise BadOptions("a report is made from a trials frame", got=type(trials).__name__, expected="a DataFrame")
    if lacking := [c for c in REQUIRED if c not in trials]:
        raise BadOptions(
            "the trials frame lacks columns",
            got=", ".join(lacking),
            expected="the columns of trials_frame()",
            hint="make it with run.trials_df() or evals.frames.trials_frame",
        )


def check_by(trials: pd.DataFrame, by: Sequence[str]) -> tuple[str, ...]:
    """`by` as a tuple of columns of the frame; raises BadOptions for a name it lacks."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise BadOptions("a report has at least one column to go by", got="none", expected="model, prompt_protocol, …")
    if lacking := [n for n in names if n not in trials]:
        raise BadOptions("no such column to go by", got=", ".join(lacking), expected=", ".join(map(str, trials)))
    return names


def groups(trials: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """(values of `by` as text, rows) for every combination that occurs, in order of first appearance."""
    if trials.empty:
        return
    keys = trials[list(by)].astype("string").fillna("")
    # A list of one name would give scalars in some versions of pandas and tuples in others.
    names: Any = list(by) if len(by) > 1 else by[0]
    for values, index in keys.groupby(names, sort=False, observed=True).groups.items():
        yield (values if isinstance(values, tuple) else (values,)), trials.loc[index]


def cells_frame(trials: pd.DataFrame, by: Sequence[str], policy: str, level: float = 0.95) -> pd.DataFrame:
    """One row a cell, see `Report.frame` for the columns."""
    headline = trials[trials["policy"] == policy]
    wide = coerced_policy(trials, policy)
    looser = dict(groups(trials[trials["policy"] == wide], by)) if wide != policy else {}
    rows = []
    for values, part in groups(headline, by):
        row: dict[str, Any] = dict(zip(by, values, strict=True))
        row |= _cell(part, level)
        other = looser.get(values)
        row["coerced"] = row["success"] if wide == policy else _rate(_flags(other, "score_success"))
        rows.append(row)
    return pd.DataFrame(rows, columns=[*by, *CELL_COLUMNS]).astype(dict.fromkeys(COUNTS, "int64") if rows else {})


COUNTS = ("n_cases", "n", "missing", "ungraded")
CELL_COLUMNS = (
    *COUNTS, "success", "ci_low", "ci_high", "strict", "repaired", "coerced", "naive", "fabricated", "coercion_rate",
    "repair_rate", "worst", "best", "noise", "distinct", "latency_p50", "latency_p95", "tokens_mean", "cost",
    "cost_per_success", "reason",
)  # fmt: skip


def coerced_policy(trials: pd.DataFrame, policy: str) -> str:
    """The policy that stands for coerced success: the first looser one that the frame holds, else the headline's."""
    held = set(trials["policy"].astype(str))
    return next((p for p in COERCED_POLICIES if p in held), policy)


def _flags(part: pd.DataFrame | None, column: str) -> pd.Series[Any]:
    if part is None:
        return pd.Series([], dtype="boolean")
    return part[column].astype("boolean")


def _rate(flags: pd.Series[Any]) -> float:
    known = flags.dropna()
    return float(known.mean()) if len(known) else stats.NAN


def _share(part: pd.DataFrame, column: str) -> float:
    """The share of answers with calls for which a count is above zero."""
    counts = part.loc[part["n_calls"].fillna(0) > 0, column].fillna(0)
    return float((counts > 0).mean()) if len(counts) else stats.NAN


def _cell(part: pd.DataFrame, level: float) -> dict[str, Any]:
    success = _flags(part, "score_success")
    judged = part[success.notna()]
    flags = success.dropna().astype(bool).tolist()
    cases = judged["case_id"].tolist()
    ungraded = int(((part["outcome"] == "ungraded") | (part["target"].isna() & success.isna())).sum())
    missing = len(part) - len(judged) - ungraded
    hits = sum(flags)
    interval = stats.clustered_interval(flags, cases, level)
    worst, best = stats.bounds(hits, len(judged), missing)
    answered = part[part["outcome"].notna() & ~part["outcome"].isin(list(MISSING))]
    cost, latency = part["cost"].dropna().astype(float), part["latency"].dropna().astype(float)
    tokens = part["completion_tokens"].dropna().astype(float)
    spent = float(cost.sum()) if len(cost) else stats.NAN
    reasons = part.loc[success.isna(), "missing_reason"].dropna().astype(str)
    return {
        "n_cases": judged["case_id"].nunique(),
        "n": len(judged),
        "missing": missing,
        "ungraded": ungraded,
        "success": interval.rate,
        "ci_low": interval.low,
        "ci_high": interval.high,
        **{name: _rate(_flags(judged, f"score_{name}")) for name in LEVELS},
        "fabricated": float(answered["score_fabricated"].fillna(False).mean()) if len(answered) else stats.NAN,
        "coercion_rate": _share(answered, "n_coercions"),
        "repair_rate": _share(answered, "n_edits"),
        "worst": worst,
        "best": best,
        "noise": stats.noise_floor(flags, cases),
        "distinct": stats.distinct_share(answered["raw"].tolist(), answered["case_id"].tolist()),
        "latency_p50": float(np.quantile(latency, 0.5)) if len(latency) else stats.NAN,
        "latency_p95": float(np.quantile(latency, 0.95)) if len(latency) else stats.NAN,
        "tokens_mean": float(tokens.mean()) if len(tokens) else stats.NAN,
        "cost": spent,
        "cost_per_success": spent / hits if hits else stats.NAN,
        "reason": "; ".join(f"{n} {text}" for text, n in reasons.value_counts().items()),
    }


def waterfall_frame(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """One row a cell and outcome that occurs: n and share of the cell's trials, in the order of precedence."""
    rows = []
    order = [*OUTCOMES, UNRECORDED]
    for values, part in groups(trials[trials["policy"] == policy], by):
        counts = part["outcome"].astype("string").fillna(UNRECORDED).value_counts()
        rows += [
            {**dict(zip(by, values, strict=True)), "outcome": o, "n": int(counts[o]), "share": counts[o] / len(part)}
            for o in order
            if o in counts
        ]
    return pd.DataFrame(rows, columns=[*by, "outcome", "n", "share"])


def failures_frame(trials: pd.DataFrame, policy: str, examples: int = 3) -> pd.DataFrame:
    """Outcomes that are no success, ranked, with a detail and example trial ids."""
    part = trials[(trials["policy"] == policy) & trials["outcome"].notna()]
    rows: list[dict[str, Any]] = []
    for (outcome, sub_code), found in groups(part, ["outcome", "sub_code"]):
        if OUTCOMES[outcome].group in ("success", "none"):
            continue
        rows.append(
            {
                "outcome": outcome,
                "sub_code": sub_code,
                "n": len(found),
                "share": len(found) / len(part),
                "example": str(found["detail"].iloc[0]),
                "trial_ids": ", ".join(found["trial_id"].astype(str).head(examples)),
            }
        )
    rows.sort(key=lambda r: (-r["n"], r["outcome"], r["sub_code"]))
    return pd.DataFrame(rows, columns=["outcome", "sub_code", "n", "share", "example", "trial_ids"])


def _exploded(part: pd.DataFrame, column: str) -> dict[str, list[Any]]:
    """Key of the JSON counts -> index labels of the rows that have it."""
    found: dict[str, list[Any]] = {}
    for label, text in part[column].dropna().items():
        for key in json.loads(text):
            found.setdefault(key, []).append(label)
    return found


def codes_frame(trials: pd.DataFrame, policy: str, examples: int = 3) -> pd.DataFrame:
    """Problem codes ranked by the number of trials that have them, with the sentence and example trial ids."""
    part = trials[trials["policy"] == policy]
    parsed = int(part["n_calls"].notna().sum())
    rows: list[dict[str, Any]] = []
    for code, labels in _exploded(part, "codes_json").items():
        found = part.loc[labels]
        rows.append(
            {
                "code": code,
                "n": len(found),
                "share": len(found) / parsed,
                "success": _rate(_flags(found, "score_success")),
                "meaning": CODES[code].sentence if code in CODES else "",
                "trial_ids": ", ".join(found["trial_id"].astype(str).head(examples)),
            }
        )
    rows.sort(key=lambda r: (-r["n"], r["code"]))
    return pd.DataFrame(rows, columns=["code", "n", "share", "success", "meaning", "trial_ids"])


def coercions_frame(trials: pd.DataFrame, policy: str, examples: int = 3) -> pd.DataFrame:
    """Coercion rules, one row each: how often each was applied and what came of it.

    `rescued`: wrong without coercion, right with it. `false_rescues`: made valid by it, yet not what was wanted;
    `false_rescue_rate` is their share of the trials that it made valid. `harmed`: right without it, wrong with it.
    """
    part = trials[trials["policy"] == policy]
    rows: list[dict[str, Any]] = []
    for rule, labels in _exploded(part, "rules_json").items():
        if not rule.startswith("coerce."):
            continue
        found = part.loc[labels]
        graded = found[found["score_success"].notna()]
        before, after = graded["score_repaired"].astype(bool), graded["score_success"].astype(bool)
        valid = (graded["n_calls"] > 0) & (graded["n_valid"] == graded["n_calls"])
        rescued, wrong = int((~before & after).sum()), int((~before & ~after & valid).sum())
        rows.append(
            {
                "rule": rule,
                "lossless": RULES[rule].lossless if rule in RULES else None,
                "applied": sum(json.loads(t)[rule] for t in found["rules_json"]),
                "trials": len(found),
                "rescued": rescued,
                "false_rescues": wrong,
                "false_rescue_rate": wrong / (rescued + wrong) if rescued + wrong else stats.NAN,
                "harmed": int((before & ~after).sum()),
                "meaning": RULES[rule].sentence if rule in RULES else "",
                "trial_ids": ", ".join(found["trial_id"].astype(str).head(examples)),
            }
        )
    rows.sort(key=lambda r: (-r["trials"], r["rule"]))
    names = (
        "rule", "lossless", "applied", "trials", "rescued", "false_rescues", "false_rescue_rate", "harmed",
        "meaning", "trial_ids",
    )  # fmt: skip
    return pd.DataFrame(rows, columns=list(names))
