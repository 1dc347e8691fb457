"""What a trials frame says, cell by cell: rates with intervals, outcomes, failures, codes and coercions as frames."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import BadOptions
from ...rules import CODES, RULES
from ..scoring.outcomes import MISSING, OUTCOMES
from . import stats

LEVELS = ("strict", "repaired", "safe", "naive")
COERCED_POLICIES = ("middleware", "seed-layer2", "lossy")
REQUIRED = (
    "trial_id", "case_id", "trial", "model", "prompt_protocol", "policy", "target", "raw", "outcome",
    "sub_code", "detail", "missing_reason", "score_success", "score_strict", "score_repaired", "score_safe",
    "score_naive", "score_fabricated", "n_calls", "n_ok", "n_valid", "n_edits", "n_coercions", "codes_json",
    "rules_json", "cost", "latency", "completion_tokens",
)  # fmt: skip
UNRECORDED = "not recorded"


def check_trials(trials: pd.DataFrame) -> None:
    """Raise BadOptions where a trials frame has not the columns that reports read."""
    if not isinstance(trials, pd.DataFrame):
        raise BadOptions("a report is made from a trials frame", got=type(trials).__name__, expected="a DataFrame")
    if lacking := [c for c in REQUIRED if c not in trials]:
        raise BadOptions(
            f"the trials frame lacks columns: {', '.join(lacking)}",
            got=", ".join(map(str, trials)) or "no columns",
            expected="the columns of trials_frame()",
            hint="make it with run.trials_df() or evals.frames.recorded.trials_frame",
        )


def check_by(trials: pd.DataFrame, by: Sequence[str]) -> tuple[str, ...]:
    """`by` as a tuple of columns of the frame; raises BadOptions for a name it lacks."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise BadOptions("a report has at least one column to go by", got="none", expected="model, prompt_protocol, …")
    if lacking := [n for n in names if n not in trials]:
        near = difflib.get_close_matches(str(lacking[0]), [str(c) for c in trials], 3, 0.6)
        raise BadOptions(
            "no such column to go by", got=", ".join(map(str, lacking)), expected=", ".join(map(str, trials)),
            hint=f"did you mean {' or '.join(near)}?" if near else None,
        )  # fmt: skip
    return names


def check_once(trials: pd.DataFrame, by: Sequence[str] = ()) -> None:
    """Raise BadOptions where one trial stands twice, within the columns of `by`: it would count twice."""
    names = [c for c in dict.fromkeys((*by, "policy", "parse_protocol", "trial_id")) if c in trials]
    known = trials.loc[trials["trial_id"].notna(), names]
    if n := int(known.duplicated().sum()):
        raise BadOptions(
            f"{n} of {len(trials)} rows are trials that the frame holds already, and would be counted twice",
            got=str(known.loc[known.duplicated(), "trial_id"].iloc[0]), expected="each trial_id once",
            hint="drop_duplicates('trial_id'), or go by= a column that tells the rows apart",
        )  # fmt: skip


