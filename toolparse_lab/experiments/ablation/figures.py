"""The figures of an ablation: frames, each with its n and intervals, of one recorded set of
answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...core.errors import MissingRecording
from ...core.rules import RULES
from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ...core.values.printable import counted
from ...evals.reports.figures import stats
from ...middleware.correction import Refused, detect
from ...middleware.correction.failure import DETECTORS, Detector, detectors_of
from ...middleware.correction.monitoring import SCENARIOS, THRESHOLDS, Reading, scenario_of
from .cells import (
    CELLS,
    SAMPLE,
    START,
    Rows,
    attribution_frame,
    cells_frame,
    ends,
    frame_of,
    groups_of,
    part_of,
    share,
    tests_frame,
    under,
)
from .frames import Frames
from .intervals import ratio_of, share_of
from .tools import DIALECTS, OTHER_FAILURES, check_names, problems_of

FIGURES = (
    "cells", "tests", "attribution", "layer1", "layer2", "rules", "layer3", "detectors", "costs",
    "scenarios", "thresholds",
)  # fmt: skip
"""The frames of an ablation."""
MOST_CALLS = 2000
"""Different calls that the detectors are tried on."""
ALL_IN_TURN = "all in turn"
"""The detectors of the ablation's own feedback, as layer 3 asks them."""


def _mean(values: pd.Series[Any]) -> float:
    return float(values.dropna().astype(float).mean())  # NaN of none


def _true(values: pd.Series[Any]) -> pd.Series[Any]:
    return values.fillna(False).astype(bool)


# The effect of each layer.


@frame_of
def layer1_frame(a: Figures) -> Rows:
    """One row per group × level of layer 1: mistyped of all typed parameters, and its price.

    A parameter is typed where the schema says something of it. The model's own text counts, before
    layer 2. The row with layer 1 has the lift (gold, S100 - S000), the extra prompt tokens of all
    answers that both have, and these tokens for each error avoided. NaN if none is.
    """
    lifts = a.tests[(a.tests["rung"] == "gold") & (a.tests["contrast"] == "layer 1 alone")]
    for names, part in groups_of(a.calls[a.calls["policy"] == "none"], a.by):
        extra, errors = _price_of_prompt(under(a.answers, names), part)
        for on in (False, True):
            side = part[part["l1"] == on]
            typed, wrong = side["typed"].to_numpy(int), side["mistyped"].to_numpy(int)
            counts = np.concatenate([wrong, typed - wrong])
            flags = np.repeat(np.arange(len(counts)) < len(wrong), counts)
            cases = np.repeat(np.tile(side["case_id"].to_numpy(), 2), counts)
            rate = share_of(flags, cases, a.settings.level)
            test = under(lifts, names).to_dict("records")[:1] if on else []
            lift: Mapping[Any, Any] = test[0] if test else {}
            yield {
                **names,
                "l1": on,
                "calls": len(side),
                "typed": int(typed.sum()),
                "mistyped": int(wrong.sum()),
                **ends(rate, "type_error_rate", "ci_"),
                "lift": float(lift.get("difference", stats.NAN)),
                "lift_low": float(lift.get("ci_low", stats.NAN)),
                "lift_high": float(lift.get("ci_high", stats.NAN)),
                "extra_prompt_tokens": extra if on else stats.NAN,
                "errors_avoided": errors if on else stats.NAN,
                "tokens_per_error": extra / errors if on and errors > 0 else stats.NAN,
            }


def _price_of_prompt(answers: pd.DataFrame, calls: pd.DataFrame) -> tuple[float, float]:
    # (extra prompt tokens, errors avoided), over samples whose two answers are known. An answer
    # without a readable call has no mistyped parameter, which is why lift is next to this.
    base = answers[(answers["policy"] == "none") & ~answers["l3"] & answers["parsed"].notna()]
    tokens = base.pivot_table(index=SAMPLE, columns="l1", values="prompt_tokens", aggfunc="first")
    if not {False, True} <= set(tokens.columns):
        return stats.NAN, stats.NAN
    tokens = tokens.dropna()
    by_answer = calls.groupby([*SAMPLE, "l1"], sort=False, observed=True)["mistyped"]
    wrong = by_answer.sum().unstack(fill_value=0)
    wrong = wrong.reindex(index=tokens.index, columns=[False, True], fill_value=0)
    extra = float((tokens[True] - tokens[False]).sum())
    return extra, float((wrong[False] - wrong[True]).sum())


