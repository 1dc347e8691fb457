"""A recorded run opened again: its plan and its summary, from the store alone.

A store holds neither credentials nor code. Models, functions and protocols that are at hand take
the place of their records, provided they are the same as far as the record can tell.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, overload

from ..core.errors import BadOptions, BadPlan, BadSpec, UnknownName, UnknownProtocol, near
from ..core.values import write_canonical
from ..entry.foreign.protocol import AnyProtocol, any_protocol
from ..evals.cases.collection import PackedCases, Skipped
from ..formats.auto import AUTO
from ..formats.prompt.wording import OwnPrompt
from ..formats.registry import protocol_of
from ..formats.spec import from_record
from ..middleware.flow import Runnable
from ..runner.exchange.summary import Summary
from ..runner.exchange.types import Held, Model, PlanItem, Questions, Request
from ..runner.store.store import RunRecord, Store
from .arms import BY_NAME, FACTORS, Arm, ArmProtocol, LostProtocol
from .case_flow import PromptIssue, Prompts, check_runnable
from .models import ChatPrompts, Fitting
from .plan import Plan, PlannedRequests

_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")
# What a run must have recorded to be a plan again; imported recordings lack it.
_PARTS_OF_A_PLAN = {"models", "arms", "cases"}
# What a plan is recorded with: by `Plan.to_dict`, a session, a plan's file, and what takes answers
# from elsewhere.
_KNOWN_PARTS = frozenset((
    "models", "arms", "trials", "params", "seed", "stream", "runnable", "protocols", "wordings",
    "left_out", "chat_templates", "prompt_issues", "cases", "version", "limits", "baseline",
    "ingested",
))  # fmt: skip
_OF_AN_ARM = frozenset(("name", "prompt_protocol", *FACTORS))
_FEW = 5000  # items that are read in a moment
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
    ids = store.run_ids()  # the latest at the end
    if latest := _LATEST.fullmatch(run_id):
        matches = ids[::-1][int(latest[1] or 0) :][:1]
    elif run_id in ids:
        matches = [run_id]  # a whole id goes before longer ones that begin with it
    else:
        matches = [full_id for full_id in ids if run_id and full_id.startswith(run_id)]
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
    seen = "see lab.runs()" if ids else "record one, such as by lab.ingest"
    raise UnknownName(
        "there is no run of this id in this store",
        got=run_id,
        expected=recent or "there are no runs in it",
        hint=near(run_id, ids) or f"{seen}, or open another store: tp.Lab(path)",
        code="unknown-run",
    )


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

    models: the run's models with what a store does not hold, by alias. `known_models` are taken
    where they fit. runnable: tools as functions, which no store holds either. passed: protocols for
    this run, which go before all others. known_protocols, known_prompts: those that the lab has
    used, taken where the record holds no data. Raises BadPlan for `models` and protocols that are
    not the run's, BadOptions for a run without a plan.
    """
    plan = record.outline
    if not plan.keys() >= _PARTS_OF_A_PLAN:
        raise BadOptions(
            "this run was recorded without a plan",
            got=record.run_id,
            hint="export_recording holds its answers",
        )
    by_alias = _stored_models(plan["models"], models or {}, known_models or {})
    arms = _stored_arms(plan, passed, known_protocols or {}, known_prompts or {})
    # Not by `record.plan`, which would keep them when the plan forgets them.
    cases, ingested = PackedCases(lambda: record.load()["cases"]), plan.get("ingested")
    if ingested:
        # Answers from elsewhere, with the rows that were skipped. They were never asked for, so
        # that there are no questions to read.
        skipped = [Skipped(**row) for row in ingested["skipped"]]
        cases = PackedCases(lambda: record.load()["cases"], ingested["source"], skipped)
    items: Sequence[PlanItem] = StoredItems(store, record.run_id, record.items)
    if record.items <= _FEW or any(arm.conversing for arm in arms):
        # The later turns of a conversation follow from the answers to the first.
        items = tuple(item for item in items if "turn" not in item.arm)
    return Plan(
        cases,
        by_alias,
        arms,
        int(plan.get("trials", 1)),
        items,
        Held(()) if ingested else _stored_requests(store, items, by_alias),
        plan.get("params") or {},
        plan.get("seed", 0),
        bool(plan.get("stream", False)),
        {**dict.fromkeys(plan.get("runnable") or ()), **check_runnable(runnable)},
        prompts=Prompts(issues=(PromptIssue(**row) for row in plan.get("prompt_issues") or ())),
        # An older version sent every model the same: its later turns are found by those keys.
        cluster=(ingested or {}).get("cluster", ""),
        fitting=Fitting.of_record(plan["left_out"]) if "left_out" in plan else None,
        chat_prompts=ChatPrompts.of_record(plan.get("chat_templates") or {}),
        unknown=_unknown_parts(plan),
    )


def _unknown_parts(plan: Mapping[str, Any]) -> tuple[str, ...]:
    factors = {key for row in plan["arms"] for key in row}
    return tuple(sorted((plan.keys() - _KNOWN_PARTS) | (factors - _OF_AN_ARM)))


class StoredItems(Sequence[PlanItem]):
    """The items of a run, read from the store when one is asked for: most views need none."""

    def __init__(self, store: Store, run_id: str, count: int) -> None:
        self._source = store, run_id
        self._count = count

    @cached_property
    def _items(self) -> tuple[PlanItem, ...]:
        store, run_id = self._source
        # A run that goes on elsewhere gets more of them, at the end.
        return tuple(store.items(run_id)[: self._count])

    def forget(self) -> None:
        """Read the items anew the next time that one is asked for."""
        self.__dict__.pop("_items", None)

    @overload
    def __getitem__(self, at: int) -> PlanItem: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[PlanItem]: ...
    def __getitem__(self, at: int | slice) -> PlanItem | Sequence[PlanItem]:
        return self._items[at]

    def __iter__(self) -> Iterator[PlanItem]:
        return iter(self._items)

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # as of a list, since a tuple may be equal


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


