"""How much of a success rate hangs on the strictness of the comparison: the same answers under several matchers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ...errors import BadOptions
from ...values import read_strict
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from ..scoring.match import agree
from ..scoring.outcomes import SUCCESSES
from ..scoring.trial import Trial
from . import stats

STRICTNESS: Mapping[str, Matchers] = {
    "exact": DEFAULT_MATCHERS,
    "casefold": Matchers(types={"string": "casefold"}),
    "normalised": Matchers(types={"string": "normalised"}),
    "approximate": Matchers(types={"string": "normalised", "number": "approximate"}),
    "any value": Matchers(types=dict.fromkeys(("string", "number", "boolean", "null"), "ignore")),
}
"""From strict to loose: as scored; case of letters; punctuation and white space too; numbers up to a millionth; the
right tool with the right arguments, whatever their scalar values."""
SENSITIVITY_COLUMNS = ("matching", "n", "success", "ci_low", "ci_high", "gain")


def sensitivity_frame(
    trials: Iterable[Trial],
    by: Sequence[str] = ("model", "arm"),
    levels: Mapping[str, Matchers] | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Success of each cell under each strictness: one row a cell and level, `gain` against the first level.

    A rate that rises much under looser matching speaks of targets that are too narrow (or of a model that is careless
    with spelling), not of calls that could not be read. Only trials of which the outcome can depend on matching are
    compared anew. Raises BadOptions for a column a trial has not.
    """
    chosen = STRICTNESS if levels is None else levels
    if not chosen:
        raise BadOptions("there is no level of strictness", expected=", ".join(STRICTNESS))
    cells: dict[tuple[str, ...], tuple[list[str], dict[str, list[bool]]]] = {}
    for trial in trials:
        if trial.score is None or trial.score.success is None:
            continue
        cases, found = cells.setdefault(_keys(trial, by), ([], {name: [] for name in chosen}))
        cases.append(trial.case_id)
        for name, matchers in chosen.items():
            found[name].append(_succeeds(trial, matchers))
    rows: list[dict[str, Any]] = []
    for keys, (cases, found) in cells.items():
        first = None
        for name, values in found.items():
            interval = stats.clustered_interval(values, cases, level)
            first = interval.rate if first is None else first
            rates = {"success": interval.rate, "ci_low": interval.low, "ci_high": interval.high}
            row = {**dict(zip(by, keys, strict=True)), "matching": name, "n": len(values)}
            rows.append({**row, **rates, "gain": interval.rate - first})
    return pd.DataFrame(rows, columns=[*by, *SENSITIVITY_COLUMNS])


def _keys(trial: Trial, by: Sequence[str]) -> tuple[str, ...]:
    out = []
    for name in by:
        if name == "category":
            out.append(str(trial.case.category or ""))
        elif hasattr(trial, name):
            out.append(str(getattr(trial, name)))
        else:
            raise BadOptions(
                "a trial has no such column", got=name, expected="model, arm, prompt_protocol, category, …"
            )
    return tuple(out)


def _succeeds(trial: Trial, matchers: Matchers) -> bool:
    score, result = trial.score, trial.result
    assert score is not None  # noqa: S101 - the caller looked
    barred = trial.levels.get("tool_choice") == "none"
    fixed = score.outcome not in ("correct", "wrong_call") or score.sub_code in (
        "unknown_tool",
        "one_of_several_broken",
    )
    if fixed or barred or result is None:
        return score.outcome in SUCCESSES
    calls = [(c.name, read_strict(c.arguments_json or "{}")) for c in result.calls if c.ok]
    return agree(calls, trial.case.target or [], trial.case.tools or result.tools, matchers)
