"""Each layer by itself: mistyped parameters, rescues true and false, corrections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...core.rules import RULES
from ...core.types import Policy
from ...evals.reports.figures import stats
from ...evals.reports.figures.interval import Interval
from .cells import groups_of
from .intervals import share_of

_PLACE = ("answer", "call")
_SAMPLE = ("model", "protocol", "case_id", "trial")


def layer1_frame(
    answers: pd.DataFrame, calls: pd.DataFrame, tests: pd.DataFrame, by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per group × level of layer 1: mistyped of all typed parameters, and its price.

    A parameter is typed where the schema says something of it. The model's own text counts, before
    layer 2. In the row with layer 1 stand lift (gold, S100 - S000), the extra prompt tokens of all
    answers that both have, and these tokens for each error avoided. NaN if none is.
    """
    rows = []
    as_written = calls[calls["policy"] == "none"]
    lifts = tests[(tests["rung"] == "gold") & (tests["contrast"] == "layer 1 alone")]
    for keys, part in groups_of(as_written, by):
        names = dict(zip(by, keys, strict=True))
        extra, errors = _price(_under(answers, names), part)
        lift = _under(lifts, names)
        for on in (False, True):
            side = part[part["l1"] == on]
            rate = _typed_rate(side, level)
            rows.append(
                {
                    **names,
                    "l1": on,
                    "calls": len(side),
                    "typed": int(side["typed"].sum()),
                    "mistyped": int(side["mistyped"].sum()),
                    "type_error_rate": rate.rate,
                    "ci_low": rate.low,
                    "ci_high": rate.high,
                    **_lift(lift if on else lift.iloc[:0]),
                    "extra_prompt_tokens": extra if on else stats.NAN,
                    "errors_avoided": errors if on else stats.NAN,
                    "tokens_per_error": extra / errors if on and errors > 0 else stats.NAN,
                }
            )
    return pd.DataFrame(rows)


def _lift(tests: pd.DataFrame) -> dict[str, float]:
    # From its test, or NaN without one.
    row: Mapping[Any, Any] = next(iter(tests.to_dict("records")), {})
    return {
        name: float(row.get(column, stats.NAN))
        for name, column in (
            ("lift", "difference"),
            ("lift_low", "ci_low"),
            ("lift_high", "ci_high"),
        )
    }


def _under(frame: pd.DataFrame, names: dict[str, Any]) -> pd.DataFrame:
    for name, value in names.items():
        frame = frame[frame[name] == value]
    return frame


def _typed_rate(part: pd.DataFrame, level: float) -> Interval:
    typed, wrong = part["typed"].to_numpy(int), part["mistyped"].to_numpy(int)
    flags = np.concatenate([np.repeat(True, wrong.sum()), np.repeat(False, (typed - wrong).sum())])
    cases = part["case_id"].to_numpy()
    return share_of(
        flags, np.concatenate([np.repeat(cases, wrong), np.repeat(cases, typed - wrong)]), level
    )


def _price(answers: pd.DataFrame, calls: pd.DataFrame) -> tuple[float, float]:
    # (extra prompt tokens, errors avoided), over samples whose two answers are known. An answer
    # without a readable call has no mistyped parameter, which is why lift is next to this.
    base = answers[(answers["policy"] == "none") & ~answers["l3"] & answers["parsed"].notna()]
    tokens = base.pivot_table(
        index=list(_SAMPLE), columns="l1", values="prompt_tokens", aggfunc="first"
    )
    if not {False, True} <= set(tokens.columns):
        return stats.NAN, stats.NAN
    tokens = tokens.dropna()
    wrong = (
        calls.groupby([*_SAMPLE, "l1"], sort=False, observed=True)["mistyped"]
        .sum()
        .unstack(fill_value=0)
    )
    wrong = wrong.reindex(index=tokens.index, columns=[False, True], fill_value=0)
    extra = float((tokens[True] - tokens[False]).sum())
    return extra, float((wrong[False] - wrong[True]).sum())


