"""What a report breaks its trials down by: outcomes, failures, problem codes, verdicts, rules,
conversations, cases that flip, and rankings with one model or category left out, or values compared
less strictly; and in which sampling parameters groups of them differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ....core.errors import BadOptions
from ....core.rules import CODES, RULES
from ....core.types import BLAME_CODES, LAYERS
from ....core.values import write_canonical
from ....core.values.printable import counted
from ....runner.exchange.details import SAMPLING, is_same_model
from ...cases.matchers import STRICTNESS
from ...frames.account import causes
from ...scoring.outcomes import MISSING, OUTCOMES
from ...scoring.rescues import is_recovery
from . import stats
from .cells import UNRECORDED, check_by, groups, read_under

CONVERSATION_COLUMNS = (
    "n", "turns_mean", "stops", "n_answer", "answer", "ran", "failed", "rejected", "tokens_mean",
    "cost", "cost_per_answer",
)  # fmt: skip
"""The sub-code of `failures_frame` for a call that breaks its schema in an answer without a
target."""
LEFT_OUT_COLUMNS = ("left_out", "n", "success", "change", "rank")
SENSITIVITY_COLUMNS = ("matching", "n", "success", "ci_low", "ci_high", "gain")
EVERYTHING = "nothing"
_RESCUES = (
    "rule", "stage", "lossless", "applied", "trials", "rescued", "false_rescues",
    "false_rescue_rate", "harmed", "values_right", "values_wrong", "meaning", "trial_ids",
)  # fmt: skip
_NOT_SENT = "not sent"
_NAMED = 3  # groups that are named
_EXAMPLES = 3  # ids of trials
Judged: TypeAlias = list[dict[str, list[int]]]
"""Of each trial: rule -> (values that are right, values that are wrong)."""


def waterfall_frame(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """Return one row per cell and outcome that occurs: n and share of the cell's trials, in the
    order of precedence.
    """
    rows = []
    for values, part in groups(read_under(trials, by, policy, (*by, "outcome")), by):
        keys = dict(zip(by, values, strict=True))
        counts = part["outcome"].astype("string").fillna(UNRECORDED).value_counts()
        for outcome in (*OUTCOMES, UNRECORDED):
            if outcome in counts:
                n = int(counts[outcome])
                rows.append({**keys, "outcome": outcome, "n": n, "share": n / len(part)})
    return pd.DataFrame(rows, columns=[*by, "outcome", "n", "share"])


def failures_frame(trials: pd.DataFrame, policy: str) -> pd.DataFrame:
    """Return the failures by outcome and cause, ranked, with a detail and example trial ids. See
    `outcomes.cause_of`; the sub-code is the cause where it says more than the outcome.
    """
    part = trials.loc[(trials["policy"] == policy) & trials["outcome"].notna()]
    part = part.assign(cause=causes(part))
    columns = ["outcome", "cause", "detail", "trial_id"]
    rows: list[dict[str, Any]] = []
    for (outcome, cause), cases in groups(part.loc[part["cause"] != "", columns], columns[:2]):
        example = str(cases["detail"].iloc[0])
        if cause in CODES and outcome == "ungraded":
            example = CODES[cause].sentence
        sub_code = "" if cause == outcome else cause
        row = {"outcome": outcome, "sub_code": sub_code, "example": example}
        rows.append(row | _share_of(cases, len(part)))
    return _ranked(rows, ["outcome", "sub_code"], "example")


def layers_frame(trials: pd.DataFrame, policy: str) -> pd.DataFrame:
    """Return the layers that broke answers, ranked: with what was found, n, the share of all
    answers with a verdict, and example trial ids.

    No rows where every fault is the model's, and none for a frame of an older version.
    """
    rows: list[dict[str, Any]] = []
    if {"blame_layer", "blame_code"} <= {*trials.columns}:
        words = ["blame_layer", "blame_code", "trial_id"]
        part = trials.loc[(trials["policy"] == policy) & trials["blame_layer"].notna(), words]
        for (layer, found), cases in groups(part, words[:2]):
            if layer != "none":
                meaning = BLAME_CODES.get(found) or LAYERS.get(layer, "")
                row = {"layer": layer, "found": found, "meaning": meaning}
                rows.append(row | _share_of(cases, len(part)))
    if all(row["layer"] == "model" for row in rows):
        rows = []
    return _ranked(rows, ["layer", "found"], "meaning")


def codes_frame(trials: pd.DataFrame, policy: str) -> pd.DataFrame:
    """Return the problem codes, ranked by the number of trials that have them, with the sentence
    and example trial ids.
    """
    part = trials.loc[
        trials["policy"] == policy, ["codes_json", "n_calls", "score_success", "trial_id"]
    ]
    parsed = int(part["n_calls"].notna().sum())
    rows: list[dict[str, Any]] = []
    for code, (cases, _) in _exploded(part, "codes_json").items():
        successes = cases["score_success"].astype("boolean").dropna()
        row = {
            "code": code,
            "success": float(successes.mean()) if len(successes) else stats.NAN,
            "meaning": CODES[code].sentence if code in CODES else "",
        }
        rows.append(row | _share_of(cases, parsed))
    return _ranked(rows, ["code"], "success", "meaning")


def _share_of(cases: pd.DataFrame, whole: int) -> dict[str, Any]:
    return {"n": len(cases), "share": len(cases) / whole, "trial_ids": _first_ids(cases)}


def _ranked(rows: list[dict[str, Any]], names: list[str], *figures: str) -> pd.DataFrame:
    # Most frequent first, else by name.
    rows.sort(key=lambda row: (-row["n"], *(row[name] for name in names)))
    return pd.DataFrame(rows, columns=[*names, "n", "share", *figures, "trial_ids"])


def _exploded(part: pd.DataFrame, column: str) -> dict[str, tuple[pd.DataFrame, int]]:
    # Key of the JSON counts -> the rows that have it, and the sum of their counts. Many rows have
    # the same few texts, and each is read once.
    codes, texts = pd.factorize(part[column])
    counts = [json.loads(text) for text in texts]
    sizes = np.bincount(codes[codes >= 0], minlength=len(counts))
    texts_with: dict[str, list[int]] = {}
    totals: dict[str, int] = {}
    for i, counts_of_text in enumerate(counts):
        for key, n in counts_of_text.items():
            texts_with.setdefault(key, []).append(i)
            totals[key] = totals.get(key, 0) + n * int(sizes[i])
    return {key: (part[np.isin(codes, at)], totals[key]) for key, at in texts_with.items()}


def _first_ids(part: pd.DataFrame) -> str:
    return ", ".join(part["trial_id"].astype(str).head(_EXAMPLES))


def verdicts_frame(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """Return one row per cell and verdict that came in it, with n, the number of its answers."""
    rows: list[dict[str, Any]] = []
    if "verdict" in trials:
        for values, cell in groups(read_under(trials, by, policy, (*by, "verdict")), by):
            counts = cell["verdict"].dropna().astype(str).value_counts()
            keys = dict(zip(by, values, strict=True))
            rows += [{**keys, "verdict": word, "n": int(n)} for word, n in counts.items()]
    return pd.DataFrame(rows, columns=[*by, "verdict", "n"])


def rescues_frame(trials: pd.DataFrame, policy: str) -> pd.DataFrame:
    """Return the rules that changed something, one row each: how often each was applied and the
    outcome of it.

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
    stages = {"coerce": "coercion", "read": "reading", "call": "recovery"}
    rows: list[dict[str, Any]] = []
    for column in ("rules_json", "codes_json"):
        for rule, (cases, applied) in _exploded(part, column).items():
            if column == "codes_json" and not is_recovery(rule):
                continue
            entry = RULES.get(rule) or CODES.get(rule)
            rows.append(
                {
                    "rule": rule,
                    "stage": stages.get(rule.split(".")[0], "repair"),
                    "lossless": entry.lossless if entry is not None else None,
                    "applied": applied,
                    "trials": len(cases),
                    **_came_of(rule, cases, judged),
                    "meaning": entry.sentence if entry is not None else "",
                    "trial_ids": _first_ids(cases),
                }
            )
    rows.sort(key=lambda r: (-r["trials"], r["rule"]))
    return pd.DataFrame(rows, columns=list(_RESCUES))


