"""The effect and the cost of each layer, one frame a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...core.rules import RULES
from ...core.toolspec import ToolSpec
from ...core.types import Policy
from ...core.values import write_canonical
from ...evals.reports.figures import stats
from ...evals.reports.figures.interval import Interval
from ...middleware.correction import Refused, ToolFailure, detect
from ...middleware.correction.failure import DETECTORS, Detector, detectors_of
from ...middleware.correction.monitoring import SCENARIOS, THRESHOLDS, Reading, scenario_of
from .cells import CELLS, cell_name, groups_of, part_of
from .intervals import ratio_of, share_of
from .recording import Recorded
from .tools import DIALECTS, OTHER_FAILURES, problems_of, refusal

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


def costs_frame(
    answers: pd.DataFrame, policy: Policy, by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per group × cell, means for an answer, all attempts and failures included.

    model_calls: beside the base answer. tokens: in and out, corrections included. prompt_tokens: of
    the base question. cost: US dollars. latency_p50, latency_p95: seconds of the model, base answer
    and corrections. pauses: seconds of back-off between regular attempts, which are counted and
    not waited for. tool_calls: attempts and corrections. true_rescues: answers that are gold here
    and not in S000. Calls, tokens and cost for each of them are those beyond S000's, with intervals
    from resampling cases (see `intervals.ratio_of`).
    """
    rows = []
    for keys, part in groups_of(answers, by):
        cells = {cell_name(*cell): _known(part_of(part, policy, cell)) for cell in CELLS}
        for name, some in cells.items():
            rows.append(
                dict(zip(by, keys, strict=True))
                | {"cell": name}
                | _spent(some)
                | _for_a_rescue(cells["S000"], some, level)
            )
    return pd.DataFrame(rows)


