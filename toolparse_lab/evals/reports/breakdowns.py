"""Further tables of a report: the ladder of help, conversations, and rankings with one model or category left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ...errors import BadOptions
from . import stats
from .cells import check_by, groups, read_under

LADDER_COLUMNS = ("level", "success", "gain")
CONVERSATION_COLUMNS = (
    "n", "turns_mean", "stops", "n_answer", "answer", "ran", "failed", "rejected", "tokens_mean", "cost",
    "cost_per_answer",
)  # fmt: skip
LEFT_OUT_COLUMNS = ("left_out", "n", "success", "change", "rank")
EVERYTHING = "nothing"


def ladder_frame(cells: pd.DataFrame, by: Sequence[str], coerced_policy: str) -> pd.DataFrame:
    """One row a cell and level of help: naive, strict, repaired, safe and the policy that stands for coerced.

    `gain` is success less that of the level before it; the naive parser stands beside the ladder and has none. A gain
    is negative where help did harm. Rows are shares of the same judged trials.
    """
    rows: list[dict[str, Any]] = []
    for cell in cells.to_dict("records"):
        keys = {c: cell[c] for c in by}
        rows.append({**keys, "level": "naive", "success": cell["naive"], "gain": stats.NAN})
        before = 0.0
        levels = {"strict": "strict", "repaired": "repaired", "safe": "safe", coerced_policy: "coerced"}
        for level, column in levels.items():
            rows.append({**keys, "level": level, "success": cell[column], "gain": cell[column] - before})
            before = cell[column]
    return pd.DataFrame(rows, columns=[*by, *LADDER_COLUMNS])


def conversations_frame(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """One row a cell with trials of several turns, none where there are no such trials.

    n: conversations that began. turns_mean: answers in each. stops: why they ended, with counts. answer: the share that
    ended with the wanted text, of n_answer for which one is wanted. ran, failed, rejected: calls. tokens_mean and cost
    (US dollars) are of all turns; NaN where they are not known of every turn.
    """
    held = read_under(trials, by, policy)
    held = held[held["n_turns"].fillna(0) > 0] if "n_turns" in held else held.head(0)
    rows = []
    for values, part in groups(held, by):
        ended = part["score_answer"].astype("boolean").dropna()
        tokens, cost = (part[c].astype("Float64") for c in ("conversation_tokens", "conversation_cost"))
        spent = float(cost.sum()) if cost.notna().all() else stats.NAN
        stops = part["stop"].dropna().astype(str).value_counts()
        rows.append(
            {
                **dict(zip(by, values, strict=True)),
                "n": len(part),
                "turns_mean": float(part["n_turns"].mean()),
                "stops": ", ".join(f"{stop} {n}" for stop, n in stops.items()),
                "n_answer": len(ended),
                "answer": float(ended.mean()) if len(ended) else stats.NAN,
                **{name: int(part[f"n_{name}"].fillna(0).sum()) for name in ("ran", "failed", "rejected")},
                "tokens_mean": float(tokens.mean()) if tokens.notna().all() else stats.NAN,
                "cost": spent,
                "cost_per_answer": spent / int(ended.sum()) if ended.any() else stats.NAN,
            }
        )
    return pd.DataFrame(rows, columns=[*by, *CONVERSATION_COLUMNS])


def leave_one_out_frame(trials: pd.DataFrame, of: str, over: str, policy: str) -> pd.DataFrame:
    """How the values of a column rank with each value of another one left out: is the order one model's doing?

    One row a value of `of` and a value left out of `over` (first "nothing", all trials): n, success, its change, and
    the rank by success (1 is best, equals share the better rank). Raises BadOptions for columns the frame lacks.
    """
    if of == over:
        raise BadOptions("what is ranked cannot be what is left out", got=of)
    check_by(trials, [of, over])
    judged = trials.loc[(trials["policy"] == policy) & trials["score_success"].notna(), [of, over, "score_success"]]
    texts = {c: judged[c].astype("string").fillna("") for c in (of, over)}
    values = judged["score_success"].astype(bool).astype(float).groupby([texts[of], texts[over]], sort=False)
    hits, sizes = (x.unstack(fill_value=0) for x in (values.sum(), values.size().astype(float)))
    rates: dict[str, tuple[Any, Any]] = {}
    for left in (EVERYTHING, *hits.columns):
        rest = [c for c in hits.columns if left == EVERYTHING or c != left]
        rates[left] = (hits[rest].sum(axis="columns"), sizes[rest].sum(axis="columns"))
    rows = []
    for left, (right, n) in rates.items():
        share = (right / n.where(n > 0)).astype(float)
        ranks = share.rank(ascending=False, method="min")
        rows += [
            {
                of: name,
                "left_out": left,
                "n": int(n[name]),
                "success": float(share[name]),
                "change": float(share[name] - rates[EVERYTHING][0][name] / rates[EVERYTHING][1][name]),
                "rank": ranks[name],
            }
            for name in hits.index
        ]
    frame = pd.DataFrame(rows, columns=[of, *LEFT_OUT_COLUMNS])
    return frame.astype({"rank": "Int64"})


def leader_sentence(frame: pd.DataFrame, of: str, over: str) -> str:
    """Whether the same value leads whatever is left out, in one sentence; '' where there is nothing to leave out."""
    leaders: Mapping[str, list[str]] = {
        str(left): part.loc[part["rank"] == 1, of].astype(str).tolist()
        for left, part in frame.groupby("left_out", sort=False)
    }
    first = leaders.get(EVERYTHING, [])
    if len(leaders) < 3 or not first:
        return ""
    others = [left for left, names in leaders.items() if left != EVERYTHING and names != first]
    named = " and ".join(first)
    verb = "leads" if len(first) == 1 else "lead together"
    if not others:
        return f"{named} {verb} whichever {over.replace('_', ' ')} is left out."
    return f"{named} {verb} over all, but not without {', or without '.join(others)}."
