"""A trials frame cell by cell: its checks and groups, and the rates of each cell with intervals, as
a frame or as a matrix of two columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ....core import hooks
from ....core.errors import BadOptions, UnknownName, near
from ....core.types import EXECUTABLE
from ...frames.account import causes
from ...scoring.outcomes import MISSING
from . import stats

LEVELS = ("strict", "repaired", "safe", "naive")
# The first of these that was read gives coerced success.
COERCED_POLICIES = ("middleware", "go-strconv", "lossy")
# What a frame must have; a frame from elsewhere may lack the others.
REQUIRED = (
    "trial_id", "case_id", "trial", "model", "prompt_protocol", "policy", "target", "raw",
    "outcome", "sub_code", "detail", "missing_reason", "score_success", "score_strict",
    "score_repaired", "score_safe", "score_naive", "score_fabricated", "n_calls", "n_ok", "n_valid",
    "n_edits", "n_coercions", "codes_json", "rules_json", "cost", "latency", "completion_tokens",
)  # fmt: skip
READ = (
    *REQUIRED, "run_id", "arm", "parse_protocol", "parse_version", "category", "input",
    "tools_json", "tool_choice", "score_answer", "score_corrected", "matching", "n_turns", "stop",
    "n_ran", "n_failed", "n_rejected", "verdict", "rescues_json", "conversation_tokens",
    "conversation_cost", "sampling_json", "endpoint", "served_model", "model_name", "override",
    "error", "error_code", "blame_layer", "blame_code", "tokens_estimate",
)  # fmt: skip
"""The columns of a trials frame that a report reads. It has the others of single trials by
`Report.rows`."""
UNRECORDED = "not recorded"
ANSWER_KINDS = (
    "clean", "repaired", "unchecked", "invalid", "refused", "truncated", "echoed",
    "looks like a call", "text",
)  # fmt: skip
"""What an answer is, whatever was wanted of it: the worst verdict of its calls, or a text with or
without something that looks like a call and is none."""
CALL_KINDS = ANSWER_KINDS[:7]
"""Those of them that are verdicts on a call."""
QUESTION = ("input", "tools_json", "tool_choice", "target")
"""Columns that say what was asked."""


def check_trials(trials: pd.DataFrame) -> None:
    """Raise BadOptions if a trials frame has not the columns that reports read."""
    if not isinstance(trials, pd.DataFrame):
        raise BadOptions(
            "a report is made from a trials frame",
            got=type(trials).__name__,
            expected="a DataFrame",
        )
    if lacking := [c for c in REQUIRED if c not in trials]:
        raise BadOptions(
            f"the trials frame lacks columns: {', '.join(lacking)}",
            got=", ".join(map(str, trials)) or "no columns",
            expected="the columns of trials_frame()",
            hint="make it with run.trials_df() or evals.frames.recorded.trials_frame",
        )


def check_by(trials: pd.DataFrame, by: Sequence[str]) -> tuple[str, ...]:
    """Return `by` as a tuple of columns of the frame. Raises UnknownName for a name it lacks."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise BadOptions(
            "a report has at least one column to go by",
            got="none",
            expected="model, prompt_protocol, …",
        )
    if lacking := [n for n in names if n not in trials]:
        raise UnknownName(
            "no such column to go by",
            got=", ".join(map(str, lacking)),
            expected=", ".join(map(str, trials)),
            hint=near(lacking[0], trials),
            code="unknown-column",
        )
    return names


def check_once(trials: pd.DataFrame, by: Sequence[str] = ()) -> None:
    """Raise BadOptions if one trial is there twice, within the columns of `by`: it would count
    twice.
    """
    # One answer read under two policies, or as two protocols, is two rows and no repetition.
    names = [c for c in dict.fromkeys((*by, "policy", "parse_protocol", "trial_id")) if c in trials]
    rows = trials.loc[trials["trial_id"].notna(), names]
    again = rows[rows.duplicated()]
    if len(again):
        raise BadOptions(
            f"{len(again)} of {len(trials)} rows are trials that the frame holds already, and "
            "would be counted twice",
            got=str(again["trial_id"].iloc[0]),
            expected="each trial_id once",
            hint="drop_duplicates('trial_id'), or go by= a column that tells the rows apart",
        )


