"""A plan as a TOML file: the arguments of `Lab.plan`, with limits and gates.

Models may be named by the names of the settings. Everything that is wrong is reported with the line
it is in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.errors import BadPlan, BadSettings
from ..core.remote import is_remote, local_path
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
    elsewhere,
    is_path,
    model_of,
    read_toml,
    sent_by,
)
from ..runner.trust import is_trusted

# Key -> the types of its value in TOML (a single name may do for a list), its meaning, and a value
# that is right.
_FIELDS: Mapping[str, tuple[type | tuple[type, ...], str, str]] = {
    "cases": (str, "a file of cases, relative to the plan", '"cases.jsonl"'),
    "columns": (
        dict,
        'a table of what the file calls things: question = "input"; an empty text leaves a column '
        "out",
        '{ question = "input" }',
    ),
    "where": (
        dict,
        "a table of what cases must have: id, category, or a member of their metadata; one value "
        "or a list",
        '{ category = "single" }',
    ),
    "sample": (int, "how many of them, shared out over their categories", "20"),
    "models": (
        (list, dict, str),
        "names of configured models, litellm model strings, or a table of models",
        '["small"]',
    ),
    "protocols": ((list, str), "prompt protocols", '["hermes"]'),
    "trials": (int, "how often each case is asked", "3"),
    "seed": (int, "the base of the seeds, and of the order", "7"),
    "stream": (bool, "whether answers are streamed", "true"),
    "settings": (
        dict,
        "a table of factors (one value, or a list of levels) and sampling parameters",
        "{ max_tokens = 128 }",
    ),
    "limits": (dict, "a table of max_cost, max_calls, deadline", "{ max_cost = 1.0 }"),
    "gate": (
        dict, "a table of thresholds: the least success, and so on", "{ success = 0.9 }",
    ),
    "baseline": (
        str, "the protocol, arm or model that reports compare with", '"hermes"',
    ),
}  # fmt: skip
KEYS: Mapping[str, str] = {name: meaning for name, (_, meaning, _) in _FIELDS.items()}
"""Key of a plan file -> its meaning, as errors and the documentation show it."""

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

    def sent(self, settings: Settings) -> list[str]:
        """Return which hosts get which variables, of its own models and of those configured."""
        own = self.source.table.get("models") if self.source is not None else None
        tables = {**settings.tables, **(own if isinstance(own, Mapping) else {})}
        told = (sent_by(tables.get(alias, alias), settings.environ) for alias in self.models)
        return list(dict.fromkeys(filter(None, told)))

    def elsewhere(self, strangers: Iterable[str]) -> str:
        """Return a sentence about cases that the file looks for elsewhere. See `elsewhere`."""
        # Those of a plan that stands elsewhere stand beside it.
        cases = self.source.table.get("cases") if self.source is not None else None
        if self.source is None or cases is None:
            return ""
        return elsewhere("cases", cases, self.source, self.source.place("cases"), strangers)


def read_plan_file(path: str | Path, settings: Settings) -> PlanFile:
    """Return a plan file, with its models looked up by name in `settings`.

    path: may be the address of a place that fsspec reaches. A path to cases is relative to the
    file. Raises BadSettings naming the line.
    """
    path, url = local_path(path), path
    table, text = read_toml(path, "plan", _NO_PLAN)
    source = Source(path, table, text, settings.trust or is_trusted(path))
    check_keys(table, KEYS, source, "part of a plan")
    for name, value in table.items():
        types, meaning, example = _FIELDS[name]
        # True is not a number.
        if not isinstance(value, types) or (types is int and isinstance(value, bool)):
            raise BadSettings(
                f"{source.place(name)}: `{name}` is {meaning}",
                got=repr(value),
                hint=f"such as {name} = {example}",
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

    values = dict(table)
    # TOML has no null, so that an empty text says "leave this column out".
    columns = table.get("columns", {})
    values["columns"] = {column: meaning or None for column, meaning in columns.items()}
    # Names of built-in cases are no paths.
    if "cases" in values and is_path(values["cases"]) and not is_remote(values["cases"]):
        folder = str(url).rpartition("/")[0]
        cases = values["cases"]
        values["cases"] = f"{folder}/{cases}" if is_remote(url) else str(path.parent / cases)
    if isinstance(values.get("protocols"), str):
        values["protocols"] = [values["protocols"]]
    models = values.pop("models", [])
    if isinstance(models, Mapping):
        by_alias = {
            alias: model_of(alias, table, source, settings.environ)
            for alias, table in models.items()
        }
    else:
        names = [models] if isinstance(models, str) else models
        if not all(isinstance(name, str) for name in names):  # a table may hold credentials
            raise BadSettings(f"{source.place('models')}: `models` is {KEYS['models']}")
        for name in names:  # those that are configured were checked
            if name not in settings.tables and "/" in name:
                model_of(name, name, source, settings.environ)
        by_alias = models_of(names, settings)
    return PlanFile(source, models=by_alias, **values)


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
    """Return the cases of a plan. Raises as `load_cases` does, and BadPlan where none fits."""
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