def groups(trials: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """(values of `by` as text, rows) for every combination that occurs, in order of first appearance."""
    if trials.empty:
        return
    keys = trials[list(by)].astype("string").fillna("")
    # A list of one name would give scalars in some versions of pandas and tuples in others.
    names: Any = list(by) if len(by) > 1 else by[0]
    for values, index in keys.groupby(names, sort=False, observed=True).groups.items():
        yield (values if isinstance(values, tuple) else (values,)), trials.loc[index]


def read_under(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """The rows of one policy; of each, where the policy is among the columns to go by."""
    return trials if "policy" in by else trials[trials["policy"] == policy]


def judged_of(part: pd.DataFrame) -> tuple[list[bool], list[Any]]:
    """(successes, cases) of the trials that could be judged."""
    part = part[part["score_success"].notna()]
    return part["score_success"].astype(bool).tolist(), part["case_id"].tolist()


def cells_frame(trials: pd.DataFrame, by: Sequence[str], policy: str, level: float = 0.95) -> pd.DataFrame:
    """One row a cell, see `Report.frame` for the columns."""
    wide = coerced_policy(trials, policy)
    looser = {}
    if wide != policy:
        found = trials.loc[trials["policy"] == wide, list(dict.fromkeys((*by, "score_success")))]
        looser = {_but_policy(by, values): part for values, part in groups(found, by)}
    needed = [c for c in dict.fromkeys((*by, *_READ)) if c in trials]
    rows = []
    for values, part in groups(read_under(trials, by, policy)[needed], by):
        row: dict[str, Any] = dict(zip(by, values, strict=True))
        row |= _cell(part, level)
        other = looser.get(_but_policy(by, values))
        row["coerced"] = row["success"] if wide == policy else _rate(_flags(other, "score_success"))
        rows.append(row)
    return pd.DataFrame(rows, columns=[*by, *CELL_COLUMNS]).astype(dict.fromkeys(COUNTS, "int64") if rows else {})


def _but_policy(by: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    return tuple(v for name, v in zip(by, values, strict=True) if name != "policy")


COUNTS = ("n_cases", "n", "missing", "ungraded", "answered", "called", "n_answer", "k")
MEANINGS: Mapping[str, str] = {
    "n_cases": "Cases with a trial that could be judged.",
    "n": "Trials that could be judged: what every rate of success is a share of.",
    "missing": "Trials that are not recorded, or that the provider failed. They are no failures.",
    "ungraded": "Trials of cases without a target.",
    "success": "Share of n that succeeded under the report's policy.",
    "ci_low": "Lower end of its interval, clustered by case.",
    "ci_high": "Upper end of its interval.",
    "strict": "Share of n that is right as written: no edit, no reading step, no coercion.",
    "repaired": "Share of n that is right with repairs, without coercion.",
    "safe": "Share of n that is right with repairs and lossless coercion.",
    "coerced": "Share of n that is right under the loosest policy that was read.",
    "naive": "Share of n that a regex for a JSON object and json.loads would have got right.",
    "answered": "Trials with an answer, graded or not.",
    "fabricated": "Share of the answered with a call that holds what the text does not say.",
    "called": "Answered trials with a call.",
    "coercion_rate": "Share of the called in which something was coerced.",
    "repair_rate": "Share of the called in which something was repaired.",
    "worst": "Success if every missing trial had failed.",
    "best": "Success if every missing trial had succeeded.",
    "noise": "How often two trials of one case disagree.",
    "distinct": "Mean share of different answers among the trials of a case.",
    "k": "Trials of a case, the most frequent number; 1 where a cell pools arms.",
    "pass_at_k": "Chance that at least one of k trials succeeds; not known where all trials are copies.",
    "pass_all_k": "Chance that all k trials succeed.",
    "n_answer": "Conversations for which a last text is wanted.",
    "answer": "Share of them that ended with it.",
    "latency_p50": "Seconds from request to end, median.",
    "latency_p95": "Seconds from request to end, exceeded by one in twenty.",
    "tokens_mean": "Tokens of an answer, mean.",
    "cost": "US dollars of all trials, all turns of a conversation together.",
    "cost_per_success": "US dollars for each success.",
    "reason": "Why trials are missing or ungraded, with counts.",
}
"""Column of a report's frame -> what it holds, in order."""
CELL_COLUMNS = tuple(MEANINGS)
_READ = (
    "case_id", "trial", "target", "raw", "outcome", "missing_reason", "score_success", "score_strict",
    "score_repaired", "score_safe", "score_naive", "score_fabricated", "score_answer", "n_calls", "n_edits",
    "n_coercions", "cost", "latency", "completion_tokens", "n_turns", "conversation_cost",
)  # fmt: skip


def coerced_policy(trials: pd.DataFrame, policy: str) -> str:
    """The policy that stands for coerced success: the first looser one that the frame holds, else the headline's."""
    held = set(trials["policy"].dropna().unique())
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
    flags = success.dropna().to_numpy(bool)
    cases = pd.factorize(judged["case_id"])[0]
    ungraded = int(((part["outcome"] == "ungraded") | (part["target"].isna() & success.isna())).sum())
    missing = len(part) - len(judged) - ungraded
    hits = int(flags.sum())
    interval = stats.clustered_interval(flags, cases, level)
    worst, best = stats.bounds(hits, len(judged), missing)
    answered = part[part["outcome"].notna() & ~part["outcome"].isin(list(MISSING))]
    cost, latency = _costs(part).dropna().astype(float), part["latency"].dropna().astype(float)
    tokens = part["completion_tokens"].dropna().astype(float)
    spent = float(cost.sum()) if len(cost) else stats.NAN
    reasons = part.loc[success.isna(), "missing_reason"].dropna().astype(str)
    ended = _flags(part, "score_answer").dropna() if "score_answer" in part else pd.Series([], dtype="boolean")
    return {
        "n_cases": len(set(cases)),
        "n": len(judged),
        "missing": missing,
        "ungraded": ungraded,
        "success": interval.rate,
        "ci_low": interval.low,
        "ci_high": interval.high,
        **{name: _rate(_flags(judged, f"score_{name}")) for name in LEVELS},
        "answered": len(answered),
        "fabricated": float(answered["score_fabricated"].fillna(False).mean()) if len(answered) else stats.NAN,
        "called": int((answered["n_calls"].fillna(0) > 0).sum()),
        "coercion_rate": _share(answered, "n_coercions"),
        "repair_rate": _share(answered, "n_edits"),
        "worst": worst,
        "best": best,
        **_repeats(judged, answered, flags, cases),
        "n_answer": len(ended),
        "answer": _rate(ended),
        "latency_p50": float(np.quantile(latency, 0.5)) if len(latency) else stats.NAN,
        "latency_p95": float(np.quantile(latency, 0.95)) if len(latency) else stats.NAN,
        "tokens_mean": float(tokens.mean()) if len(tokens) else stats.NAN,
        "cost": spent,
        "cost_per_success": spent / hits if hits else stats.NAN,
        "reason": "; ".join(f"{n} {text}" for text, n in reasons.value_counts().items()),
    }


def _costs(part: pd.DataFrame) -> pd.Series[Any]:
    """What each trial cost, all turns of a conversation together."""
    if "conversation_cost" not in part:
        return part["cost"]
    return part["cost"].where(part["n_turns"].isna(), part["conversation_cost"])


def _repeats(judged: pd.DataFrame, answered: pd.DataFrame, flags: Any, cases: Any) -> dict[str, Any]:
    """What the repetitions of a cell's cases say; nothing where a cell pools arms, whose answers are no repetitions."""
    out = {"noise": stats.NAN, "distinct": stats.NAN, "k": 1, "pass_at_k": stats.NAN, "pass_all_k": stats.NAN}
    trials = judged["trial"].to_numpy("int64", na_value=-1)
    if judged.empty or pd.DataFrame({"case": cases, "trial": trials}).duplicated().any():
        return out
    out["noise"] = stats.noise_floor(flags, cases)
    texts, asked = (pd.factorize(answered[c])[0] for c in ("raw", "case_id"))
    out["distinct"] = stats.distinct_share(texts, asked)
    k = out["k"] = int(np.bincount(np.bincount(cases)).argmax())
    if k > 1 and not stats.are_copies(texts, asked):
        out["pass_at_k"], out["pass_all_k"] = stats.pass_at_k(flags, cases, k), stats.pass_all_k(flags, cases, k)
    return out


def waterfall_frame(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """One row a cell and outcome that occurs: n and share of the cell's trials, in the order of precedence."""
    rows = []
    order = [*OUTCOMES, UNRECORDED]
    wanted = list(dict.fromkeys((*by, "outcome")))
    for values, part in groups(read_under(trials, by, policy)[wanted], by):
        counts = part["outcome"].astype("string").fillna(UNRECORDED).value_counts()
        rows += [
            {**dict(zip(by, values, strict=True)), "outcome": o, "n": int(counts[o]), "share": counts[o] / len(part)}
            for o in order
            if o in counts
        ]
    return pd.DataFrame(rows, columns=[*by, "outcome", "n", "share"])


def failures_frame(trials: pd.DataFrame, policy: str, examples: int = 3) -> pd.DataFrame:
    """Outcomes that are no success, ranked, with a detail and example trial ids."""
    columns = ["outcome", "sub_code", "detail", "trial_id"]
    part = trials.loc[(trials["policy"] == policy) & trials["outcome"].notna(), columns]
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


def _exploded(part: pd.DataFrame, column: str) -> dict[str, tuple[pd.DataFrame, int]]:
    """Key of the JSON counts -> the rows that have it, and the sum of their counts."""
    codes, texts = pd.factorize(part[column])
    counts = [json.loads(text) for text in texts]
    sizes = np.bincount(codes[codes >= 0], minlength=len(counts))
    found: dict[str, tuple[list[int], int]] = {}
    for i, here in enumerate(counts):
        for key, n in here.items():
            at, total = found.get(key, ([], 0))
            found[key] = ([*at, i], total + n * int(sizes[i]))
    return {key: (part[np.isin(codes, at)], total) for key, (at, total) in found.items()}


def codes_frame(trials: pd.DataFrame, policy: str, examples: int = 3) -> pd.DataFrame:
    """Problem codes ranked by the number of trials that have them, with the sentence and example trial ids."""
    part = trials.loc[trials["policy"] == policy, ["codes_json", "n_calls", "score_success", "trial_id"]]
    parsed = int(part["n_calls"].notna().sum())
    rows: list[dict[str, Any]] = []
    for code, (found, _) in _exploded(part, "codes_json").items():
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
    columns = ["rules_json", "score_success", "score_repaired", "n_calls", "n_valid", "trial_id"]
    part = trials.loc[trials["policy"] == policy, columns]
    rows: list[dict[str, Any]] = []
    for rule, (found, applied) in _exploded(part, "rules_json").items():
        if not rule.startswith("coerce."):
            continue
        graded = found[found["score_success"].notna()]
        before, after = graded["score_repaired"].astype(bool), graded["score_success"].astype(bool)
        valid = (graded["n_calls"] > 0) & (graded["n_valid"] == graded["n_calls"])
        rescued, wrong = int((~before & after).sum()), int((~before & ~after & valid).sum())
        rows.append(
            {
                "rule": rule,
                "lossless": RULES[rule].lossless if rule in RULES else None,
                "applied": applied,
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
