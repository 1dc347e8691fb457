"""Two arms on the same cases: the difference with its interval, the exact test, and the cases that flipped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..errors import BadOptions
from . import stats
from .cells import check_by, check_trials, groups

_DIMENSIONS = ("prompt_protocol", "parse_protocol", "arm", "model", "policy", "run_id")
COMPARISON_COLUMNS = (
    "n_cases", "success_a", "success_b", "difference", "ci_low", "ci_high", "only_a", "only_b", "ties", "p", "p_holm",
    "noise_a", "noise_b",
)  # fmt: skip


@dataclass(frozen=True)
class ArmComparison:
    """`b` against `a`, paired on cases. `frame` has one row a stratum of `within`, `flips` one row a flipped case."""

    a: str
    b: str
    on: str
    frame: pd.DataFrame
    flips: pd.DataFrame

    def __str__(self) -> str:
        head = f"{self.on}: {self.b} against {self.a}, paired on cases"
        table = self.frame.to_string(index=False, float_format=lambda x: f"{x:.3f}") if len(self.frame) else "no cases"
        return f"{head}\n{table}\n{len(self.flips)} cases flipped"

    def _repr_html_(self) -> str:
        note = f"{html.escape(self.on)}: {html.escape(self.b)} against {html.escape(self.a)}, paired on cases"
        tables = [_table(self.frame), f"<p>{len(self.flips)} flipped</p>", _table(self.flips)]
        return f"<div style='overflow-x:auto'><p>{note}</p>{''.join(tables)}</div>"


def _table(frame: pd.DataFrame) -> str:
    return str(frame.to_html(index=False, float_format=lambda x: f"{x:.3f}", na_rep="–"))


def column_of(trials: pd.DataFrame, a: str, b: str, on: str | None = None) -> str:
    """The column in which both values stand; raises BadOptions where there is none."""
    names = (on,) if on else _DIMENSIONS
    for name in names:
        if name in trials and {a, b} <= set(trials[name].dropna().astype(str)):
            return name
    known = "; ".join(f"{n}: {', '.join(sorted(set(trials[n].dropna().astype(str))))}" for n in names if n in trials)
    raise BadOptions("no column holds both of these arms", got=f"{a}, {b}", expected=known or "an arm of this run")


def compare_arms(
    trials: pd.DataFrame,
    a: str,
    b: str,
    *,
    on: str | None = None,
    within: str | Sequence[str] | None = "model",
    policy: str = "safe",
    level: float = 0.95,
    seed: int = 0,
) -> ArmComparison:
    """Compare two values of a column (found by itself, or `on`), within the strata of other columns.

    Only cases judged in both arms count; p values are Holm's over the strata.
    """
    check_trials(trials)
    on = column_of(trials, a, b, on)
    strata = [c for c in check_by(trials, within or [on]) if c != on]
    part = trials if on == "policy" else trials[trials["policy"] == policy]
    part = part[part["score_success"].notna()]
    rows = []
    flips: list[pd.DataFrame] = []
    for values, stratum in groups(part, strata) if strata else [((), part)]:
        left, right = (stratum[stratum[on].astype(str) == x] for x in (a, b))
        if left.empty or right.empty:
            continue
        x, xc = left["score_success"].astype(bool).tolist(), left["case_id"].tolist()
        y, yc = right["score_success"].astype(bool).tolist(), right["case_id"].tolist()
        test = stats.paired_mcnemar(x, xc, y, yc)
        gap = stats.bootstrap_difference(x, xc, y, yc, level, seed=seed)
        shared = set(xc) & set(yc)
        rows.append(
            {
                **dict(zip(strata, values, strict=True)),
                "n_cases": len(shared),
                "success_a": _mean(x, xc, shared),
                "success_b": _mean(y, yc, shared),
                "difference": gap.rate,
                "ci_low": gap.low,
                "ci_high": gap.high,
                "only_a": test.only_a,
                "only_b": test.only_b,
                "ties": test.ties,
                "p": test.p,
                "noise_a": stats.noise_floor(x, xc),
                "noise_b": stats.noise_floor(y, yc),
            }
        )
        flips.append(_flips(left, right, dict(zip(strata, values, strict=True))))
    frame = pd.DataFrame(rows, columns=[*strata, *(c for c in COMPARISON_COLUMNS if c != "p_holm")])
    frame.insert(list(frame).index("p") + 1, "p_holm", stats.holm(frame["p"].tolist()))
    columns = [*strata, *_FLIPS]
    flipped = pd.concat([f for f in flips if len(f)], ignore_index=True) if any(map(len, flips)) else pd.DataFrame()
    return ArmComparison(a, b, on, frame, flipped.reindex(columns=columns))


_FLIPS = (
    "case_id", "direction", "success_a", "success_b", "outcome_a", "outcome_b", "trial_id_a", "trial_id_b",
)  # fmt: skip


def _mean(values: list[bool], cases: list[Any], shared: set[Any]) -> float:
    kept = [v for v, c in zip(values, cases, strict=True) if c in shared]
    return sum(kept) / len(kept) if kept else stats.NAN


def _flips(left: pd.DataFrame, right: pd.DataFrame, stratum: dict[str, str]) -> pd.DataFrame:
    """Cases whose majority differs, with a trial of each side that shows it."""
    sides = [dict(groups(side, ["case_id"])) for side in (left, right)]
    rows = []
    for (case_id,), one in sides[0].items():
        two = sides[1].get((case_id,))
        if two is None:
            continue
        rates = [float(side["score_success"].astype(bool).mean()) for side in (one, two)]
        if (rates[0] - 0.5) * (rates[1] - 0.5) >= 0:
            continue
        row: dict[str, Any] = {**stratum, "case_id": case_id, "direction": "gained" if rates[1] > rates[0] else "lost"}
        for name, side, rate in (("a", one, rates[0]), ("b", two, rates[1])):
            shown = side[side["score_success"].astype(bool) == (rate > 0.5)].iloc[0]
            row |= {
                f"success_{name}": rate,
                f"outcome_{name}": str(shown["outcome"]),
                f"trial_id_{name}": str(shown["trial_id"]),
            }
        rows.append(row)
    return pd.DataFrame(rows, columns=[*stratum, *_FLIPS])
