"""A recorded run opened again: its plan and its summary, from the store alone.

A store holds neither credentials nor code. Models, functions and protocols that are at hand take
the place of their records, provided they are the same as far as the record can tell.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.errors import BadOptions, BadPlan, UnknownName, near
from ..core.values import write_canonical
from ..evals.cases.collection import Cases, Skipped, unpack_cases
from ..formats.prompt.own_prompt import OwnPrompt
from ..middleware.flow import Runnable
from ..parser.foreign.protocol import AnyProtocol
from ..runner.exchange.request import Held, Questions
from ..runner.exchange.summary import Summary
from ..runner.exchange.types import Model, PlanItem, Request
from ..runner.store.store import RunRecord, Store
from .arms import FACTORS, Arm
from .case_flow import PromptIssue, Prompts, check_runnable
from .chat_prompts import ChatPrompts
from .fitting import Fitting
from .plan import Plan
from .protocol_record import recorded_prompts, recorded_protocols

_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")
# What a run must have recorded to be a plan again; imported recordings lack it.
_PARTS_OF_A_PLAN = {"models", "arms", "cases"}
# What a model may have otherwise today and still be asked the same.
_BESIDE_THE_QUESTION = ("timeout", "max_connections", "max_retries", "swaps", "price", "max_answer")


def find_run(store: Store, run_id: str) -> RunRecord:
    """Return the run of this id, or the one whose id begins so.

    "latest" is the latest run, "latest~1" the one before it. Raises BadOptions for none and for
    several.
    """
    if not isinstance(run_id, str):
        raise UnknownName(
            "a run is named by its id",
            got=run_id,
            expected="the id, its beginning, 'latest' or 'latest~1'",
            hint="see lab.runs()",
            code="unknown-run",
        )
    ids = store.run_ids()
    matches = _matching_ids(ids, run_id)
    if len(matches) == 1:
        return store.run(matches[0])

    recent = ", ".join((matches or ids)[:-6:-1])
    if matches:
        raise UnknownName(
            "several runs have ids that begin like this",
            got=run_id,
            expected=recent,
            hint="write more of the id",
            code="unknown-run",
        )
    raise UnknownName(
        "there is no run of this id in this store",
        got=run_id,
        expected=recent or "there are no runs in it",
        hint=near(run_id, ids) or "see lab.runs(), or open another store: tp.Lab(path)",
        code="unknown-run",
    )


def _matching_ids(ids: Sequence[str], run_id: str) -> Sequence[str]:
    # ids: the latest at the end.
    if latest := _LATEST.fullmatch(run_id):
        steps_back = int(latest[1] or 0)
        return ids[::-1][steps_back:][:1]

    # A whole id goes before longer ones that begin with it.
    if run_id in ids:
        return [run_id]
    return [full_id for full_id in ids if run_id and full_id.startswith(run_id)]


def stored_plan(
    store: Store,
    record: RunRecord,
    models: Mapping[str, Model] | None = None,
    known_models: Mapping[str, Model] | None = None,
    runnable: Runnable | None = None,
    *,
    passed: Any = None,
    known_protocols: Mapping[str, AnyProtocol] | None = None,
    known_prompts: Mapping[str, OwnPrompt] | None = None,
) -> Plan:
    """Return the plan that a run was made of, with its questions as the store has them.

    models: the run's models with answers that a store does not hold, by alias. `known_models` are
    taken where they fit. runnable: tools as functions, which no store holds either. passed,
    known_protocols: see `recorded_protocols`. Raises BadPlan for `models` and protocols that are
    not the run's, BadOptions for a run without a plan. known_prompts: prompts of the caller's own
    that the lab has used, by name.
    """
    plan = record.plan
    if not plan.keys() >= _PARTS_OF_A_PLAN:
        raise BadOptions(
            "this run was recorded without a plan",
            got=record.run_id,
            hint="export_recording holds its answers",
        )
    by_alias = _stored_models(plan["models"], models or {}, known_models or {})
    arms = _stored_arms(plan, passed, known_protocols, known_prompts or {})

    # The later turns of a conversation follow from the answers to the first.
    items = tuple(item for item in store.items(record.run_id) if "turn" not in item.arm)
    # Answers from elsewhere were never asked for, so that there are no questions to read.
    ingested = plan.get("ingested")
    return Plan(
        _stored_cases(plan),
        by_alias,
        arms,
        int(plan.get("trials", 1)),
        items,
        Held(()) if ingested else StoredRequests(store, items, by_alias),
        plan.get("params") or {},
        plan.get("seed", 0),
        bool(plan.get("stream", False)),
        {**dict.fromkeys(plan.get("runnable") or ()), **check_runnable(runnable)},
        prompts=Prompts(issues=(PromptIssue(**row) for row in plan.get("prompt_issues") or ())),
        # An older version sent every model the same: its later turns are found by those keys.
        fitting=Fitting.of_record(plan["left_out"]) if "left_out" in plan else None,
        chat_prompts=ChatPrompts.of_record(plan.get("chat_templates") or {}),
    )


def _stored_models(
    stored: Mapping[str, Any], passed: Mapping[str, Model], known_models: Mapping[str, Model]
) -> dict[str, Model]:
    # Those at hand replace stored ones, which lack credentials, if they would be asked the same.
    by_alias = {alias: Model.from_dict(fields) for alias, fields in stored.items()}
    for alias, model in passed.items():
        if alias in by_alias and not _is_same(model, by_alias[alias]):
            raise BadPlan(
                f"the model {alias!r} is not the one that the run asked",
                got=repr(model),
                expected=repr(by_alias[alias]),
                hint="plan a run of its own for another model",
            )

    at_hand = {**known_models, **passed}
    for alias, model in by_alias.items():
        candidate = at_hand.get(alias)
        if candidate is not None and _is_same(candidate, model):
            by_alias[alias] = candidate
    return by_alias


def _is_same(candidate: Any, stored: Model) -> bool:
    # Limits, prices and credentials make no difference to the answers.
    return _asked_fields(candidate) == _asked_fields(stored)


def _asked_fields(model: Any) -> dict[str, Any]:
    fields = model.to_dict()
    return {name: value for name, value in fields.items() if name not in _BESIDE_THE_QUESTION}


def _stored_arms(
    plan: Mapping[str, Any],
    passed: Any,
    known_protocols: Mapping[str, AnyProtocol] | None,
    known_prompts: Mapping[str, OwnPrompt],
) -> tuple[Arm, ...]:
    ids = [row["prompt_protocol"] for row in plan["arms"]]
    protocols = recorded_protocols(ids, plan.get("protocols") or {}, passed, known_protocols)
    prompts = recorded_prompts(plan.get("wordings") or {}, known_prompts)
    arms = []
    for row in plan["arms"]:
        # An older version did not record factors that it did not have.
        levels = {factor: row[factor] for factor in FACTORS if factor in row}
        own = prompts.get(str(levels.get("wording")))
        arms.append(Arm(protocols[row["prompt_protocol"]], levels, row["name"], own))
    return tuple(arms)


def _stored_cases(plan: Mapping[str, Any]) -> Cases:
    # For answers from elsewhere, with the rows that were skipped.
    cases = unpack_cases(plan["cases"])
    ingested = plan.get("ingested")
    if not ingested:
        return cases
    skipped = [Skipped(**row) for row in ingested["skipped"]]
    return Cases(cases, ingested["source"], skipped)


def stored_summary(record: RunRecord) -> Summary:
    """Return the summary of a run as it was written when it ended.

    One that ended early has a summary of the answers recorded by now. Questions that later runs
    have answered of it counts as known.
    """
    # Fields of another version are left out.
    names = {field.name for field in dataclasses.fields(Summary)}
    values = {name: value for name, value in (record.summary or {}).items() if name in names}
    if not values:
        values = {"planned": record.items, "cached": record.done, "failed": record.failed}
        if record.status == "interrupted":
            values["stopped"] = "interrupted"
    values["failures"] = Counter(values.get("failures") or {})
    summary = Summary(**{**values, "run_id": record.run_id})
    if record.status == "complete" and summary.missing > 0:
        summary.cached += summary.missing
        summary.stopped = None
    return summary


def run_row(record: RunRecord) -> dict[str, Any]:
    """Return a run as a row of the runs frame.

    A column for which the run of an older version has nothing recorded is None.
    """
    plan, summary = record.plan, record.summary or {}
    return {
        "run_id": record.run_id,
        "created": record.created,
        "status": record.status,
        "stop_reason": stored_summary(record).stopped,
        "n_cases": _size(plan, "cases"),
        "n_models": _size(plan, "models"),
        "n_arms": _size(plan, "arms"),
        "n_trials": plan.get("trials"),
        "planned": record.items,
        "recorded": record.done,
        "failed": record.failed,
        "cost": summary.get("cost"),
        "max_cost": (plan.get("limits") or {}).get("max_cost"),
        "version": plan.get("version"),
        "plan_json": write_canonical(plan),
    }


def _size(plan: Mapping[str, Any], part: str) -> int | None:
    return len(plan[part]) if part in plan else None


class StoredRequests(Questions):
    """The first questions of a run by key, read from the store when they are necessary.

    Viewing a run needs none of them.
    """

    def __init__(
        self, store: Store, items: tuple[PlanItem, ...], models: Mapping[str, Model]
    ) -> None:
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
        request = self._store.request(key)
        if request is None:
            raise BadOptions(
                "what was asked is not recorded, so it cannot be asked again",
                got=key,
                hint="a run of outputs from elsewhere holds answers alone",
            )
        # The recorded model has no credentials; the one of the plan may have.
        return dataclasses.replace(request, model=self._models[request.model_alias])

    def route(self, key: str) -> tuple[str, Model]:
        """Return alias and model of a question, without reading it."""
        alias = self._keys[key]
        return alias, self._models[alias]
