"""How much of a success rate hangs on the strictness of the comparison: the same answers under
several matchers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ....core.errors import BadOptions
from ....core.values import read_strict
from ...cases.matchers import DEFAULT_MATCHERS, Matchers
from ...scoring.match import agree
from ...scoring.outcomes import SUCCESSES
from ...scoring.score import Score
from ...scoring.trial import Trial
from . import stats

STRICTNESS: Mapping[str, Matchers] = {
    "exact": DEFAULT_MATCHERS,
    "casefold": Matchers(types={"string": "casefold"}),
    "normalised": Matchers(types={"string": "normalised"}),
    "approximate": Matchers(types={"string": "normalised", "number": "approximate"}),
    "any value": Matchers(types=dict.fromkeys(("string", "number", "boolean", "null"), "ignore")),
}
"""From strict to loose: as scored; case of letters; punctuation and white space too; numbers up to
a millionth; the right tool with the right arguments, whatever their scalar values."""
SENSITIVITY_COLUMNS = ("matching", "n", "success", "ci_low", "ci_high", "gain")


def sensitivity_frame(
    trials: Iterable[Trial],
    by: Sequence[str] = ("model", "arm"),
    levels: Mapping[str, Matchers] | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Success of each cell under each strictness: one row per cell and level, `gain` against the
    first level.

    A rate that rises much under looser matching speaks of targets that are too narrow (or of a
    model that is careless with spelling), not of calls that could not be read. Only trials of which
    the outcome can depend on matching are compared again. Raises BadOptions for a column per trial
    has not.
    """
    chosen = STRICTNESS if levels is None else levels
    if not chosen:
        raise BadOptions("there is no level of strictness", expected=", ".join(STRICTNESS))
    cells: dict[tuple[str, ...], _Cell] = {}
    for trial in trials:
        if trial.score is None or trial.score.success is None:
            continue
        cell = cells.setdefault(_keys(trial, by), _Cell([], {name: [] for name in chosen}))
        cell.cases.append(trial.case_id)
        for name, matchers in chosen.items():
            cell.successes[name].append(_succeeds(trial, matchers))
    rows: list[dict[str, Any]] = []
    for values, cell in cells.items():
        keys = dict(zip(by, values, strict=True))
        rows += ({**keys, **row} for row in cell.rows(level))
    return pd.DataFrame(rows, columns=[*by, *SENSITIVITY_COLUMNS])


@dataclass(frozen=True, slots=True)
class _Cell:
    cases: list[str]
    successes: dict[str, list[bool]]

    def rows(self, level: float) -> Iterator[dict[str, Any]]:
        first: float | None = None
        for name, flags in self.successes.items():
            interval = stats.clustered_interval(flags, self.cases, level)
            if first is None:
                first = interval.rate
            yield {
                "matching": name,
                "n": len(flags),
                "success": interval.rate,
                "ci_low": interval.low,
                "ci_high": interval.high,
                "gain": interval.rate - first,
            }


def _keys(trial: Trial, by: Sequence[str]) -> tuple[str, ...]:
    keys = []
    for name in by:
        if name == "category":
            keys.append(str(trial.case.category or ""))
        elif hasattr(trial, name):
            keys.append(str(getattr(trial, name)))
        else:
            raise BadOptions(
                "a trial has no such column",
                got=name,
                expected="model, arm, prompt_protocol, category, …",
            )
    return tuple(keys)


def _succeeds(trial: Trial, matchers: Matchers) -> bool:
    score, result = trial.score, trial.result
    assert score is not None  # noqa: S101 - the caller looked
    if result is None or not _depends_on_matching(trial, score):
        return score.outcome in SUCCESSES
    calls = [(c.name, read_strict(c.arguments_json or "{}")) for c in result.calls if c.ok]
    return agree(calls, trial.case.target or [], trial.case.tools or result.tools, matchers)


def _depends_on_matching(trial: Trial, score: Score) -> bool:
    # The calls were read and compared.
    # Where no call was allowed, any call is wrong, whatever its arguments.
    if trial.levels.get("tool_choice") == "none":
        return False
    if score.outcome not in ("correct", "wrong_call"):
        return False
    return score.sub_code not in ("unknown_tool", "one_of_several_broken")
