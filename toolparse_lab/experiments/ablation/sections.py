"""The figures of an ablation as tables, which HTML, Markdown and terminal show alike."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial

import pandas as pd

from ...evals.reports.pages.columns import (
    Column,
    Listing,
    Row,
    money,
    number,
    percent,
    points,
    span,
)
from .figures import Figures


def listing_of(ablation: Figures, name: str) -> Listing:
    """Return one of `figures.FIGURES` as a table. Raises BadOptions for another name."""
    frame = ablation.figure(name)
    title, lead, own = SECTIONS[name]
    columns = [*(_word(key) for key in ablation.by if key in frame), *own]
    if name == "layer3":
        # As many as corrections are allowed.
        found = (re.fullmatch(r"success_at_(\d+)", str(column)) for column in frame)
        columns += [_share(one[0], f"success at {one[1]}") for one in found if one]
    return Listing(title, lead, columns, frame.to_dict("records"))


def _column(key: str, head: str, form: Callable[[object], str], kind: str = "") -> Column:
    return Column(head or key.replace("_", " "), kind, key, form)


def _word(key: str, head: str = "", kind: str = "l k") -> Column:
    return _column(key, head, str, kind)


def _number(key: str, head: str = "", form: str = ".2f") -> Column:
    return _column(key, head, number(f",{form}"))


_count = partial(_number, form=".0f")


def _share(key: str, head: str = "", prefix: str | None = None, *, gain: bool = False) -> Column:
    # prefix: of the interval's columns, or None for the figure's own name. gain: in points.
    stem = f"{key}_" if prefix is None else prefix

    def text(row: Row) -> str:
        low, high = row.get(f"{stem}low"), row.get(f"{stem}high")
        words = points(row[key]) if gain else percent(row[key])
        ends = f"{points(low)}, {points(high)}" if gain else span(low, high)
        return words if low is None or pd.isna(low) else f"{words} [{ends}]"

    return Column(head or key.replace("_", " "), text=text)


_gain = partial(_share, gain=True)


def price_words(row: Row, name: str, form: Callable[[float], str]) -> str:
    """Return a price with its interval. '–' where nothing was bought."""
    price: float = row[name]
    if math.isnan(price):
        return "–"
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{form(price)} [{form(low)}–{'∞' if math.isinf(high) else form(high)}]"


def _price(key: str, head: str, form: Callable[[float], str]) -> Column:
    return Column(head, text=lambda row: price_words(row, key, form))


def _limit(row: Row) -> str:
    return f"{'at most' if row['worse'] == 'above' else 'at least'} {percent(row['limit'])}"


def _verdict(row: Row) -> str:
    # Holds or broken, how sure that is, and the advice.
    if row["ok"] is None:
        return "not measured"
    words = "holds" if row["ok"] else f"broken: {row['advice']}"
    return words if row["tells"] else f"{words} (too few to tell)"


def _bounds(row: Row) -> str:
    is_open = row["missing"] or row["missing_corrections"]
    return span(row["worst"], row["best"]) if is_open else ""


_LAYER_1 = _column("l1", "layer 1", lambda on: "on" if on else "off", "l k")

SECTIONS: Mapping[str, tuple[str, str, tuple[Column, ...]]] = {
    "cells": (
        "The eight cells",
        "S and three digits: layer 1 (prompt), 2 (coercion), 3 (correction), 1 where it is there. "
        "Each answer climbs four rungs: its calls could be read, are valid under the schema, were "
        "taken by the tool, and are the wanted ones (gold). Gold is the headline: valid is not "
        "correct. Intervals are clustered by case. A cell of which a correction is not recorded is "
        "not known; its bounds say how far it could move.",
        (
            _word("cell"),
            _count("n"),
            _count("n_cases", "cases"),
            _share("parsed"),
            _share("valid"),
            _share("accepted"),
            _share("gold"),
            _count("missing"),
            _count("missing_corrections", "missing corrections"),
            Column("bounds of gold", text=_bounds),
        ),
    ),
    "attribution": (
        "What each layer adds",
        "In points: the gain in the order 1, 2, 3, which is that of the waterfall, and the Shapley "
        "share, which is the mean gain over all six orders. Both add up to S111 − S000. Where two "
        "layers mend the same answers, the earlier one has all the gain and each its share. A gain "
        "has the interval of comparisons, a share one from resampling cases. Layer 1 is S000 → "
        "S100, without coercion: a comparison under the policy none. One under safe asks another "
        "question, S010 → S110.",
        (
            _word("rung"),
            _word("layer"),
            _word("from", kind="l"),
            _word("to", kind="l"),
            _count("n"),
            _share("rate_from", "rate before", prefix="none_"),
            _share("rate_to", "rate after", prefix="none_"),
            _gain("gain", "gain"),
            _gain("shapley", "Shapley share"),
        ),
    ),
    "layer1": (
        "Layer 1: the prompt",
        "Parameters whose type is wrong as the model wrote them, of all that the schema types; the "
        "lift of gold that the prompt makes alone, in points; and its price in prompt tokens, in "
        "all and for each type error less.",
        (
            _LAYER_1,
            *map(_count, ("calls", "typed", "mistyped")),
            _share("type_error_rate", "type errors", prefix="ci_"),
            _gain("lift", "lift"),
            _count("extra_prompt_tokens", "extra tokens"),
            _count("errors_avoided", "errors avoided"),
            _number("tokens_per_error", "tokens an error", ".0f"),
        ),
    ),
    "layer2": (
        "Layer 2: coercion",
        "The same answers under each policy. Rescued: invalid calls that are valid after it. True "
        "rescues are also the wanted call; a false rescue is valid and wrong: either coercion "
        "changed the meaning, or it was faithful to a value that was wrong already. Harm: calls "
        "that were right before it and are not after.",
        (
            _LAYER_1,
            _word("policy"),
            _count("invalid"),
            _share("rescued"),
            _share("true_rescue", "true rescues"),
            _share("false_rescue", "false of rescued"),
            _count("changed_meaning", "changed meaning"),
            _count("faithful", "faithful to wrong"),
            _count("right_before", "right before"),
            _share("harm"),
            _share("idempotent", prefix="none_"),
        ),
    ),
    "rules": (
        "Layer 2, rule by rule",
        "Values that a rule changed, each held to the wanted one at its own place; both base "
        "answers of every sample count.",
        (
            _word("policy"),
            _word("rule", kind="l k c"),
            Column("lossless", "l", form=lambda lossless: "yes" if lossless else "no"),
            *map(_count, ("applied", "right", "wrong")),
            _share("right_share", "right of applied", prefix="ci_"),
        ),
    ),
    "layer3": (
        "Layer 3: corrections",
        "Calls that the tool refused and the model was asked about. Success is that the tool took "
        "the call, after at most k corrections; gold is that it was the wanted one.",
        (
            _LAYER_1,
            _word("policy"),
            *map(_count, ("entered", "missing", "corrections")),
            _share("parse_rate", "readable"),
            _share("repeat_rate", "repeated"),
            _number("collateral", "collateral edits"),
            _count("true_rescues", "true rescues"),
            _count("harmed"),
            _count("net_rescue", "net"),
            _share("gold_rate", "gold at the end"),
        ),
    ),
    "costs": (
        "What it costs",
        "Means of an answer, all attempts and failures included. Calls of the model are those "
        "beside the base answer; pauses are counted and not waited for. A true rescue is an answer "
        "that is gold here and not in S000; its price is what the cell costs beyond S000.",
        (
            _word("cell"),
            _count("n"),
            _number("model_calls", "extra calls"),
            _number("tokens", "tokens", ".0f"),
            _column("cost", "cost ($)", money),
            _number("latency_p50", "latency p50 (s)"),
            _number("latency_p95", "latency p95 (s)"),
            _number("pauses", "pauses (s)"),
            _number("tool_calls", "tool calls"),
            _count("true_rescues", "true rescues"),
            _price("calls_per_rescue", "calls a rescue", "{:,.2f}".format),
            _price("tokens_per_rescue", "tokens a rescue", "{:,.0f}".format),
            _price("cost_per_rescue", "$ a rescue", money),
        ),
    ),
    "scenarios": (
        "What corrections cost, by how many were needed",
        "Answers under all three layers. Calls, tokens, dollars and seconds are those beside the "
        "first answer, in the mean; seconds are the model's. A scenario that did not occur has no "
        "figures.",
        (
            _LAYER_1,
            _word("scenario"),
            _count("n"),
            _share("accepted"),
            _number("calls", "extra calls"),
            _number("tokens", "extra tokens", ".0f"),
            _column("cost", "extra $", money),
            _number("seconds", "extra seconds"),
            _number("base_seconds", "seconds of the first answer"),
        ),
    ),
    "thresholds": (
        "Held against the thresholds of a service",
        "Calls under layers 2 and 3. A rate on the worse side of its limit has advice. Where the "
        "interval holds the limit, these calls are too few to tell.",
        (
            _LAYER_1,
            _word("threshold"),
            _word("of", "share of", kind="l"),
            *map(_count, ("count", "total")),
            _share("rate", prefix="ci_"),
            Column("limit", text=_limit),
            Column("verdict", "l", text=_verdict),
        ),
    ),
    "tests": (
        "Differences between cells",
        "On the same answers, in points. Exact McNemar test where each case has one answer, the "
        "sign-flip test on the cases' rates otherwise; adjusted by Holm over the rows of one "
        "contrast.",
        (
            _word("rung"),
            _word("contrast"),
            _word("a", kind="l"),
            _word("b", kind="l"),
            _count("n"),
            _share("rate_a", "rate a", prefix="none_"),
            _share("rate_b", "rate b", prefix="none_"),
            _gain("difference", "b−a", "ci_"),
            _count("only_a", "only a"),
            _count("only_b", "only b"),
            _word("test", kind="l"),
            _number("p", "p", ".3f"),
            _number("p_holm", "p (Holm)", ".3f"),
        ),
    ),
    "detectors": (
        "Detectors",
        "Every different call refused anew in the words of each kind of server. Recall: of the "
        "invalid calls, those that a detector sees. Precision: of all it sees, those that were "
        "invalid; the others are valid calls refused for another reason (a service that is down, "
        "a timeout, …), six for each valid call.",
        (
            _word("detector"),
            _word("dialect"),
            *map(_count, ("invalid", "detected")),
            _share("recall"),
            _count("other_failures", "other failures"),
            _count("false_alarms", "false alarms"),
            _share("precision"),
        ),
    ),
}
"""Figure -> title, lead and columns, in the order of a page: what is asked first comes first."""