def groups(
    trials: pd.DataFrame, by: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Yield (values of `by` as text, rows) for every combination, in order of first appearance."""
    if trials.empty:
        return
    # Numbers in the place of texts: the texts of a million rows would take seconds to compare.
    codes, texts = zip(*(codes_of(trials[name]) for name in by), strict=True)
    numbers = codes[0]
    for own, words in zip(codes[1:], texts[1:], strict=True):
        # Numbered anew at each column, since the product of many wide ones exceeds 64 bits.
        numbers, _ = pd.factorize(numbers * len(words) + own)
    numbers, _ = pd.factorize(numbers)
    order = np.argsort(numbers, kind="stable")
    ends = np.flatnonzero(np.diff(numbers[order])) + 1
    for rows in np.split(order, ends):
        names = zip(codes, texts, strict=True)
        yield tuple([words[own[rows[0]]] for own, words in names]), trials.iloc[rows]


def codes_of(column: pd.Series[Any]) -> tuple[Any, list[str]]:
    """Return (code of each row, text of each code). Code 0 is for what is missing, which is ''."""
    codes, values = pd.factorize(column)
    texts = pd.Series(values).astype("string").fillna("").tolist()
    # One code a text: an empty one is missing, too.
    places = {text: place for place, text in enumerate(dict.fromkeys(["", *texts]))}
    return np.array([*(places[text] for text in texts), 0])[codes], list(places)


def policies_of(trials: pd.DataFrame) -> list[str]:
    """Return the policies under which trials of the frame were read, in alphabetical order."""
    return sorted(map(str, trials["policy"].dropna().unique()))


def read_under(
    trials: pd.DataFrame, by: Sequence[str], policy: str, columns: Iterable[str] | None = None
) -> pd.DataFrame:
    """Return the rows of one policy, of each if the policy is among the columns to go by.

    columns: those that the frame has of these, by default all. Copying them takes most of the time.
    """
    part = trials if columns is None else trials[[c for c in dict.fromkeys(columns) if c in trials]]
    return part if "policy" in by else part[trials["policy"] == policy]


def judged_of(part: pd.DataFrame, column: str = "score_success") -> tuple[list[bool], list[Any]]:
    """Return (successes, cases) of the trials that a column of scores has a value for."""
    if column not in part:
        return [], []
    part = part[part[column].notna()]
    return part[column].astype(bool).tolist(), part["case_id"].tolist()


def check_policy(policies: Sequence[str], policy: str) -> None:
    """Raise BadOptions if no trial was read under a policy, and some under others."""
    if policies and policy not in policies:
        raise BadOptions(
            "no trial was read under this policy", got=policy, expected=", ".join(policies)
        )


def clusters_of(trials: pd.DataFrame, column: str | None) -> Mapping[Any, Any] | None:
    """Return case id -> its value of a column, which intervals and tests then go by.

    Without a column, cases that ask the same question under two ids are one cluster, and None if no
    two do. A case of which the column says nothing is its own cluster. Raises BadOptions for a
    column that the frame lacks, and for a case with two values of it.
    """
    if column is None:
        return same_questions(trials) or None
    if column not in trials:
        raise BadOptions(
            "no such column to cluster by",
            got=column,
            expected=", ".join(map(str, trials)),
            hint=near(column, trials),
        )
    pairs = trials.loc[trials[column].notna(), ["case_id", column]].astype(object)
    pairs = pairs.drop_duplicates()
    twice = pairs[pairs["case_id"].duplicated()]
    if len(twice):
        raise BadOptions(
            "a case lies in one cluster only",
            got=f"case {twice['case_id'].iloc[0]} has several values of {column}",
            expected="a column that holds whole cases together, such as conversation_id",
        )
    return dict(zip(pairs["case_id"], pairs[column], strict=True))


def same_questions(trials: pd.DataFrame) -> dict[Any, Any]:
    """Return case id -> the first case with its question, of the cases that ask the same question
    (`QUESTION`): answers to it depend on one another. A case without an input is like no other.
    """
    columns = [c for c in QUESTION if c in trials]
    if "input" not in columns:
        return {}
    cases = trials[["case_id", *columns]][~trials["case_id"].duplicated()]
    # Most sets of cases have no two alike, which codes tell in a moment.
    codes = pd.DataFrame({name: pd.factorize(cases[name])[0] for name in columns})
    alike = codes.duplicated(keep=False).to_numpy()
    cases = cases[alike & (cases["input"].notna() & ~cases["input"].isin([""])).to_numpy()]
    cases = cases.astype(object)
    first = cases.where(cases.notna(), "").groupby(columns, sort=False)["case_id"]
    cases = cases[first.transform("size") > 1]
    return dict(zip(cases["case_id"], first.transform("first")[cases.index], strict=True))


def by_question(trials: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return (trials, note): cases that ask the same question under one id, as trials of one case,
    and the sentence that says so, '' if there are none.

    An answer that was recorded once for both is in both rows.
    """
    clusters = same_questions(trials)
    if not clusters:
        return trials, ""
    ids = trials["case_id"].astype(object).map(lambda case: clusters.get(case, case))
    return trials.assign(case_id=ids), same_question_note(clusters, done="They count as one case")


def same_question_note(
    clusters: Mapping[Any, Any],
    cluster: str | None = None,
    *,
    done: str = "Intervals and p take them as one",
) -> str:
    """Return the sentence on cases that ask the same question, '' if there are none.

    clusters: see `same_questions`. cluster: the column that intervals go by instead. done: the
    words for what becomes of them.
    """
    if not clusters:
        return ""
    ids: dict[Any, list[str]] = {}
    for case, first in clusters.items():
        ids.setdefault(first, []).append(str(case))
    example = " and ".join(next(iter(ids.values()))[:2])
    if cluster is not None:
        done = f"Intervals and p go by {cluster}, and take them as one only where it does"
    questions = "1 question is" if len(ids) == 1 else f"{len(ids)} questions are"
    return (
        f"{questions} asked by several cases (the same input, tools and target, such as "
        f"{example}): {len(clusters):,} cases in all. {done}."
    )


def cells_frame(
    trials: pd.DataFrame,
    by: Sequence[str],
    policy: str,
    level: float = 0.95,
    clusters: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Return one row per cell, see `MEANINGS` for the columns. clusters: see `clusters_of`."""

    def but_policy(values: Sequence[str]) -> tuple[str, ...]:
        # Two readings of one cell differ in the policy alone.
        return tuple(v for name, v in zip(by, values, strict=True) if name != "policy")

    wide = coerced_policy(trials, policy)
    coerced: dict[tuple[str, ...], float] = {}
    if wide != policy:
        columns = list(dict.fromkeys((*by, "score_success", "case_id")))
        for values, part in groups(trials.loc[trials["policy"] == wide, columns], by):
            coerced[but_policy(values)] = _case_rate(part, "score_success")
    # Copying every column of the trials for each cell would cost more than all else.
    rows = []
    for values, part in groups(read_under(trials, by, policy, (*by, *_COUNTED)), by):
        row: dict[str, Any] = dict(zip(by, values, strict=True))
        row |= _cell(part, level, clusters)
        row["coerced"] = row["success"]
        if wide != policy:
            row["coerced"] = coerced.get(but_policy(values), stats.NAN)
        rows.append(row)
    frame = pd.DataFrame(rows, columns=[*by, *CELL_COLUMNS])
    return frame.astype(dict.fromkeys(COUNTS, "int64")) if rows else frame


def ungraded_frame(
    trials: pd.DataFrame,
    by: Sequence[str],
    policy: str,
    level: float = 0.95,
    clusters: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Return what is known of answers without a target, one row per cell.

    n: answers, attempts: those with a call or something that looks like one. executable: the share
    of attempts whose calls may all be executed, with its interval. The others of `ANSWER_KINDS`
    are shares of all answers.
    """
    rows: list[dict[str, Any]] = []
    if "verdict" in trials:
        needed = (*by, "case_id", "verdict", "outcome", "sub_code", "error_code", "target")
        part = read_under(trials, by, policy, needed)
        answered = part["outcome"].notna() & ~part["outcome"].isin(["provider_error"])
        for values, cell in groups(part[answered & part["target"].isna()], by):
            good = executable_of(cell).dropna()
            attempts = cell.loc[good.index]
            known = _executable_figures(good, attempts["case_id"], level, clusters)
            shares = kinds_of(cell).value_counts(normalize=True)
            rows.append(
                {
                    **dict(zip(by, values, strict=True)),
                    "n": len(cell),
                    "n_cases": cell["case_id"].nunique(),
                    "attempts": len(attempts),
                    **known,
                    **{kind: float(shares.get(kind, 0.0)) for kind in ANSWER_KINDS},
                }
            )
    figures = ("n", "n_cases", "attempts", "executable", "ci_low", "ci_high", *ANSWER_KINDS)
    return pd.DataFrame(rows, columns=[*by, *figures])


def tools_frame(
    trials: pd.DataFrame,
    calls: pd.DataFrame,
    policy: str,
    level: float = 0.95,
    clusters: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Return what is known of the calls in answers without a target, one row per tool, the most
    called first.

    calls: the calls frame of the same trials under the same policy. n: calls. executable: the share
    that may be executed, with its interval. The others of `CALL_KINDS` are shares of all calls.
    """
    asked = read_under(trials, (), policy, ("trial_id", "case_id", "target", "policy"))
    cases = dict(asked.loc[asked["target"].isna(), ["trial_id", "case_id"]].astype(str).to_numpy())
    part = calls[["trial_id", "name", "verdict"]].astype(str)
    part = part.assign(case_id=part["trial_id"].map(cases)).dropna(subset=["case_id"])
    rows: list[dict[str, Any]] = []
    for tool, of_tool in part.groupby("name", sort=False):
        good = of_tool["verdict"].isin(list(EXECUTABLE))
        shares = _repairs_as_one(of_tool["verdict"]).value_counts(normalize=True)
        rows.append(
            {
                "tool": tool,
                "n": len(of_tool),
                **_executable_figures(good, of_tool["case_id"], level, clusters),
                **{kind: float(shares.get(kind, 0.0)) for kind in CALL_KINDS},
            }
        )
    rows.sort(key=lambda row: -row["n"])
    figures = ("tool", "n", "executable", "ci_low", "ci_high", *CALL_KINDS)
    return pd.DataFrame(rows, columns=list(figures))


def executable_of(cell: pd.DataFrame) -> pd.Series[Any]:
    """Return for each answer whether its calls may all be executed, missing for one without a call
    or something that looks like one.
    """
    good = pd.Series([not cause for cause in causes(cell, graded=False)], cell.index, dtype=object)
    return good.mask(kinds_of(cell) == "text")


def _executable_figures(
    good: pd.Series[Any],
    cases: pd.Series[Any],
    level: float,
    clusters: Mapping[Any, Any] | None,
) -> dict[str, float]:
    interval = stats.clustered_interval(good.astype(bool).tolist(), cases.tolist(), level, clusters)
    return {"executable": interval.rate, "ci_low": interval.low, "ci_high": interval.high}


def _repairs_as_one(verdicts: pd.Series[Any]) -> pd.Series[Any]:
    # "repaired (lossless)" and "repaired (lossy)" are both "repaired".
    return verdicts.str.replace(r" \(.*", "", regex=True)


def kinds_of(cell: pd.DataFrame) -> pd.Series[Any]:
    verdicts = cell["verdict"].astype("string").fillna("none")
    kinds = _repairs_as_one(verdicts)
    looks = cell["outcome"].astype("string").eq("attempted_unparseable")
    none = verdicts.eq("none")
    if "error_code" in cell:
        # Nothing is wrong with a call that a text only shows.
        none |= verdicts.eq("refused") & cell["error_code"].isna()
    return kinds.mask(none & looks, "looks like a call").mask(none & ~looks, "text")


class Figure(NamedTuple):
    """A column of a report's frame: its meaning, and how a gate takes it.

    kind: count is a whole number, more means that more is better, share that it is at most 1. of:
    the column with the number of trials that it is a share of. unknown: why it has no value, if one
    reason is enough.
    """

    meaning: str
    kind: str = ""
    of: str = "n"
    unknown: str = ""


_NO_CALL = "no answer has a call"
_NO_TEXT = "no case wants a last text"
_NO_LATENCY = "no latency is recorded"
FIGURES: Mapping[str, Figure] = {
    "n_cases": Figure("Cases with a scored trial.", "count more"),
    "n": Figure("Scored trials.", "count more"),
    "missing": Figure(
        "Trials that the provider failed, that a plan has and no record, or that a case of a log "
        "has fewer than others. They are no failures.",
        "count",
    ),
    "ungraded": Figure("Trials of cases without a target.", "count"),
    "success": Figure(
        "Mean over cases of (trials that succeeded / scored trials), under the report's policy. "
        "With equal numbers of trials per case, the share of n.",
        "more share",
    ),
    "ci_low": Figure(
        "Lower end of its interval: Agresti and Coull's at the effective sample size, which is "
        "the number of cases where the trials of a case end alike, and at most that of trials.",
        "more share",
    ),
    "ci_high": Figure("Upper end of its interval.", "share"),
    "strict": Figure(
        "The same for what is right as written: no edit, no reading step, no coercion.",
        "more share",
    ),
    "repaired": Figure("The same for what is right with repairs, without coercion.", "more share"),
    "safe": Figure("The same for what is right with repairs and lossless coercion.", "more share"),
    "coerced": Figure(
        "The same for what is right under the loosest policy that was read.", "more share"
    ),
    "naive": Figure(
        "The same for a regex for a JSON object and json.loads.",
        "more share",
    ),
    "answered": Figure("Trials with an answer, graded or not.", "count more"),
    "fabricated": Figure(
        "Share of answered trials with a call whose name or values are not in the text.",
        "share",
        "answered",
    ),
    "called": Figure("Answered trials with a call.", "count more"),
    "unread": Figure("Answered trials that look like a call, but have no readable one.", "count"),
    "coercion_rate": Figure(
        "Share of the called in which something was coerced.", "share", "called", _NO_CALL
    ),
    "repair_rate": Figure(
        "Share of the called in which something was repaired.", "share", "called", _NO_CALL
    ),
    "worst": Figure("Success if every missing trial had failed.", "more share"),
    "best": Figure("Success if every missing trial had succeeded.", "more share"),
    "distinct": Figure(
        "Mean over cases of (different answers / trials), of cases with several.", "more share"
    ),
    "k": Figure(
        "Trials of a case, missing ones included, the most frequent number; 1 where a cell pools "
        "arms.",
        "count",
    ),
    "pass_at_k": Figure(
        "Mean over cases of the chance that at least one of k trials succeeds, 1 − C(n − right, k) "
        "/ C(n, k), if every missing trial had failed; not known where all trials are copies.",
        "more share",
    ),
    "pass_at_k_best": Figure("The same if every missing trial had succeeded.", "more share"),
    "pass_all_k": Figure(
        "Mean over cases of the chance that all k trials succeed, C(right, k) / C(n, k), if every "
        "missing trial had failed.",
        "more share",
    ),
    "pass_all_k_best": Figure("The same if every missing trial had succeeded.", "more share"),
    "n_answer": Figure(
        "Conversations for which a last text is wanted.", "count more", unknown=_NO_TEXT
    ),
    "answer": Figure("Share of them that ended with it.", "more share", "n_answer", _NO_TEXT),
    "latency_p50": Figure("Seconds from request to end, median.", unknown=_NO_LATENCY),
    "latency_p95": Figure(
        "Seconds from request to end, exceeded by one in twenty.", unknown=_NO_LATENCY
    ),
    "tokens_mean": Figure(
        "Tokens of an answer, mean of those that the provider counted.",
        unknown="no tokens are recorded",
    ),
    "cost": Figure(
        "US dollars of all trials, all turns of a conversation together.",
        unknown="no cost is recorded, for want of a price",
    ),
    "cost_per_success": Figure("US dollars for each success: cost / trials that succeeded."),
    "reason": Figure("Why trials are missing or ungraded, with counts."),
}
"""Column of a report's frame -> what is known of it, in order."""
_NO_PAIR = "it has no cases in common with the baseline's cell"
OF_BASELINE: Mapping[str, Figure] = {
    "paired": Figure("Cases judged in both.", "more", unknown=_NO_PAIR),
    "difference": Figure("Success less the baseline's.", "more share", unknown=_NO_PAIR),
    "diff_low": Figure("Lower end of its interval.", "more share", unknown=_NO_PAIR),
    "diff_high": Figure("Upper end of its interval.", "share", unknown=_NO_PAIR),
    "p": Figure("The sign-flip test on the cases' differences.", "share", unknown=_NO_PAIR),
    "p_holm": Figure("p, adjusted by Holm for the cells.", "share", unknown=_NO_PAIR),
}
"""The columns that follow if a report has a baseline."""
MEANINGS: Mapping[str, str] = {name: figure.meaning for name, figure in FIGURES.items()}
"""Column of a report's frame -> its meaning, in order."""
COUNTS = tuple(name for name, figure in FIGURES.items() if "count" in figure.kind)
CELL_COLUMNS = tuple(MEANINGS)
# What `_cell` and its helpers look at.
_COUNTED = (
    "case_id", "trial", "target", "raw", "outcome", "missing_reason", "score_success",
    "score_strict", "score_repaired", "score_safe", "score_naive", "score_fabricated",
    "score_answer", "n_calls", "n_edits", "n_coercions", "cost", "latency", "completion_tokens",
    "n_turns", "conversation_cost",
)  # fmt: skip


def coerced_policy(trials: pd.DataFrame, policy: str) -> str:
    """Return the policy of coerced success: the first looser one there is, else the headline's."""
    policies = set(trials["policy"].dropna().unique())
    return next((p for p in COERCED_POLICIES if p in policies), policy)


def _case_rate(part: pd.DataFrame, column: str) -> float:
    # Each case counts once. NA drops out.
    if column not in part:
        return stats.NAN
    part = part[part[column].notna()]
    return stats.case_rate(part[column].to_numpy(bool), part["case_id"].tolist())


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else stats.NAN


def _cell(part: pd.DataFrame, level: float, clusters: Mapping[Any, Any] | None) -> dict[str, Any]:
    # Anything not recorded is NaN.
    success = part["score_success"].astype("boolean")
    judged = part[success.notna()]
    flags = success.dropna().to_numpy(bool)
    cases, names = pd.factorize(judged["case_id"])
    if clusters is not None:
        clusters = {i: clusters[name] for i, name in enumerate(names) if name in clusters}
    # A trial without a target that was not even asked has no outcome, and is ungraded as well.
    is_ungraded = (part["outcome"] == "ungraded") | (part["target"].isna() & success.isna())
    ungraded = int(is_ungraded.sum())
    interval = stats.clustered_interval(flags, cases, level, clusters)
    absent = absent_trials(part[~is_ungraded])
    lacking = [*part.loc[success.isna() & ~is_ungraded, "case_id"], *absent]
    worst, best = stats.bounds(flags.tolist(), judged["case_id"].tolist(), lacking)
    answered = part[part["outcome"].notna() & ~part["outcome"].isin(list(MISSING))]
    called = answered["n_calls"].fillna(0) > 0
    endings: Any = ()
    if "score_answer" in part:
        endings = part["score_answer"].astype("boolean").dropna()
    reasons = part.loc[success.isna(), "missing_reason"].dropna().astype(str)

    latency, tokens = (part[c].dropna().astype(float) for c in ("latency", "completion_tokens"))
    costs = part["cost"]
    if "conversation_cost" in part:  # all turns of a conversation together
        costs = costs.where(part["n_turns"].isna(), part["conversation_cost"])
    costs = costs.dropna().astype(float)
    cost = float(costs.sum()) if len(costs) else stats.NAN
    hits = int(flags.sum())
    return {
        "n_cases": len(set(cases)),
        "n": len(judged),
        "missing": len(lacking),
        "ungraded": ungraded,
        "success": interval.rate,
        "ci_low": interval.low,
        "ci_high": interval.high,
        **{name: _case_rate(judged, f"score_{name}") for name in LEVELS},
        "answered": len(answered),
        "fabricated": _mean(answered["score_fabricated"].fillna(False)),
        "called": int(called.sum()),
        "unread": int((answered["outcome"] == "attempted_unparseable").sum()),
        "coercion_rate": _mean(answered.loc[called, "n_coercions"].fillna(0) > 0),
        "repair_rate": _mean(answered.loc[called, "n_edits"].fillna(0) > 0),
        "worst": worst,
        "best": best,
        **_repeats(judged, answered, flags, lacking),
        "n_answer": len(endings),
        "answer": _mean(endings),
        "latency_p50": float(np.quantile(latency, 0.5)) if len(latency) else stats.NAN,
        "latency_p95": float(np.quantile(latency, 0.95)) if len(latency) else stats.NAN,
        "tokens_mean": _mean(tokens),
        "cost": cost,
        "cost_per_success": cost / hits if hits else stats.NAN,
        "reason": "; ".join(f"{n} {text}" for text, n in reasons.value_counts().items()),
    }


def absent_trials(graded: pd.DataFrame) -> list[Any]:
    """Return the case of each trial that a cell's rows lack, if every case was to have the largest
    number of trials that one has. Where that would be twice the rows or more, as in a log with a
    question that many asked, or where a cell pools arms, no row is missed.
    """
    cases, names = pd.factorize(graded["case_id"])
    if graded.empty or _is_pooled(cases, graded):
        return []
    sizes = np.bincount(cases)
    planned = int(sizes.max())
    if planned * len(sizes) >= 2 * len(graded):
        return []
    return [name for name, size in zip(names, sizes, strict=True) for _ in range(planned - size)]


def _is_pooled(cases: Any, part: pd.DataFrame) -> bool:
    # Answers of several arms are no repetitions.
    trials = part["trial"].to_numpy("int64", na_value=-1)
    return bool(pd.DataFrame({"case": cases, "trial": trials}).duplicated().any())


def _repeats(
    judged: pd.DataFrame, answered: pd.DataFrame, flags: Any, lacking: Sequence[Any]
) -> dict[str, Any]:
    passes = ("pass_at_k", "pass_at_k_best", "pass_all_k", "pass_all_k_best")
    unknown = dict.fromkeys(("distinct", *passes), stats.NAN)
    cases, _ = pd.factorize(judged["case_id"])
    if judged.empty or _is_pooled(cases, judged):
        return {**unknown, "k": 1}
    texts, text_cases = (pd.factorize(answered[c])[0] for c in ("raw", "case_id"))
    planned, _ = pd.factorize(pd.Series([*judged["case_id"], *lacking], dtype=object))
    # The number of trials that most cases were to have.
    k = int(np.bincount(np.bincount(planned)).argmax())
    figures = {**unknown, "k": k, "distinct": stats.distinct_share(texts, text_cases)}
    # Copies of one answer are one trial, however often it was asked for.
    if k > 1 and not stats.are_copies(texts, text_cases):
        # As for `worst` and `best`: a missing trial has failed, or it has succeeded.
        worst, best = ([*flags, *[ok] * len(lacking)] for ok in (False, True))
        chances = (
            c(x, planned, k) for c in (stats.pass_at_k, stats.pass_all_k) for x in (worst, best)
        )
        figures |= zip(passes, chances, strict=True)
    return figures


@dataclass(frozen=True)
class Matrix:
    """Success by two columns. `frame` has one row per cell.

    measure: "success", or "executable" where no trial has a target: the share of the answers with a
    call whose calls may all be executed, which then stands in the columns of success.
    """

    rows: str
    columns: str
    policy: str
    frame: pd.DataFrame
    measure: Literal["success", "executable"] = "success"

    @property
    def table(self) -> pd.DataFrame:
        """Rows × columns of the success rate, in the order of the frame."""
        # A pivot sorts its names; a report keeps the order of the plan.
        wide = self.frame.pivot(index=self.rows, columns=self.columns, values="success")
        names = [list(dict.fromkeys(self.frame[c])) for c in (self.rows, self.columns)]
        return wide.reindex(index=names[0], columns=names[1])

    def _repr_html_(self) -> str:
        return str(hooks.call("figure_html", self))

    def __repr__(self) -> str:
        return str(hooks.call("figure_text", self))


def matrix(
    trials: pd.DataFrame,
    *,
    rows: str | None = None,
    columns: str | None = None,
    policy: str = "safe",
    level: float = 0.95,
    cluster: str | None = None,
) -> Matrix:
    """Return success with intervals by protocol (rows) and model (columns), or any other two
    columns. cluster: the column that intervals go by, as in a report. Raises BadOptions for a frame
    that is no trials frame, for a column or policy that it lacks, and for one column named twice.
    """
    check_trials(trials)
    rows, columns = rows or "prompt_protocol", columns or "model"
    if rows == columns:
        raise BadOptions("a matrix has two different columns", got=rows)
    check_by(trials, [rows, columns])
    check_policy(policies_of(trials), policy)
    trials = trials.reset_index(drop=True)
    clusters = clusters_of(trials, cluster)
    frame = cells_frame(trials, [rows, columns], policy, level, clusters)
    if frame["n"].any():
        return Matrix(rows, columns, policy, frame)
    known = ungraded_frame(trials, [rows, columns], policy, level, clusters)
    if known.empty:
        return Matrix(rows, columns, policy, frame)
    own = frame[[rows, columns]].merge(known, on=[rows, columns], how="left")
    for name, column in (("success", "executable"), ("ci_low", "ci_low"), ("ci_high", "ci_high")):
        frame[name] = own[column].to_numpy()
    for name, column in (("n", "attempts"), ("n_cases", "n_cases")):
        frame[name] = own[column].fillna(0).astype("int64").to_numpy()
    return Matrix(rows, columns, policy, frame, "executable")
