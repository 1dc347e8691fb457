"""A plan as a TOML file: the arguments of `Lab.plan`, limits and gates beside them.

Models may be named by the names of the settings. Everything that is wrong is reported with the line
it is in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import BadPlan, BadSettings
from ..evals.cases.collection import Cases
from ..evals.cases.loading import load_cases
from ..evals.cases.rows import Errors
from ..runner.exchange.summary import LIMITS
from ..runner.exchange.types import Model
from ..runner.settings import (
    SETTINGS,
    Settings,
    Source,
    check_keys,
    checked_value,
    is_path,
    model_of,
    read_toml,
)

KEYS: Mapping[str, str] = {
    "cases": "a file of cases, relative to the plan, or bfcl",
    "columns": 'a table of what the file calls things: question = "input"; an empty text leaves a '
    "column out",
    "where": "a table of what cases must have: id, category, or a member of their metadata; one "
    "value or a list",
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
"""Key of a plan file -> its meaning, as errors and the documentation show it."""
# Key -> the types of its value in TOML; a single name may do for a list.
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "cases": str,
    "columns": dict,
    "where": dict,
    "sample": int,
    "models": (list, dict, str),
    "protocols": (list, str),
    "trials": int,
    "seed": int,
    "stream": bool,
    "settings": dict,
    "limits": dict,
    "gate": dict,
    "baseline": str,
}
_EXAMPLES: Mapping[str, str] = {
    "cases": 'cases = "cases.jsonl"',
    "columns": 'columns = { question = "input" }',
    "where": 'where = { category = "single" }',
    "sample": "sample = 20",
    "models": 'models = ["small"]',
    "protocols": 'protocols = ["hermes"]',
    "trials": "trials = 3",
    "seed": "seed = 7",
    "stream": "stream = true",
    "settings": "settings = { max_tokens = 128 }",
    "limits": "limits = { max_cost = 1.0 }",
    "gate": "gate = { success = 0.9 }",
    "baseline": 'baseline = "hermes"',
}
"""Key of a plan file -> a line that has it right."""

_NO_PLAN = (
    "a plan is a TOML file that names cases, models and protocols; `toolparse init` writes "
    "plan.toml and the files it names"
)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The contents of a plan file. All of it may be left out and come from elsewhere."""

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
    """Return a plan file.

    Names of models are looked up in `settings`.

    A path to cases is relative to the file. Raises BadSettings naming the line.
    """
    path = Path(path)
    table, text = read_toml(path, "plan", _NO_PLAN)
    source = Source(path, table, text)
    _check_table(source)

    values = dict(table)
    # TOML has no null, so that an empty text says "leave this column out".
    columns = table.get("columns", {})
    values["columns"] = {column: meaning or None for column, meaning in columns.items()}
    # Names of built-in cases are no paths.
    if "cases" in values and is_path(values["cases"]):
        values["cases"] = str(path.parent / values["cases"])
    if isinstance(values.get("protocols"), str):
        values["protocols"] = [values["protocols"]]
    models = _models_in(values.pop("models", []), source, settings)
    return PlanFile(source, models=models, **values)


def _check_table(source: Source) -> None:
    table = source.table
    check_keys(table, KEYS, source, "part of a plan")
    for name, value in table.items():
        if not _has_type(value, _TYPES[name]):
            raise BadSettings(
                f"{source.place(name)}: `{name}` is {KEYS[name]}",
                got=repr(value),
                hint=f"such as {_EXAMPLES[name]}",
            )

    limits = table.get("limits", {})
    check_keys(limits, LIMITS, source, "limit")
    for name, value in limits.items():
        # A plan may say of each what the settings may say of it.
        checked_value(SETTINGS[name], value, source.place("limits", name))
    for column, meaning in table.get("columns", {}).items():
        if not isinstance(meaning, str):
            place = source.place("columns", column)
            raise BadSettings(f"{place}: `columns` is {KEYS['columns']}", got=meaning)


def _has_type(value: Any, types: type | tuple[type, ...]) -> bool:
    # True is not a number.
    if types is int and isinstance(value, bool):
        return False
    return isinstance(value, types)


def _models_in(models: Any, source: Source, settings: Settings) -> dict[str, Model]:
    # A table of models, or one name or several.
    if isinstance(models, Mapping):
        return {
            alias: model_of(alias, table, source, settings.environ)
            for alias, table in models.items()
        }
    return models_of([models] if isinstance(models, str) else models, settings)


def models_of(names: Sequence[Any], settings: Settings) -> dict[str, Model]:
    """Return configured models by name.

    A name that is not configured and has a provider/ is a litellm model string.
    """
    models: dict[str, Model] = {}
    for name in map(str, names):
        configured = name in settings.tables or "/" not in name
        models[name] = settings.model(name) if configured else Model(name)
    return models


def chosen_cases(
    source: str,
    where: Mapping[str, Any],
    sample: int | None,
    seed: int,
    *,
    columns: Mapping[str, str | None] | None = None,
    errors: Errors = "raise",
) -> Cases:
    """Return the cases of a plan.

    Raises as `load_cases` does, and BadPlan where none fits.
    """
    cases = load_cases(source, columns=columns or None, errors=errors)
    if where:
        cases = cases.filter(**where)
        if not len(cases):
            raise BadPlan(
                "no case has all of this",
                got=dict(where),
                hint="look at `toolparse validate` for what is there",
            )
    return cases if sample is None else cases.sample(sample, seed=seed)