@frame_of
def layer2_frame(a: Figures, by: Sequence[str] | None = None) -> Rows:
    """One row per group × layer 1 × policy: the effect of coercion on the calls invalid without it.

    rescued, true_rescue: shares of the invalid (those with a target, for true_rescue) that are
    valid, and gold, after it. false_rescue: the share of the rescued that are not gold. Split into
    changed_meaning, where a lossy rule wrote a value that is wrong, and faithful, where the value
    was wrong as the model wrote it. harm: the share of valid and gold calls that are gold no more.
    idempotent: the share of calls that a second coercion leaves alone.
    """
    place = ["answer", "call"]
    before = a.calls[a.calls["policy"] == "none"].set_index(place)[["valid", "gold"]]
    for policy in a.settings.policies:
        if policy == "none":
            continue
        after = a.calls[a.calls["policy"] == policy].join(before.add_suffix("_before"), on=place)
        for names, part in groups_of(after, (*(a.by if by is None else by), "l1")):
            yield {**names, "policy": policy, **_rescues(part, a.settings.level)}


def _rescues(part: pd.DataFrame, level: float) -> dict[str, Any]:
    invalid = part[~part["valid_before"].astype(bool)]
    graded = invalid[invalid["gold"].notna()]
    rescued = graded[graded["valid"].astype(bool)]
    false = rescued[~rescued["gold"].astype(bool)]
    # Where a rule that loses something made a value wrong.
    changed = sum(
        any(wrong and not RULES[rule].lossless for rule, _, wrong in rules)
        for rules in false["rules"]
    )
    right = part[part["valid_before"].astype(bool) & _true(part["gold_before"])]
    compared = part[part["idempotent"].notna()]
    return {
        "calls": len(part),
        "invalid": len(invalid),
        "rescues": int(invalid["valid"].sum()),
        "true_rescues": int(graded["gold"].sum()),
        "false_rescues": len(false),
        "changed_meaning": changed,
        "faithful": len(false) - changed,
        "right_before": len(right),
        "harmed": int((~right["gold"].astype(bool)).sum()),
        **share("rescued", invalid["valid"], invalid, level),
        **share("true_rescue", graded["gold"], graded, level),
        **share("false_rescue", ~rescued["gold"].astype(bool), rescued, level),
        **share("harm", ~right["gold"].astype(bool), right, level),
        **share("idempotent", compared["idempotent"], compared, level),
    }


def rules_frame(a: Figures) -> pd.DataFrame:
    """One row per policy × coercion rule: the values it changed that are right, and wrong.

    Both base answers of every sample count, valid calls as well. Calls without a target do not.
    """
    columns = ("policy", "rule", "lossless", "calls", "applied", "right", "wrong", "right_share",
               "ci_low", "ci_high")  # fmt: skip
    return pd.DataFrame(list(_rules(a)), columns=list(columns))


def _rules(a: Figures) -> Rows:
    for policy in a.settings.policies:
        part = a.calls[a.calls["policy"] == policy]
        found: dict[str, list[tuple[str, int, int]]] = {}
        for case_id, rules in zip(part["case_id"], part["rules"], strict=True):
            for rule, right, wrong in rules:
                found.setdefault(rule, []).append((case_id, right, wrong))
        applied = {rule: sum(r + w for _, r, w in calls) for rule, calls in found.items()}
        for rule in sorted(found, key=lambda one: (-applied[one], one)):
            calls = found[rule]
            right = sum(r for _, r, _ in calls)
            flags = [flag for _, r, w in calls for flag in [True] * r + [False] * w]
            cases = [case_id for case_id, r, w in calls for _ in range(r + w)]
            yield {
                "policy": policy,
                "rule": rule,
                "lossless": RULES[rule].lossless,
                "calls": len(calls),
                "applied": applied[rule],
                "right": right,
                "wrong": applied[rule] - right,
                **ends(share_of(flags, cases, a.settings.level), "right_share", "ci_"),
            }


@frame_of
def layer3_frame(a: Figures) -> Rows:
    """One row per group × layer 1 × policy: the effect of corrections on the calls that were
    refused.

    entered: calls of which a correction was asked, or is to be. parse_rate: corrections that held
    arguments. success_at_k: entered calls that the tool took after at most k corrections.
    gold_rate: those that are gold at the end. true_rescues, harmed, net_rescue: calls that became
    gold, that were gold and are no more, and their difference. repeat_rate: readable corrections
    that brought arguments refused before. collateral: edits at fields that no one complained of,
    for each readable correction. Shares are NaN if a correction is missing.
    """
    for policy in a.settings.correct_under:
        of_policy = a.corrections[a.corrections["policy"] == policy]
        for names, part in groups_of(a.calls[a.calls["policy"] == policy], (*a.by, "l1")):
            figures = _corrections(a, part, under(of_policy, names))
            yield {**names, "policy": policy, **figures}


