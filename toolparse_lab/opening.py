"""A recorded run opened again: its plan and its summary, from the store alone."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .arms import FACTORS, Arm
from .asking import check_runnable
from .errors import BadOptions, BadPlan
from .evals.cases.case import Cases, Skipped, unpack_cases
from .flow import Runnable
from .plan import Plan
from .runner.questions import Held, Questions
from .runner.store import RunRecord, Store
from .runner.summary import Summary
from .runner.types import Model, PlanItem, Request
from .values import write_canonical

_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")


def find_run(store: Store, run_id: str) -> RunRecord:
    """The run of this id, the one whose id begins so, or the latest (`latest~1`: the one before it); raises BadOptions
    for none and for several."""
    ids = store.run_ids()
    if back := _LATEST.fullmatch(run_id):
        found = ids[::-1][int(back[1] or 0) :][:1]
    else:
        found = [i for i in ids if i == run_id] or [i for i in ids if run_id and i.startswith(run_id)]
    if len(found) == 1:
        return store.run(found[0])
    recent = ", ".join((found or ids)[:-6:-1])
    if found:
        raise BadOptions("several runs have ids that begin like this", got=run_id, expected=recent)
    raise BadOptions(
        "there is no run of this id in this store", got=run_id, expected=recent or "there are no runs in it"
    )


def stored_plan(
    store: Store,
    record: RunRecord,
    models: Mapping[str, Model] | None = None,
    known: Mapping[str, Model] | None = None,
    runnable: Runnable | None = None,
) -> Plan:
    """The plan that a run was made of. What was asked is taken from the store as it is, not made anew.

    models: the run's models with what a store does not hold, by alias; `known` are taken where they fit. Raises
    BadPlan for `models` that are not the run's, BadOptions for a run without a plan.
    """
    plan = record.plan
    if not {"models", "arms", "cases"} <= plan.keys():
        raise BadOptions(
            "this run was recorded without a plan", got=record.run_id, hint="export_recording holds its answers"
        )
    named = {alias: Model.from_dict(m) for alias, m in plan["models"].items()}
    for alias, model in (models or {}).items():
        if alias in named and not _is(model, named[alias]):
            raise BadPlan(
                f"the model {alias!r} is not the one that the run asked", got=repr(model), expected=repr(named[alias]),
                hint="plan a run of its own for another model",
            )  # fmt: skip
    for alias, stored in named.items():
        given = {**(known or {}), **(models or {})}.get(alias)
        named[alias] = given if given is not None and _is(given, stored) else stored
    arms = [Arm(a["prompt_protocol"], {f: a[f] for f in FACTORS if f in a}, a["name"]) for a in plan["arms"]]
    items = tuple(i for i in store.items(record.run_id) if "turn" not in i.arm)
    elsewhere = plan.get("ingested")
    cases = unpack_cases(plan["cases"])
    if elsewhere:
        cases = Cases(cases, elsewhere["source"], [Skipped(**s) for s in elsewhere["skipped"]])
    return Plan(
        cases,
        named,
        tuple(arms),
        int(plan.get("trials", 1)),
        items,
        Held(()) if elsewhere else StoredRequests(store, items, named),
        plan.get("params") or {},
        int(plan.get("seed", 0)),
        bool(plan.get("stream", False)),
        {**dict.fromkeys(plan.get("runnable") or ()), **check_runnable(runnable)},
    )


def stored_summary(record: RunRecord) -> Summary:
    """The summary of a run as it was written when it ended; one that was cut off has only what is recorded now."""
    names = {f.name for f in dataclasses.fields(Summary)}
    values = {k: v for k, v in (record.summary or {}).items() if k in names}
    if not values:
        values = {"planned": record.items, "cached": record.done, "failed": record.failed, "stopped": "interrupted"}
    values["failures"] = Counter(values.get("failures") or {})
    return Summary(**{**values, "run_id": record.run_id})


def status_now(record: RunRecord) -> str:
    """A run's status: complete too where later runs have answered what it left. A conversation is left as it ended,
    since what its next question would be is not known before it is read."""
    turns = [int(arm.get("max_turns") or 1) for arm in record.plan.get("arms") or ()]
    answered = record.items > 0 and record.done == record.items and max(turns, default=1) == 1
    return "complete" if answered and record.status in ("incomplete", "interrupted") else record.status


def run_row(record: RunRecord) -> dict[str, Any]:
    """A run as a row of the runs frame; what a run of an older version did not record is None."""
    plan, summary = record.plan, record.summary or {}
    return {
        "run_id": record.run_id,
        "created": record.created,
        "status": status_now(record),
        "stop_reason": summary.get("stopped"),
        "n_cases": len(plan["cases"]) if "cases" in plan else None,
        "n_models": len(plan["models"]) if "models" in plan else None,
        "n_arms": len(plan["arms"]) if "arms" in plan else None,
        "n_trials": plan.get("trials"),
        "planned": record.items,
        "recorded": record.done,
        "failed": record.failed,
        "cost": summary.get("cost"),
        "max_cost": (plan.get("limits") or {}).get("max_cost"),
        "version": plan.get("version"),
        "plan_json": write_canonical(plan),
    }


class StoredRequests(Questions):
    """The first questions of a run by key, read when they are needed: viewing a run needs none of them."""

    def __init__(self, store: Store, items: tuple[PlanItem, ...], models: Mapping[str, Model]) -> None:
        self._store = store
        self._keys = {item.key: item.model for item in items}
        self._models = models

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __getitem__(self, key: str) -> Request:
        if key not in self._keys:
            raise KeyError(key)
        read = self._store.request(key)
        if read is None:
            raise BadOptions(
                "what was asked is not recorded, so it cannot be asked again", got=key,
                hint="a run of outputs from elsewhere holds answers alone",
            )  # fmt: skip
        return dataclasses.replace(read, model=self._models[read.model_alias])

    def route(self, key: str) -> tuple[str, Model]:
        alias = self._keys[key]
        return alias, self._models[alias]


def _is(given: Any, stored: Model) -> bool:
    """Whether it would be asked the same: limits, prices and credentials apart."""
    apart = ("timeout", "max_connections", "max_retries", "swaps", "price")
    one, other = ({k: v for k, v in m.to_dict().items() if k not in apart} for m in (given, stored))
    return one == other
