"""The cost of the layers: calls of the model, tokens, seconds.

Each of them for a true rescue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...core.types import Policy
from ...evals.reports.figures import stats
from ...middleware.correction.monitoring import SCENARIOS, scenario_of
from .cells import CELLS, cell_name, groups_of, part_of
from .intervals import ratio_of, share_of

_SAMPLE = ["model", "protocol", "case_id", "trial"]


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
    table = part.set_index(_SAMPLE)
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