def _came_of(rule: str, cases: pd.DataFrame, judged: Judged | None) -> dict[str, Any]:
    # judged: rule -> (right, wrong) of each trial, by the index of `cases`, or None if nothing was
    # judged at its place, so that each value counts as its answer does.
    graded = cases["score_success"].notna().to_numpy(dtype=bool)
    after = cases["score_success"].fillna(False).to_numpy(dtype=bool)
    if judged is None:
        counts = [(int(success), int(not success)) for success in after]
    else:
        counts = [judged[i].get(rule, (0, 0)) for i in cases.index]
    right, wrong = np.array(counts, dtype=int).reshape(-1, 2).T

    level = "score_repaired" if rule.startswith("coerce.") else "score_strict"
    before = cases[level].fillna(False).to_numpy(dtype=bool)
    # Made valid: every call keeps its schema, whether or not it is what was wanted.
    n_calls, n_valid = cases["n_calls"].fillna(0), cases["n_valid"].fillna(0)
    valid = ((n_calls > 0) & (n_valid == n_calls)).to_numpy(dtype=bool)

    rescued = int((graded & ~before & after).sum())
    false = int((graded & ~before & ~after & valid & (wrong > 0)).sum())
    return {
        "rescued": rescued,
        "false_rescues": false,
        "false_rescue_rate": false / (rescued + false) if rescued + false else stats.NAN,
        "harmed": int((graded & before & ~after).sum()),
        "values_right": int(right.sum()),
        "values_wrong": int(wrong.sum()),
    }


