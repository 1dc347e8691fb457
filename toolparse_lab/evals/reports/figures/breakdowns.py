"""Further tables of a report: the ladder of help, conversations, and rankings with one model or
category left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ....core.errors import BadOptions
from . import stats
from .cells import check_by, groups, read_under

LADDER_COLUMNS = ("level", "success", "gain")
CONVERSATION_COLUMNS = (
    "n", "turns_mean", "stops", "n_answer", "answer", "ran", "failed", "rejected", "tokens_mean",
    "cost", "cost_per_answer",
)  # fmt: skip
LEFT_OUT_COLUMNS = ("left_out", "n", "success", "change", "rank")
EVERYTHING = "nothing"


def ladder_frame(cells: pd.DataFrame, by: Sequence[str], coerced_policy: str) -> pd.DataFrame:
    """Return one row per cell and level of help: naive, strict, repaired, safe and the policy that
    stands for coerced.

    `gain` is success less that of the level before it. The naive parser stands beside the ladder
    and has none. A gain is negative where help did harm. Rows are shares of the same judged trials.
    """
    rows: list[dict[str, Any]] = []
    for cell in cells.to_dict("records"):
        keys = {c: cell[c] for c in by}
        rows.append({**keys, "level": "naive", "success": cell["naive"], "gain": stats.NAN})
        # Each level includes the help of those before it, so that gains add up to the last.
        before = 0.0
        levels = {
            "strict": "strict",
            "repaired": "repaired",
            "safe": "safe",
            coerced_policy: "coerced",
        }
        for level, column in levels.items():
            rows.append(
                {**keys, "level": level, "success": cell[column], "gain": cell[column] - before}
            )
            before = cell[column]
    return pd.DataFrame(rows, columns=[*by, *LADDER_COLUMNS])


def conversations_frame(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """Return one row per cell with trials of several turns, none if there are no such trials.

    n: conversations that began. turns_mean: answers in each. stops: why they ended, with counts.
    answer: the share that ended with the wanted text, of n_answer for which one is wanted. ran,
    failed, rejected: calls. tokens_mean and cost (US dollars) are of all turns. They are NaN if
    they are unknown of every turn.
    """
    part = read_under(trials, by, policy)
    part = part[part["n_turns"].fillna(0) > 0] if "n_turns" in part else part.head(0)
    rows = [
        {**dict(zip(by, values, strict=True)), **_conversations(cell)}
        for values, cell in groups(part, by)
    ]
    return pd.DataFrame(rows, columns=[*by, *CONVERSATION_COLUMNS])


def verdicts_frame(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """Return one row per cell and verdict that came in it, with n, the number of its answers."""
    rows: list[dict[str, Any]] = []
    if "verdict" in trials:
        for values, cell in groups(read_under(trials, by, policy), by):
            counts = cell["verdict"].dropna().astype(str).value_counts()
            keys = dict(zip(by, values, strict=True))
            rows += [{**keys, "verdict": word, "n": int(n)} for word, n in counts.items()]
    return pd.DataFrame(rows, columns=[*by, "verdict", "n"])


def _conversations(part: pd.DataFrame) -> dict[str, Any]:
    answers = part["score_answer"].astype("boolean").dropna()
    tokens, cost = (part[c].astype("Float64") for c in ("conversation_tokens", "conversation_cost"))
    # A sum over the turns that happen to be known would look like less than was spent.
    spent = float(cost.sum()) if cost.notna().all() else stats.NAN
    stops = part["stop"].dropna().astype(str).value_counts()
    return {
        "n": len(part),
        "turns_mean": float(part["n_turns"].mean()),
        "stops": ", ".join(f"{stop} {n}" for stop, n in stops.items()),
        "n_answer": len(answers),
        "answer": float(answers.mean()) if len(answers) else stats.NAN,
        "ran": int(part["n_ran"].fillna(0).sum()),
        "failed": int(part["n_failed"].fillna(0).sum()),
        "rejected": int(part["n_rejected"].fillna(0).sum()),
        "tokens_mean": float(tokens.mean()) if tokens.notna().all() else stats.NAN,
        "cost": spent,
        "cost_per_answer": spent / int(answers.sum()) if answers.any() else stats.NAN,
    }


def leave_one_out_frame(trials: pd.DataFrame, of: str, over: str, policy: str) -> pd.DataFrame:
    """Rank the values of one column with each value of another left out: is the order the doing of
    one model?

    One row per value of `of` and a value left out of `over` (first "nothing", all trials): n,
    success, its change, and the rank by success (1 is best, equals share the better rank). Raises
    BadOptions for columns the frame lacks.
    """
    if of == over:
        raise BadOptions("what is ranked cannot be what is left out", got=of)
    check_by(trials, [of, over])
    hits, sizes, counts = _counts(trials[trials["policy"] == policy], of, over)
    everything = (hits.sum(axis="columns") / sizes.sum(axis="columns")).astype(float)
    rows: list[dict[str, Any]] = []
    for value in dict.fromkeys((EVERYTHING, *hits.columns)):
        rest = [c for c in hits.columns if value == EVERYTHING or c != value]
        n, cases = (table[rest].sum(axis="columns") for table in (counts, sizes))
        # A rate of no trials is not known, and has no rank.
        share = (hits[rest].sum(axis="columns") / cases.where(cases > 0)).astype(float)
        ranks = share.rank(ascending=False, method="min")
        rows += [
            {
                of: name,
                "left_out": value,
                "n": int(n[name]),
                "success": float(share[name]),
                "change": float(share[name] - everything[name]),
                "rank": ranks[name],
            }
            for name in hits.index
        ]
    frame = pd.DataFrame(rows, columns=[of, *LEFT_OUT_COLUMNS])
    return frame.astype({"rank": "Int64"})


def _counts(
    trials: pd.DataFrame, of: str, over: str
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    # (sum of the cases' rates, cases, judged trials) of each value of `of`, a row, and of `over`, a
    # column.
    judged = trials.loc[trials["score_success"].notna(), [of, over, "case_id", "score_success"]]
    keys = [judged[c].astype("string").fillna("") for c in (of, over)]
    # Each case counts once, as in a report's success.
    each = [*keys, judged["case_id"].astype(object)]
    rates = (
        judged["score_success"]
        .astype(bool)
        .astype(float)
        .groupby(each, sort=False, observed=True)
        .mean()
    )
    cases = rates.groupby(level=[0, 1], sort=False)
    trial_counts = judged.groupby(keys, sort=False, observed=True).size()
    sums, sizes, counts = (
        series.astype(float).unstack(fill_value=0)
        for series in (cases.sum(), cases.size(), trial_counts)
    )
    return sums, sizes, counts


def leader_sentence(frame: pd.DataFrame, of: str, over: str) -> str:
    """Say in one sentence which value leads, and the parts that it cannot be without. '' if there
    is nothing to leave out.
    """
    leaders: Mapping[str, list[str]] = {
        str(value): part.loc[part["rank"] == 1, of].astype(str).tolist()
        for value, part in frame.groupby("left_out", sort=False, observed=True)
    }
    first = leaders.get(EVERYTHING, [])
    # All of it and one value left out are the same order twice.
    if len(leaders) < 3 or not first:
        return ""
    others = [v for v, names in leaders.items() if v != EVERYTHING and names != first]
    verb = "leads" if len(first) == 1 else "lead together"
    subject = f"{' and '.join(first)} {verb}"
    if not others:
        return f"{subject} whichever {over.replace('_', ' ')} is left out."
    return f"{subject} over all, but not without {', or without '.join(others)}."