def scenarios_frame(
    answers: pd.DataFrame, policy: Policy, by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per group × level of layer 1 × scenario of corrections, for answers with all
    layers.

    n: answers of this scenario, those with a correction that is not on record left out. accepted:
    the share that the tools took, with its interval. calls, tokens, cost, seconds: the extra that
    corrections added to an answer, in the mean. Seconds are those of the model. base_seconds: of
    the first answer.
    """
    rows = []
    part = answers[(answers["policy"] == policy) & answers["l3"] & answers["accepted"].notna()]
    for keys, some in groups_of(part, (*by, "l1")):
        names = dict(zip((*by, "l1"), keys, strict=True))
        counts, flags = some["model_calls"].to_numpy(int), some["accepted"].to_numpy(bool)
        labels = np.array(
            [scenario_of(int(n), ok=bool(ok)) for n, ok in zip(counts, flags, strict=True)]
        )
        for scenario in SCENARIOS:
            own = some[labels == scenario]
            accepted = share_of(own["accepted"].to_numpy(bool), own["case_id"].to_numpy(), level)
            rows.append(
                {
                    **names,
                    "scenario": scenario,
                    "n": len(own),
                    "accepted": accepted.rate,
                    "accepted_low": accepted.low,
                    "accepted_high": accepted.high,
                    "calls": _mean(own["model_calls"]),
                    "tokens": _mean(own["extra_tokens"]),
                    "cost": _mean(own["extra_cost"]),
                    "seconds": _mean(own["extra_latency"]),
                    "base_seconds": _mean(own["latency"]),
                }
            )
    return pd.DataFrame(rows)


def _known(part: pd.DataFrame) -> pd.DataFrame:
    # None if a correction is missing.
    recorded = part[part["parsed"].notna()]
    return recorded.iloc[:0] if recorded["valid"].isna().any() else recorded


def _totals(part: pd.DataFrame) -> pd.DataFrame:
    # Of each sample, base answer and corrections together.
    table = part.set_index(list(_SAMPLE))
    return pd.DataFrame(
        {
            "calls": table["model_calls"].astype(float),
            "tokens": table["tokens"] + table["extra_tokens"],
            "cost": table["cost"] + table["extra_cost"],
            "gold": table["gold"].astype("Float64").astype(float),
        }
    )


def _spent(part: pd.DataFrame) -> dict[str, Any]:
    totals = _totals(part)
    latency = (part["latency"] + part["extra_latency"]).dropna().to_numpy(float)
    return {
        "n": len(part),
        "model_calls": _mean(totals["calls"]),
        "prompt_tokens": _mean(part["prompt_tokens"]),
        "tokens": _mean(totals["tokens"]),
        "cost": _mean(totals["cost"]),
        "latency_p50": float(np.quantile(latency, 0.5)) if len(latency) else stats.NAN,
        "latency_p95": float(np.quantile(latency, 0.95)) if len(latency) else stats.NAN,
        "pauses": _mean(part["pauses"]),
        "tool_calls": _mean(part["tool_calls"]),
    }


def _for_a_rescue(base: pd.DataFrame, part: pd.DataFrame, level: float) -> dict[str, Any]:
    # Beyond S000, on the samples that both have.
    before, after = _totals(base), _totals(part)
    both = before.index.intersection(after.index)
    gap = after.loc[both] - before.loc[both]
    graded = gap[gap["gold"].notna()]
    out: dict[str, Any] = {
        "true_rescues": int((graded["gold"] > 0).sum()) if len(graded) else stats.NAN
    }
    cases = gap.index.get_level_values("case_id").to_numpy()
    for name in ("calls", "tokens", "cost"):
        price = ratio_of(gap[name].to_numpy(float), (gap["gold"] > 0).to_numpy(), cases, level)
        out[f"{name}_per_rescue"] = price.rate
        out |= {f"{name}_per_rescue_low": price.low, f"{name}_per_rescue_high": price.high}
    return out


def _mean(values: pd.Series[Any]) -> float:
    numbers = values.dropna().astype(float)
    return float(numbers.mean()) if len(numbers) else stats.NAN


def thresholds_frame(
    calls: pd.DataFrame, policy: Policy, by: Sequence[str], level: float
) -> pd.DataFrame:
    """Return one row per group × level of layer 1 × threshold, for calls under layers 2 and 3.

    count, total: the quantity counted, and out of what (`of` says it). ok: False if the rate is on
    the worse side of its limit, None out of nothing. tells: whether the interval lies on one side
    of the limit. advice: "" if the threshold holds. The two rates of corrections count nothing
    while one of them is not on record.
    """
    rows = []
    part = calls[calls["policy"] == policy]
    for keys, some in groups_of(part, (*by, "l1")):
        names = dict(zip((*by, "l1"), keys, strict=True))
        for threshold, hits, out_of in zip(THRESHOLDS, *_counted(some), strict=True):
            reading = Reading(threshold, int(hits.sum()), len(out_of))
            share = share_of(hits, out_of["case_id"].to_numpy(), level)
            rows.append(
                {
                    **names,
                    "threshold": threshold.name,
                    "of": threshold.of,
                    "worse": threshold.worse,
                    "limit": threshold.limit,
                    "count": reading.count,
                    "total": reading.total,
                    "rate": share.rate,
                    "ci_low": share.low,
                    "ci_high": share.high,
                    "ok": reading.ok if reading.total else None,
                    "tells": not share.low <= threshold.limit <= share.high
                    if reading.total
                    else False,
                    "advice": "" if reading.ok else threshold.advice,
                }
            )
    return pd.DataFrame(rows)


def _counted(part: pd.DataFrame) -> tuple[list[Any], list[pd.DataFrame]]:
    # Hits, and the calls that they are counted out of, for each of `THRESHOLDS`.
    entered = part[part["entered"].fillna(False).astype(bool)]
    # A call of a tool that nobody offered is not known either, but no tool takes it.
    is_open = bool(entered["corrected_accepted"].isna().any())
    ended, rescued = (part.iloc[:0], entered.iloc[:0]) if is_open else (part, entered)
    hits = [
        part["steps"].to_numpy() > 0,
        part["entered"].fillna(False).to_numpy(bool),
        rescued["needed"].to_numpy() > 0,
        ended["corrected_accepted"].fillna(False).to_numpy(bool),
    ]
    return hits, [part, part, rescued, ended]


MOST_CALLS = 2000
"""Different calls that the detectors are tried on."""
ALL_IN_TURN = "all in turn"
"""The detectors of the ablation's own feedback, as layer 3 asks them."""


def detectors_frame(recorded: Recorded, level: float) -> pd.DataFrame:
    """Return one row per detector × dialect: recall and precision, with Wilson intervals.

    Every different call that a model wrote is refused again. An invalid one is refused for its
    arguments, in the words of the dialect: a detector should see it. A valid one is refused for
    each of `OTHER_FAILURES` (a service that is down, a timeout, …): a detector should not.
    """
    calls = list(_different_calls(recorded).values())[:MOST_CALLS]
    judged = [(tool, arguments, problems_of(arguments, tool)) for tool, arguments in calls]
    chosen: dict[str, Sequence[Detector]] = {name: [one] for name, one in DETECTORS.items()}
    chosen[ALL_IN_TURN] = detectors_of(recorded.settings.feedback.detectors)
    negatives = [
        Refused(failure, arguments, tool.schema_json)
        for tool, arguments, problems in judged
        if not problems
        for failure in OTHER_FAILURES
    ]
    rows = []
    for dialect in DIALECTS:
        positives = [
            Refused(_refusal(dialect, tool, arguments), arguments, tool.schema_json)
            for tool, arguments, problems in judged
            if problems
        ]
        for name, detectors in chosen.items():
            hits = sum(bool(detect(one, detectors)) for one in positives)
            false = sum(bool(detect(one, detectors)) for one in negatives)
            recall = stats.wilson(hits, len(positives), level)
            precision = stats.wilson(hits, hits + false, level)
            rows.append(
                {
                    "detector": name,
                    "dialect": dialect,
                    "invalid": len(positives),
                    "detected": hits,
                    "recall": recall.rate,
                    "recall_low": recall.low,
                    "recall_high": recall.high,
                    "other_failures": len(negatives),
                    "false_alarms": false,
                    "precision": precision.rate,
                    "precision_low": precision.low,
                    "precision_high": precision.high,
                }
            )
    return pd.DataFrame(rows)


def _different_calls(recorded: Recorded) -> dict[str, tuple[ToolSpec, Mapping[str, Any]]]:
    # As the models wrote them, each once, by tool and arguments.
    calls: dict[str, tuple[ToolSpec, Mapping[str, Any]]] = {}
    for answer in recorded.answers:
        for call in answer.calls:
            if call.tool is not None:
                arguments = call.arguments("none")
                key = f"{call.tool.name} {call.tool.schema_json} {write_canonical(arguments)}"
                calls.setdefault(key, (call.tool, arguments))
    return calls


def _refusal(dialect: str, tool: ToolSpec, arguments: Mapping[str, Any]) -> ToolFailure:
    return refusal(dialect, problems_of(arguments, tool), arguments, tool)