def flip_grid_frame(
    headline: pd.DataFrame, by: Sequence[str], name_of: Callable[[Mapping[Any, Any]], str]
) -> pd.DataFrame:
    """Return one row per case that flips, and in a column per cell the share of its trials that
    succeeded, NaN where none was judged.

    A case flips if most of its trials succeed in one cell and most fail in another. Cases on which
    the cells differ most come first. name_of: the name of a cell, called with its columns of `by`.
    """
    judged = headline[headline["score_success"].notna()]
    shares: dict[str, pd.Series[Any]] = {}
    for keys, part in judged.groupby(list(by), sort=False, dropna=False, observed=True):
        values = keys if isinstance(keys, tuple) else (keys,)
        success = part["score_success"].astype(float)
        shares[name_of(dict(zip(by, values, strict=True)))] = success.groupby(
            part["case_id"].astype("string"), observed=True
        ).mean()
    grid = pd.DataFrame(shares)
    flips = grid[(grid.max(axis=1) > 0.5) & (grid.min(axis=1) < 0.5)]
    # A stable sort, so that equal cases are in the order of their ids.
    order = (flips.mean(axis=1) - 0.5).abs().sort_values(kind="stable").index
    return flips.loc[order].rename_axis("case_id").reset_index()


def conversations_frame(trials: pd.DataFrame, by: Sequence[str], policy: str) -> pd.DataFrame:
    """Return one row per cell with trials of several turns, none if there are no such trials.

    n: conversations that began. turns_mean: answers in each. stops: why they ended, with counts.
    answer: the share that ended with the wanted text, of n_answer for which one is wanted. ran,
    failed, rejected: calls. tokens_mean and cost (US dollars) are of all turns. They are NaN if
    they are unknown of every turn.
    """
    # Before the policy, since most frames have no such trials at all.
    trials = trials[trials["n_turns"].fillna(0) > 0] if "n_turns" in trials else trials.head(0)
    trials = read_under(trials, by, policy)
    rows: list[dict[str, Any]] = []
    for values, part in groups(trials, by):
        answers = part["score_answer"].astype("boolean").dropna()
        tokens, cost = (
            part[c].astype("Float64") for c in ("conversation_tokens", "conversation_cost")
        )
        # A sum over the turns that happen to be known would look like less than was spent.
        spent = float(cost.sum()) if cost.notna().all() else stats.NAN
        stops = part["stop"].dropna().astype(str).value_counts()
        rows.append(
            {
                **dict(zip(by, values, strict=True)),
                "n": len(part),
                "turns_mean": float(part["n_turns"].mean()),
                "stops": ", ".join(f"{stop} {n}" for stop, n in stops.items()),
                "n_answer": len(answers),
                "answer": float(answers.mean()) if len(answers) else stats.NAN,
                **{c: int(part[f"n_{c}"].fillna(0).sum()) for c in ("ran", "failed", "rejected")},
                "tokens_mean": float(tokens.mean()) if tokens.notna().all() else stats.NAN,
                "cost": spent,
                "cost_per_answer": spent / int(answers.sum()) if answers.any() else stats.NAN,
            }
        )
    return pd.DataFrame(rows, columns=[*by, *CONVERSATION_COLUMNS])


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
    judged = trials.loc[
        (trials["policy"] == policy) & trials["score_success"].notna(),
        [of, over, "case_id", "score_success"],
    ]
    keys = [judged[c].astype("string").fillna("") for c in (of, over)]
    # Each case counts once, as in a report's success.
    each = [*keys, judged["case_id"].astype(object)]
    success = judged["score_success"].astype(bool).astype(float)
    rates = success.groupby(each, sort=False, observed=True).mean()
    cases = rates.groupby(level=[0, 1], sort=False)
    trial_counts = judged.groupby(keys, sort=False, observed=True).size()
    # Of each value of `of`, a row, and of `over`, a column.
    hits, sizes, counts = (
        series.astype(float).unstack(fill_value=0)
        for series in (cases.sum(), cases.size(), trial_counts)
    )
    everything = (hits.sum(axis="columns") / sizes.sum(axis="columns")).astype(float)
    rows: list[dict[str, Any]] = []
    for value in dict.fromkeys((EVERYTHING, *hits.columns)):
        rest = [c for c in hits.columns if value == EVERYTHING or c != value]
        n, n_cases = (table[rest].sum(axis="columns") for table in (counts, sizes))
        # A rate of no trials is not known, and has no rank.
        share = (hits[rest].sum(axis="columns") / n_cases.where(n_cases > 0)).astype(float)
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


