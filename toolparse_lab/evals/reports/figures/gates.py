"""Gates: thresholds that every cell of a report has to keep.

Anything not known never passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core import hooks
from ....core.errors import BadOptions, GateFailed, UnknownName, near

if TYPE_CHECKING:
    from .report import Report

AT_LEAST = frozenset({
    "success", "strict", "repaired", "safe", "coerced", "naive", "worst", "best", "ci_low", "n",
    "n_cases", "answered", "called", "distinct", "pass_at_k", "pass_all_k", "answer", "n_answer",
    "diff_low", "difference", "paired",
})  # fmt: skip
"""Columns of which more is better: their thresholds are least values. Those of all others are
greatest ones."""
SHARES = frozenset({
    "success", "strict", "repaired", "safe", "coerced", "naive", "worst", "best", "ci_low",
    "ci_high", "fabricated", "coercion_rate", "repair_rate", "noise", "distinct", "pass_at_k",
    "pass_all_k", "answer", "diff_low", "diff_high", "difference", "p", "p_holm",
})  # fmt: skip
"""Columns of which no value is above 1."""
_OF_BASELINE = frozenset({"paired", "difference", "diff_low", "diff_high", "p", "p_holm"})
# Why a column has no value, where one reason is enough.
_UNKNOWN = {
    "cost": "no cost is recorded, for want of a price", "latency_p50": "no latency is recorded",
    "latency_p95": "no latency is recorded", "tokens_mean": "no tokens are recorded",
    "answer": "no case wants a last text", "n_answer": "no case wants a last text",
    "coercion_rate": "no answer has a call", "repair_rate": "no answer has a call",
} | dict.fromkeys(_OF_BASELINE, "it has no cases in common with the baseline's cell")  # fmt: skip
_OF_REPETITIONS = frozenset({"pass_at_k", "pass_all_k", "noise", "distinct"})
# What is held to a bound of success, which has an interval too.
_NAMES = {
    "success": "success as measured, whatever its interval, against",
    "ci_low": "the lower end of success's interval against",
}
# Column -> the column with the number of trials that it is a share of, where that is not n.
_COUNTED_BY = {
    "fabricated": "answered",
    "coercion_rate": "called",
    "repair_rate": "called",
    "answer": "n_answer",
}


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One cell held to one threshold.

    `n` is the number of answers behind `value`. `value` is NaN if nothing was.
    """

    cell: str
    metric: str
    value: float
    n: int
    bound: float
    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """The checks of every cell against every threshold. True if all hold."""

    checks: tuple[GateCheck, ...]

    @property
    def ok(self) -> bool:
        return all(c.ok for c in self.checks)

    @property
    def failures(self) -> tuple[GateCheck, ...]:
        return tuple(c for c in self.checks if not c.ok)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per check: cell, metric, value, n, bound, ok, sentence."""
        names = GateCheck.__slots__
        return pd.DataFrame(
            [[getattr(c, n) for n in names] for c in self.checks], columns=list(names)
        )

    def __bool__(self) -> bool:
        return self.ok

    def raise_(self) -> None:
        """Raise GateFailed with the sentences of the failed checks.

        Nothing if the gate holds.
        """
        if not self.ok:
            raise GateFailed(str(self))

    def __str__(self) -> str:
        checks = f"{len(self.checks)} check{'' if len(self.checks) == 1 else 's'}"
        head = f"gate passed: {checks}"
        if not self.ok:
            head = f"gate failed: {len(self.failures)} of {checks}"
        head += "".join(
            f"; {_NAMES[metric]} {bound:g}"
            for metric, bound in dict.fromkeys((c.metric, c.bound) for c in self.checks)
            if metric in _NAMES
        )
        return "\n".join([head, *(f"  {c.sentence}" for c in self.failures)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(hooks.call("figure_html", self))


def check_gates(report: Report, thresholds: Mapping[str, Any]) -> GateResult:
    """Hold every cell of a report to every threshold that is not None.

    Raises BadOptions for a column the report has not, for a threshold that is not a number or above
    1 if a share is meant, and if there is none.
    """
    bounds = _bounds(report, thresholds)
    if report.frame.empty:
        sentence = "there are no trials in this report, so there is nothing to judge"
        return GateResult(
            tuple(GateCheck("all", m, math.nan, 0, b, False, sentence) for m, b in bounds.items())
        )
    checks = []
    for row in report.frame.to_dict("records"):
        checks += [_check(report, row, metric, bound) for metric, bound in bounds.items()]
    return GateResult(tuple(checks))


def _bounds(report: Report, thresholds: Mapping[str, Any]) -> dict[str, float]:
    numbers = [str(c) for c in report.frame if c not in (*report.by, "reason")]
    bounds = {}
    for metric, limit in thresholds.items():
        if limit is None:
            continue
        if metric not in numbers:
            hint = near(metric, numbers)
            if metric in _OF_BASELINE:
                hint = "a difference needs a report with a baseline"
            raise UnknownName(
                "the report has no such column to gate on",
                got=metric,
                expected=", ".join(numbers),
                hint=hint,
                code="unknown-column",
            )
        bounds[metric] = _bound(metric, limit)
    if not bounds:
        raise BadOptions(
            "a gate has at least one threshold", got="none", expected="success=0.95, for example"
        )
    return bounds


def _bound(metric: str, limit: Any) -> float:
    # True and False are ints to Python, and a slip to whoever wrote them.
    is_number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
    if not is_number or not math.isfinite(limit):
        raise BadOptions(f"the threshold of {metric} is no number", got=limit, expected="a number")
    if metric in SHARES and limit > 1:
        hint = f"{limit / 100:g} for {limit:g} %" if limit <= 100 else None
        raise BadOptions(
            f"the threshold of {metric} is a share", got=limit, expected="0 to 1", hint=hint
        )
    return float(limit)


def _check(report: Report, row: Mapping[Any, Any], metric: str, bound: float) -> GateCheck:
    name = report.cell_name(row)
    n = int(row[_COUNTED_BY.get(metric, "n")])
    # pandas has a second way of not knowing an integer, which float would not take.
    value = math.nan if pd.isna(row[metric]) else float(row[metric])
    if metric in _OF_BASELINE and report.is_baseline(row):
        ok, sentence = True, f"{name} is the baseline itself"
    elif math.isnan(value):
        ok, sentence = False, f"{name}: {metric} is not known ({_why_unknown(row, metric, n)})"
    else:
        ok, relation = _relation(metric, value, bound)
        sentence = f"{name}: {metric} is {value:.4g}, {relation} {bound:.4g} (n {n})"
    return GateCheck(name, metric, value, n, bound, ok, sentence)


def _relation(metric: str, value: float, bound: float) -> tuple[bool, str]:
    # (true where the threshold holds, the words for how the value compares with it).
    if metric in AT_LEAST:
        return (True, "at least") if value >= bound else (False, "below")
    return (True, "at most") if value <= bound else (False, "above")


def _why_unknown(row: Mapping[Any, Any], metric: str, n: int) -> str:
    if metric in _UNKNOWN:
        return _UNKNOWN[metric]
    if not row["n"]:
        return row["reason"] or "no trial of it was counted"
    if metric == "cost_per_success":
        return _UNKNOWN["cost"] if math.isnan(row["cost"]) else "no trial succeeded"
    if metric in _OF_REPETITIONS and row["k"] < 2:
        return "it needs several trials of a case, and here a case has one, or the cell pools arms"
    if metric in ("pass_at_k", "pass_all_k"):
        return f"the {row['k']} trials of each case are copies of one answer"
    return row["reason"] or f"nothing of its {n} trials says it"