def _corrections(a: Figures, part: pd.DataFrame, questions: pd.DataFrame) -> dict[str, Any]:
    level = a.settings.level
    entered = part[_true(part["entered"])]
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
        **share("parse_rate", questions["status"] != "failed", questions, level),
        **share("repeat_rate", readable["status"] == "repeated", readable, level),
        **share("gold_rate", after, graded, level),
    }
    taken = ended["corrected_accepted"].astype(bool) & (ended["needed"] > 0)
    for k in range(1, a.settings.feedback.max_validation_retries + 1):
        out |= share(f"success_at_{k}", taken & (ended["needed"] <= k), ended, level)
    return out


# Costs.


@frame_of
def costs_frame(a: Figures) -> Rows:
    """One row per group × cell, means for an answer, all attempts and failures included.

    model_calls: beyond the base answer. tokens: in and out, corrections included. prompt_tokens: of
    the base question. cost: US dollars. latency_p50, latency_p95: seconds of the model, base answer
    and corrections. pauses: seconds of back-off between regular attempts, which are counted and
    not waited for. tool_calls: attempts and corrections. true_rescues: answers that are gold here
    and not in S000. Calls, tokens and cost for each of them are those beyond S000's, with intervals
    from resampling cases (see `intervals.ratio_of`).
    """
    for names, part in groups_of(a.answers, a.by):
        cells = {}
        for cell in CELLS:
            recorded = part_of(part, a.settings.policy, cell)
            recorded = recorded[recorded["parsed"].notna()]
            # Nothing is known of a cell if a correction is missing.
            cells[cell] = recorded.iloc[:0] if recorded["valid"].isna().any() else recorded
        for cell, some in cells.items():
            prices = _for_a_rescue(cells[START], some, a.settings.level)
            yield {**names, "cell": cell, **_spent(some), **prices}


def _totals(part: pd.DataFrame) -> pd.DataFrame:
    # Of each sample, base answer and corrections together.
    table = part.set_index(SAMPLE)
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
    graded = gap["gold"].dropna()
    out: dict[str, Any] = {"true_rescues": int((graded > 0).sum()) if len(graded) else stats.NAN}
    cases, rescued = gap.index.get_level_values("case_id").to_numpy(), (gap["gold"] > 0).to_numpy()
    for name in ("calls", "tokens", "cost"):
        price = ratio_of(gap[name].to_numpy(float), rescued, cases, level)
        out |= ends(price, f"{name}_per_rescue")
    return out


@frame_of
def scenarios_frame(a: Figures) -> Rows:
    """One row per group × level of layer 1 × scenario of corrections, for answers with all layers.

    n: answers of this scenario, those with a correction that is not on record left out. accepted:
    the share that the tools took, with its interval. calls, tokens, cost, seconds: the extra that
    corrections added to an answer, in the mean. Seconds are those of the model. base_seconds: of
    the first answer.
    """
    answers = a.answers[a.answers["policy"] == a.settings.policy]
    answers = answers[answers["l3"] & answers["accepted"].notna()]
    for names, part in groups_of(answers, (*a.by, "l1")):
        ends = zip(part["model_calls"], part["accepted"], strict=True)
        labels = np.array([scenario_of(int(n), ok=bool(ok)) for n, ok in ends])
        for scenario in SCENARIOS:
            own = part[labels == scenario]
            yield {
                **names,
                "scenario": scenario,
                "n": len(own),
                **share("accepted", own["accepted"], own, a.settings.level),
                "calls": _mean(own["model_calls"]),
                "tokens": _mean(own["extra_tokens"]),
                "cost": _mean(own["extra_cost"]),
                "seconds": _mean(own["extra_latency"]),
                "base_seconds": _mean(own["latency"]),
            }