def leader_sentence(frame: pd.DataFrame, of: str, over: str) -> str:
    """Say in one sentence which value leads, and which part has to be there for it to lead. '' if
    there is nothing to leave out.
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


def sensitivity_frame(
    trials: pd.DataFrame,
    by: Sequence[str],
    policy: str,
    level: float = 0.95,
    clusters: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Return success of each cell under each strictness of the comparison: one row per cell and
    level, `gain` against the first level. Empty for a frame without the column `matching`.
    """
    rows: list[dict[str, Any]] = []
    if "matching" in trials:
        part = read_under(trials, by, policy, (*by, "case_id", "matching", "score_success"))
        for values, cell in groups(part[part["score_success"].notna()], by):
            # A level lets everything pass that a stricter one does.
            strictest = cell["matching"].astype("string").fillna("").to_numpy()
            cases = cell["case_id"].tolist()
            passing = np.zeros(len(cell), dtype=bool)
            first: float | None = None
            for name in STRICTNESS:
                passing |= strictest == name
                interval = stats.clustered_interval(passing.tolist(), cases, level, clusters)
                first = interval.rate if first is None else first
                rows.append(
                    {
                        **dict(zip(by, values, strict=True)),
                        "matching": name,
                        "n": len(cell),
                        "success": interval.rate,
                        "ci_low": interval.low,
                        "ci_high": interval.high,
                        "gain": interval.rate - first,
                    }
                )
    return pd.DataFrame(rows, columns=[*by, *SENSITIVITY_COLUMNS])


def asked_models(part: pd.DataFrame) -> pd.Series[Any]:
    """Return the model string that each row was asked of, else its model's name."""
    models = part["model"].astype("string")
    if "model_name" not in part:
        return models
    return part["model_name"].astype("string").fillna(models)


def strangers(part: pd.DataFrame) -> pd.Series[Any]:
    """Return which rows were answered by another model than the one that was asked."""
    if "served_model" not in part:
        return pd.Series(False, index=part.index)
    pairs = pd.DataFrame(
        {"asked": asked_models(part), "served": part["served_model"].astype("string")}
    ).fillna("")
    known = {
        (asked, served): bool(served) and not is_same_model(asked, served)
        for asked, served in pairs.drop_duplicates().itertuples(index=False, name=None)
    }
    flags = [known[pair] for pair in pairs.itertuples(index=False, name=None)]
    return pd.Series(flags, index=part.index, dtype=bool)


def _served_counts(part: pd.DataFrame) -> dict[str, dict[str, int]]:
    # Model -> the names under which it answered -> answers.
    if "served_model" not in part:
        return {}
    rows = part[["model", "served_model"]].dropna().astype(str)
    found = Counter(rows.itertuples(index=False, name=None))
    counts: dict[str, dict[str, int]] = {}
    for (model, served), n in found.most_common():
        counts.setdefault(model, {})[served] = n
    return counts