def _stored_requests(
    store: Store, items: Sequence[PlanItem], models: Mapping[str, Model]
) -> Questions:
    # Read from the store when they are necessary: viewing a run needs none of them.
    def make(item: PlanItem) -> Request:
        request = store.request(item.key)
        if request is None:
            raise BadOptions(
                "what was asked is not recorded, so it cannot be asked again",
                got=item.key,
                hint="a run of outputs from elsewhere holds answers alone",
            )
        # The recorded model has no credentials; the one of the plan may have.
        return dataclasses.replace(request, model=models[request.model_alias])

    return PlannedRequests(items, models, make)


def _is_same(candidate: Any, stored: Model) -> bool:
    # Limits, prices and credentials make no difference to the answers.
    a, b = (
        {k: v for k, v in model.to_dict().items() if k not in _BESIDE_THE_QUESTION}
        for model in (candidate, stored)
    )
    return a == b


def _stored_arms(
    plan: Mapping[str, Any],
    passed: Any,
    known_protocols: Mapping[str, AnyProtocol],
    known_prompts: Mapping[str, OwnPrompt],
) -> tuple[Arm, ...]:
    # With the protocols and prompts as they were when the run was planned; a lost one in the place
    # of code that is not at hand.
    own = {protocol.id: protocol for protocol in map(any_protocol, passed or ())}
    protocols: dict[str, ArmProtocol] = {}
    for row in plan["arms"]:
        name = row["prompt_protocol"]
        record = (plan.get("protocols") or {}).get(name) or {}
        if name not in own:
            protocols[name] = _recorded_protocol(name, record, known_protocols)
            continue
        spec = record.get("spec")
        if spec is not None and getattr(own[name], "spec", spec) != spec:
            raise BadPlan(
                "a protocol of this id was made from other data when the run was planned",
                got=name,
                expected=spec,
                hint="leave it away: the run has kept what it was made from",
            )
        protocols[name] = own[name]
    if strange := own.keys() - protocols.keys():
        raise BadPlan(
            "the run was not made with this protocol",
            got=min(strange),
            expected=", ".join(protocols),
            hint="to read its answers by another one: run.trials(protocol=...)",
        )
    prompts = {}
    for name, record in (plan.get("wordings") or {}).items():
        template, lost = record.get("template", ""), OwnPrompt(name)
        prompts[name] = OwnPrompt(name, template) if template else known_prompts.get(name, lost)
    arms = []
    for row in plan["arms"]:
        # An older version did not record factors that it did not have.
        levels = {factor: row[factor] for factor in FACTORS if factor in row}
        prompt = prompts.get(str(levels.get("wording")))
        arms.append(Arm(protocols[row["prompt_protocol"]], levels, row["name"], prompt))
    return tuple(arms)


def _recorded_protocol(
    name: str, record: Mapping[str, Any], known_protocols: Mapping[str, AnyProtocol]
) -> ArmProtocol:
    # A shipped or installed protocol is its id, and one made from data is recorded as that data.
    if name in BY_NAME:
        return BY_NAME[name]
    if name == AUTO.id:
        return AUTO
    if "spec" in record:
        # A later version may have written what this one cannot read; then an object may do.
        with suppress(BadSpec):
            return from_record(record["spec"])
    if name in known_protocols:
        return known_protocols[name]
    try:
        return protocol_of(name)
    except UnknownProtocol:
        return LostProtocol(name)


def summary_of(fields: Mapping[str, Any]) -> Summary:
    """Return a summary from what a store keeps of it, without fields of another version."""
    names = {field.name for field in dataclasses.fields(Summary)}
    values = {name: value for name, value in fields.items() if name in names}
    return Summary(**{**values, "failures": Counter(values.get("failures") or {})})


def stored_summary(record: RunRecord) -> Summary:
    """Return the summary of a run as it was written when it ended.

    One that ended early has a summary of the answers recorded by now. Questions that later runs
    have answered of it counts as known.
    """
    summary = summary_of(record.summary or {})
    if not record.summary:
        summary.planned, summary.cached, summary.failed = record.items, record.done, record.failed
        summary.stopped = "interrupted" if record.status == "interrupted" else None
    summary.run_id = record.run_id
    if record.status == "complete" and summary.missing > 0:
        summary.cached += summary.missing
        summary.stopped = None
    return summary


def run_row(record: RunRecord) -> dict[str, Any]:
    """Return a run as a row of the runs frame.

    A column for which the run of an older version has nothing recorded is None.
    """
    plan, summary = record.plan, record.summary or {}

    def size(part: str) -> int | None:
        return len(plan[part]) if part in plan else None

    return {
        "run_id": record.run_id,
        "created": record.created,
        "status": record.status,
        "stop_reason": stored_summary(record).stopped,
        "n_cases": size("cases"),
        "n_models": size("models"),
        "n_arms": size("arms"),
        "n_trials": plan.get("trials"),
        "planned": record.items,
        "recorded": record.done,
        "failed": record.failed,
        "cost": summary.get("cost"),
        "max_cost": (plan.get("limits") or {}).get("max_cost"),
        "version": plan.get("version"),
        "plan_json": write_canonical(plan),
    }