def layer2_frame(
    calls: pd.DataFrame, policies: Sequence[Policy], by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per group × layer 1 × policy: the effect of coercion on the calls invalid
    without it.

    rescued, true_rescue: shares of the invalid (those with a target, for true_rescue) that are
    valid, and gold, after it. false_rescue: the share of the rescued that are not gold. Split into
    changed_meaning, where a lossy rule wrote a value that is wrong, and faithful, where the value
    was wrong as the model wrote it. harm: the share of valid and gold calls that are gold no more.
    idempotent: the share of calls that a second coercion leaves alone.
    """
    rows = []
    before = calls[calls["policy"] == "none"].set_index(list(_PLACE))[["valid", "gold"]]
    before = before.add_suffix("_before")
    for policy in policies:
        if policy == "none":
            continue
        after = calls[calls["policy"] == policy].join(before, on=list(_PLACE))
        for keys, part in groups_of(after, (*by, "l1")):
            names = dict(zip((*by, "l1"), keys, strict=True))
            rows.append({**names, "policy": policy, **_rescues(part, level)})
    return pd.DataFrame(rows)


def _rescues(part: pd.DataFrame, level: float) -> dict[str, Any]:
    invalid = part[~part["valid_before"].astype(bool)]
    graded = invalid[invalid["gold"].notna()]
    rescued = graded[graded["valid"].astype(bool)]
    false = rescued[~rescued["gold"].astype(bool)]
    changed = [_changed_meaning(rules) for rules in false["rules"]]
    right = part[part["valid_before"].astype(bool) & part["gold_before"].fillna(False).astype(bool)]
    compared = part[part["idempotent"].notna()]
    out: dict[str, Any] = {
        "calls": len(part),
        "invalid": len(invalid),
        "rescues": int(invalid["valid"].sum()),
        "true_rescues": int(graded["gold"].sum()),
        "false_rescues": len(false),
        "changed_meaning": sum(changed),
        "faithful": len(false) - sum(changed),
        "right_before": len(right),
        "harmed": int((~right["gold"].astype(bool)).sum()),
    }
    for name, flags, rows in (
        ("rescued", invalid["valid"], invalid),
        ("true_rescue", graded["gold"], graded),
        ("false_rescue", ~rescued["gold"].astype(bool), rescued),
        ("harm", ~right["gold"].astype(bool), right),
        ("idempotent", compared["idempotent"], compared),
    ):
        interval = share_of(flags.to_numpy(bool), rows["case_id"].to_numpy(), level)
        out |= {name: interval.rate, f"{name}_low": interval.low, f"{name}_high": interval.high}
    return out


def _changed_meaning(rules: Sequence[tuple[str, int, int]]) -> bool:
    # rules: (rule, values made right, values made wrong).
    return any(wrong and not RULES[rule].lossless for rule, _, wrong in rules)


def rules_frame(calls: pd.DataFrame, policies: Sequence[Policy], level: float) -> pd.DataFrame:
    """Return one row per policy × coercion rule: the values it changed that are right, and wrong.

    Both base answers of every sample count, valid calls as well. Calls without a target do not.
    """
    rows = []
    for policy in policies:
        part = calls[calls["policy"] == policy]
        flags: dict[str, list[bool]] = {}
        cases: dict[str, list[str]] = {}
        n_calls: dict[str, int] = {}
        for case_id, rules in zip(part["case_id"], part["rules"], strict=True):
            for rule, right, wrong in rules:
                flags.setdefault(rule, []).extend([True] * right + [False] * wrong)
                cases.setdefault(rule, []).extend([case_id] * (right + wrong))
                n_calls[rule] = n_calls.get(rule, 0) + 1
        for rule in sorted(flags, key=lambda one: (-len(flags[one]), one)):
            share = share_of(flags[rule], cases[rule], level)
            rows.append(
                {
                    "policy": policy,
                    "rule": rule,
                    "lossless": RULES[rule].lossless,
                    "calls": n_calls[rule],
                    "applied": len(flags[rule]),
                    "right": sum(flags[rule]),
                    "wrong": len(flags[rule]) - sum(flags[rule]),
                    "right_share": share.rate,
                    "ci_low": share.low,
                    "ci_high": share.high,
                }
            )
    columns = ("policy", "rule", "lossless", "calls", "applied", "right", "wrong", "right_share",
               "ci_low", "ci_high")  # fmt: skip
    return pd.DataFrame(rows, columns=list(columns))


def layer3_frame(
    calls: pd.DataFrame,
    corrections: pd.DataFrame,
    policies: Sequence[Policy],
    most: int,
    by: Sequence[str],
    level: float,
) -> pd.DataFrame:
    """Return one row per group × layer 1 × policy: the effect of corrections on the calls that were
    refused.

    entered: calls of which a correction was asked, or is to be. parse_rate: corrections that held
    arguments. success_at_k: entered calls that the tool took after at most k corrections.
    gold_rate: those that are gold at the end. true_rescues, harmed, net_rescue: calls that became
    gold, that were gold and are no more, and their difference. repeat_rate: readable corrections
    that brought arguments refused before. collateral: edits at fields that no one complained of,
    for each readable correction. Shares are NaN if a correction is missing.
    """
    rows = []
    for policy in policies:
        part = calls[calls["policy"] == policy]
        under = corrections[corrections["policy"] == policy]
        for keys, some in groups_of(part, (*by, "l1")):
            names = dict(zip((*by, "l1"), keys, strict=True))
            own = _under(under, names)
            rows.append({**names, "policy": policy, **_corrections(some, own, most, level)})
    return pd.DataFrame(rows)


def _corrections(
    part: pd.DataFrame, questions: pd.DataFrame, most: int, level: float
) -> dict[str, Any]:
    # most: how many there may be for a call.
    entered = part[part["entered"].fillna(False).astype(bool)]
    missing = int(entered["corrected_accepted"].isna().sum())
    ended = entered.iloc[:0] if missing else entered
    readable = questions[questions["status"] != "failed"]
    graded = ended[ended["gold"].notna()]
    before, after = graded["gold"].astype(bool), graded["corrected_gold"].astype(bool)
    out: dict[str, Any] = {
        "entered": len(entered),
        "missing": missing,
        "corrections": len(questions),
        "true_rescues": int((after & ~before).sum()) if not missing else stats.NAN,
        "harmed": int((before & ~after).sum()) if not missing else stats.NAN,
        "net_rescue": int(after.sum()) - int(before.sum()) if not missing else stats.NAN,
        "collateral": float(readable["collateral"].mean()) if len(readable) else stats.NAN,
    }
    figures = {
        "parse_rate": (questions["status"] != "failed", questions),
        "repeat_rate": (readable["status"] == "repeated", readable),
        "gold_rate": (after, graded),
    }
    for k in range(1, most + 1):
        accepted = ended["corrected_accepted"].astype(bool) & (ended["needed"] <= k)
        figures[f"success_at_{k}"] = (accepted & (ended["needed"] > 0), ended)
    for name, (flags, rows) in figures.items():
        interval = share_of(flags.to_numpy(bool), rows["case_id"].to_numpy(), level)
        out |= {name: interval.rate, f"{name}_low": interval.low, f"{name}_high": interval.high}
    return out