def served_notes(part: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each model in whose place another one answered, or whose alias stood for
    several versions.
    """
    other = strangers(part)
    for model, served in _served_counts(part).items():
        of_model = part["model"].astype("string") == model
        answered = of_model & part["outcome"].notna() & ~part["outcome"].isin(list(MISSING))
        n, total = int((other & of_model).sum()), int(answered.sum())
        names = ", ".join(f"{name} {count}" for name, count in served.items())
        if n == total and len(served) == 1:
            name = next(iter(served))
            yield f"All answers of {model} name {name}: an alias, or another model."
        elif n:
            yield (
                f"{n} of {counted(total, 'answer')} of {model} name another model than the one "
                f"that was asked ({names}): its figures are theirs too."
            )
        elif len(served) > 1:
            yield f"{model} was answered by several versions ({names}): its alias moved."


def endpoint_notes(part: pd.DataFrame, names: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield a sentence for each model that was asked at several paths. names: groups of rows."""
    if "endpoint" not in part:
        return
    of_models: dict[str, dict[str, list[str]]] = {
        model: {} for model in part["model"].dropna().astype(str).unique()
    }
    for name, rows in names.items():
        asked = rows[["model", "endpoint"]].dropna().drop_duplicates().astype(str)
        for model, path in asked.itertuples(index=False):
            if model in of_models:
                of_models[model].setdefault(path, []).append(name)
    for model, paths in of_models.items():
        if len(paths) > 1:
            places = ", ".join(f"{path} for {_listed(cells)}" for path, cells in paths.items())
            yield f"{model} was not asked at one endpoint: {places}."


def _listed(names: list[str]) -> str:
    if len(names) > _NAMED:
        names = [*names[: _NAMED - 1], f"{len(names) - _NAMED + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def moved_notes(sides: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield a sentence for each model that answered under other names in one of these groups than
    in another.
    """
    served = {name: _served_counts(part) for name, part in sides.items()}
    models = dict.fromkeys(model for of_side in served.values() for model in of_side)
    for model in models:
        names = {side: of_side[model] for side, of_side in served.items() if model in of_side}
        if len(names) > 1 and len({frozenset(found) for found in names.values()}) > 1:
            places = ", ".join(f"{' and '.join(found)} in {side}" for side, found in names.items())
            yield f"{model} is not the same model in both: {places}. Its alias moved."


def sampling_differences(groups: Mapping[str, pd.DataFrame], *, within: bool = False) -> str:
    """Return the sampling parameters, as they were really sent, in which these groups of trials
    differ, '' if there is none.

    groups: rows of a trials frame by name. Groups without a record of their sampling are left out.
    within: also parameters in which the trials of one group differ.
    """
    values = {name: found for name, part in groups.items() if (found := _sampling(part))}
    clauses = []
    names = {param for found in values.values() for param in found} - {""}
    for param in sorted(names, key=lambda name: (name not in SAMPLING, name)):
        by_value: dict[str, list[str]] = {}
        for name, found in values.items():
            by_value.setdefault(found.get(param, _NOT_SENT), []).append(name)
        if len(by_value) > 1 or (within and any(" and " in value for value in by_value)):
            places = []
            for value, groups_of_it in by_value.items():
                places.append(f"{value} in {_listed(groups_of_it)}")
            clauses.append(f"{param} is {', '.join(places)}")
    return "; ".join(clauses)


def _sampling(part: pd.DataFrame) -> dict[str, str]:
    # Parameter -> its values. Empty without a record.
    if "sampling_json" not in part:
        return {}
    columns = ["sampling_json", "trial"] if "trial" in part else ["sampling_json"]
    rows = part[columns].dropna(subset=["sampling_json"]).drop_duplicates()
    samplings = []
    for row in rows.itertuples(index=False):
        sampling = dict(_read_sampling(str(row[0])))
        # Seeds go up with the trial, so what counts of them is the seed of trial 0.
        seed = sampling.get("seed")
        if isinstance(seed, int) and len(columns) > 1 and not pd.isna(row[1]):
            sampling["seed"] = seed - int(row[1])
        samplings.append(sampling)

    def text(sampling: dict[str, Any], name: str) -> str:
        if name not in sampling:
            return _NOT_SENT
        value = sampling[name]
        # 0 and 0.0 are one setting.
        whole = isinstance(value, float) and value.is_integer()
        return write_canonical(int(value) if whole else value)

    names = {name for sampling in samplings for name in sampling}
    values = {name: " and ".join(sorted({text(s, name) for s in samplings})) for name in names}
    return values or ({"": ""} if samplings else {})


@lru_cache(maxsize=1024)
def _read_sampling(text: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(text)
    return read
