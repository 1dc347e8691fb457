"""A plan as a TOML file: what `Lab.plan` takes, limits and gates beside it, and models by the names of the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import BadPlan, BadSettings
from .evals.cases.case import Cases, load_cases
from .evals.cases.rows import Errors
from .runner.summary import LIMITS
from .runner.types import Model
from .settings import Settings, Source, check_keys, is_path, model_of, read_toml

KEYS: Mapping[str, str] = {
    "cases": "a file of cases, relative to the plan, or bfcl",
    "columns": 'a table of what the file calls things: question = "input"; an empty text leaves a column out',
    "where": "a table of what cases must have: id, category, or a member of their metadata; one value or a list",
    "sample": "how many of them, shared out over their categories",
    "models": "names of configured models, litellm model strings, or a table of models",
    "protocols": "prompt protocols",
    "trials": "how often each case is asked",
    "seed": "the base of the seeds, and of the order",
    "stream": "whether answers are streamed",
    "settings": "a table of factors (one value, or a list of levels) and sampling parameters",
    "limits": "a table of max_cost, max_calls, deadline",
    "gate": "a table of thresholds: the least success, and so on",
    "baseline": "the protocol, arm or model that reports compare with",
}


@dataclass(frozen=True, slots=True)
class PlanFile:
    """What a plan file says; all of it may be left out and given by hand."""

    source: Source | None = None
    cases: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    sample: int | None = None
    models: Mapping[str, Model] = field(default_factory=dict)
    protocols: Sequence[str] = ()
    trials: int = 1
    seed: int = 0
    stream: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    gate: Mapping[str, float] = field(default_factory=dict)
    baseline: str | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)


def read_plan_file(path: str | Path, settings: Settings) -> PlanFile:
    """A plan file; names of models are looked up in `settings`. Raises BadSettings naming the line."""
    path = Path(path)
    table, text = read_toml(path, "plan")
    source = Source(path, table, text)
    check_keys(table, KEYS, source, "part of a plan")
    kinds: dict[str, type | tuple[type, ...]] = {
        "cases": str, "columns": dict, "where": dict, "sample": int, "models": (list, dict, str),
        "protocols": (list, str), "trials": int, "seed": int, "stream": bool, "settings": dict, "limits": dict,
        "gate": dict, "baseline": str,
    }  # fmt: skip
    for name, value in table.items():
        kind = kinds[name]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise BadSettings(f"{source.place(name)}: `{name}` is {KEYS[name]}", got=value)
    check_keys(table.get("limits", {}), LIMITS, source, "limit")
    for column, meaning in table.get("columns", {}).items():
        if not isinstance(meaning, str):
            raise BadSettings(f"{source.place('columns', column)}: `columns` is {KEYS['columns']}", got=meaning)
    values = dict(table)
    values["columns"] = {column: meaning or None for column, meaning in table.get("columns", {}).items()}
    if "cases" in values and is_path(values["cases"]):
        values["cases"] = str(path.parent / values["cases"])
    for name in ("models", "protocols"):
        if isinstance(values.get(name), str):
            values[name] = [values[name]]
    named = values.pop("models", [])
    if isinstance(named, Mapping):
        models = {alias: model_of(alias, given, source, settings.environ) for alias, given in named.items()}
    else:
        models = models_of(named, settings)
    return PlanFile(source, models=models, **values)


def models_of(names: Sequence[Any], settings: Settings) -> dict[str, Model]:
    """Configured models by name; what has a provider/ and is not configured is a litellm model string."""
    return {
        name: Model(name) if name not in settings.tables and "/" in name else settings.model(name)
        for name in map(str, names)
    }


def chosen_cases(
    source: str,
    where: Mapping[str, Any],
    sample: int | None,
    seed: int,
    *,
    columns: Mapping[str, str | None] | None = None,
    errors: Errors = "raise",
) -> Cases:
    """The cases of a plan; raises what `load_cases` raises, and BadPlan where none fits."""
    cases = load_cases(source, columns=columns or None, errors=errors)
    if where:
        cases = cases.filter(**where)
        if not len(cases):
            raise BadPlan(
                "no case has all of this", got=dict(where), hint="look at `toolparse validate` for what is there"
            )
    return cases if sample is None else cases.sample(sample, seed=seed)
