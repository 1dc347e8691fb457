"""In which sampling parameters groups of trials differ, as they were really sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pandas as pd

from ....core.values import write_canonical
from ....runner.exchange.details import SAMPLING

_NOT_SENT = "not sent"
_MANY = 3  # groups that are named


def sampling_differences(groups: Mapping[str, pd.DataFrame], *, within: bool = False) -> str:
    """Return the parameters in which these groups of trials differ, '' if there is none.

    groups: rows of a trials frame by name. Groups without a record of their sampling are left out.
    within: also parameters in which the trials of one group differ.
    """
    values = {name: found for name, part in groups.items() if (found := _values(part))}
    clauses = []
    for param in SAMPLING:
        by_value: dict[str, list[str]] = {}
        for name, found in values.items():
            by_value.setdefault(found.get(param, _NOT_SENT), []).append(name)
        mixed = within and any(" and " in value for value in by_value)
        if len(by_value) > 1 or mixed:
            places = [f"{value} in {_named(names)}" for value, names in by_value.items()]
            clauses.append(f"{param} is {', '.join(places)}")
    return "; ".join(clauses)


def _named(names: list[str]) -> str:
    if len(names) > _MANY:
        names = [*names[: _MANY - 1], f"{len(names) - _MANY + 1} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _values(part: pd.DataFrame) -> dict[str, str]:
    # Seeds go up with the trial, so what counts of them is the seed of trial 0.
    if "sampling_json" not in part:
        return {}
    columns = ["sampling_json", "trial"] if "trial" in part else ["sampling_json"]
    rows = part[columns].dropna(subset=["sampling_json"]).drop_duplicates()
    samplings = []
    for row in rows.itertuples(index=False):
        sampling = dict(_read(str(row[0])))
        seed = sampling.get("seed")
        if isinstance(seed, int) and len(columns) > 1 and not pd.isna(row[1]):
            sampling["seed"] = seed - int(row[1])
        samplings.append(sampling)
    names = {name for sampling in samplings for name in sampling}
    return {
        name: " and ".join(sorted({_text(s[name]) if name in s else _NOT_SENT for s in samplings}))
        for name in names
    } or ({"": ""} if samplings else {})


@lru_cache(maxsize=1024)
def _read(text: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(text)
    return read


def _text(value: Any) -> str:
    # 0 and 0.0 are one setting.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return write_canonical(value)