@frame_of
def thresholds_frame(a: Figures) -> Rows:
    """One row per group × level of layer 1 × threshold, for calls under layers 2 and 3.

    count, total: the quantity counted, and out of what (`of` says it). ok: False if the rate is on
    the worse side of its limit, None out of nothing. tells: whether the interval lies on one side
    of the limit. advice: "" if the threshold holds. The two rates of corrections count nothing
    while one of them is not on record.
    """
    calls = a.calls[a.calls["policy"] == a.settings.policy]
    for names, part in groups_of(calls, (*a.by, "l1")):
        entered = part[_true(part["entered"])]
        # A call of a tool that nobody offered is not known either, but no tool takes it.
        is_open = bool(entered["corrected_accepted"].isna().any())
        ended, rescued = (part.iloc[:0], entered.iloc[:0]) if is_open else (part, entered)
        # In the order of `THRESHOLDS`.
        counted_of = (
            (part["steps"] > 0, part),
            (_true(part["entered"]), part),
            (rescued["needed"] > 0, rescued),
            (_true(ended["corrected_accepted"]), ended),
        )
        for threshold, (hits, out_of) in zip(THRESHOLDS, counted_of, strict=True):
            reading = Reading(threshold, int(hits.sum()), len(out_of))
            rate = share("rate", hits, out_of, a.settings.level, "ci_")
            known = reading.total > 0
            yield {
                **names,
                "threshold": threshold.name,
                "of": threshold.of,
                "worse": threshold.worse,
                "limit": threshold.limit,
                "count": reading.count,
                "total": reading.total,
                **rate,
                "ok": reading.ok if known else None,
                "tells": known and not rate["ci_low"] <= threshold.limit <= rate["ci_high"],
                "advice": "" if reading.ok else threshold.advice,
            }


@frame_of
def detectors_frame(a: Figures) -> Rows:
    """One row per detector × dialect: recall and precision, with Wilson intervals.

    Every different call that a model wrote is refused again. An invalid one is refused for its
    arguments, in the words of the dialect: a detector should see it. A valid one is refused for
    each of `OTHER_FAILURES` (a service that is down, a timeout, …): a detector should not.
    """
    different: dict[str, tuple[ToolSpec, Mapping[str, Any]]] = {}
    for answer in a.recorded.answers:
        for call in answer.calls:
            if call.tool is not None:
                arguments = call.arguments("none")
                key = f"{call.tool.name} {call.tool.schema_json} {write_canonical(arguments)}"
                different.setdefault(key, (call.tool, arguments))
    judged = [
        (tool, arguments, problems_of(arguments, tool))
        for tool, arguments in list(different.values())[:MOST_CALLS]
    ]
    chosen: dict[str, Sequence[Detector]] = {name: [one] for name, one in DETECTORS.items()}
    chosen[ALL_IN_TURN] = detectors_of(a.settings.feedback.detectors)
    negatives = [
        Refused(failure, arguments, tool.schema_json)
        for tool, arguments, problems in judged
        if not problems
        for failure in OTHER_FAILURES
    ]
    for dialect, refuse in DIALECTS.items():
        positives = [
            Refused(refuse(problems, arguments, tool), arguments, tool.schema_json)
            for tool, arguments, problems in judged
            if problems
        ]
        for name, detectors in chosen.items():
            hits = sum(bool(detect(one, detectors)) for one in positives)
            false = sum(bool(detect(one, detectors)) for one in negatives)
            level = a.settings.level
            yield {
                "detector": name,
                "dialect": dialect,
                "invalid": len(positives),
                "detected": hits,
                **ends(stats.wilson(hits, len(positives), level), "recall"),
                "other_failures": len(negatives),
                "false_alarms": false,
                **ends(stats.wilson(hits, hits + false, level), "precision"),
            }


class Figures(Frames):
    """The figures of an ablation as pandas frames, each made when it is first asked for."""

    cells = cached_property(cells_frame)
    tests = cached_property(tests_frame)
    attribution = cached_property(attribution_frame)
    layer1 = cached_property(layer1_frame)
    layer2 = cached_property(layer2_frame)
    rules = cached_property(rules_frame)
    layer3 = cached_property(layer3_frame)
    detectors = cached_property(detectors_frame)
    costs = cached_property(costs_frame)
    scenarios = cached_property(scenarios_frame)
    thresholds = cached_property(thresholds_frame)

    @property
    def missing(self) -> tuple[str, ...]:
        """The keys of the questions without an answer. See `Recorded.missing`."""
        return self.recorded.missing

    def check(self) -> None:
        """Raise MissingRecording that names the things to be recorded, if anything."""
        if self.missing:
            names = ", ".join(self.missing[:5])
            more = f" and {len(self.missing) - 5} more" if len(self.missing) > 5 else ""
            raise MissingRecording(
                f"not recorded for this ablation: {counted(len(self.missing), 'answer')}, "
                f"{names}{more}",
                keys=self.missing,
                hint=f"lab.ablation({self.run.run_id!r}) with the models asks them",
            )

    def figure(self, name: str) -> pd.DataFrame:
        """Return the frame of one of `FIGURES`. Raises BadOptions for others."""
        check_names([name], FIGURES, "an ablation has no such figure")
        frame: pd.DataFrame = getattr(self, name)
        return frame
