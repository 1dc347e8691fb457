"""Answers from elsewhere as a recorded run: completions in the store, and a plan made from what the rows say."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from .. import __version__
from ..arms import Arm
from ..errors import BadCase, BadOptions
from ..evals.cases.case import Case, Cases, Skipped
from ..evals.cases.loading import load
from ..evals.cases.row_files import RowSource
from ..evals.cases.rows import BadRows, Errors, Others
from ..plan import Plan
from ..runner.progress import Progress
from ..runner.questions import Held
from ..runner.redaction import redact, redact_named, redact_strings
from ..runner.store import Store
from ..runner.summary import Summary
from ..runner.types import Chunk, Completion, Model, PlanItem
from ..values import write_canonical
from .rows import Observed, RowReader, tools_digest
from .sources import answers_of

_VERSION = 1
_BATCH = 500  # answers in one transaction, and in memory
_SHOWN = 2000  # rows from one word of progress to the next


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a source: a run in the store."""

    run_id: str
    plan: Plan
    summary: Summary


def ingest(
    store: Store,
    source: Any,
    *,
    tools: Any = None,
    cases: Any = None,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "metadata",
    model: str | None = None,
    protocol: Any = "auto",
    errors: Errors = "raise",
    split: str | None = None,
    progress: bool | None = None,
) -> Ingested:
    """Records the answers of a source, without asking anybody; see `Lab.ingest`."""
    began = time.monotonic()
    found = answers_of(source, split=split)
    reader = RowReader(found, tools=tools, columns=columns, others=others, model=model, protocol=protocol)
    bad = BadRows(found, errors)
    given = None if cases is None else load(cases)
    building = _Building(store, given)
    rows = 0
    with ExitStack() as stack:
        bar: Progress | None = None
        for line, row in found.rows:
            rows += 1
            try:
                for seen in reader.read(line, row):
                    building.add(seen, found)
            except BadCase as e:
                bad.add(e)
            if rows % _SHOWN == 0:
                # Most logs are read before anybody wonders.
                bar = bar or stack.enter_context(Progress(None, show=progress, unit="row"))
                bar.advance(_SHOWN)
        building.flush()
    bad.end(rows)
    if reader.names.unseen:
        raise found.bad("no row has this column, which is mapped", column=reader.names.unseen[0])
    if not building.items:
        reason = bad.found[0].message if bad.found else None
        raise found.bad("there are no answers in it", got=reason, expected="at least one row that can be read")
    skipped = [Skipped("rows that cannot be read", bad.count, bad.found[0].message)] if bad.count else []
    for column, n in reader.names.secrets.items():
        skipped.append(Skipped(f"column {column}", n, "it has the name of a credential"))
    plan = building.plan(found, [*skipped, *building.skipped()])
    summary = building.summary
    summary.seconds = time.monotonic() - began
    run_id = _record_run(store, plan, summary)
    return Ingested(run_id, plan, summary)


class _Building:
    """A run while its rows come in."""

    def __init__(self, store: Store, cases: Cases | None) -> None:
        self.items: list[PlanItem] = []
        self.summary = Summary()
        self._store = store
        self._given = cases
        self._by_id = {c.id: c for c in cases or ()}
        inputs = Counter(c.input_text for c in cases or ())
        self._by_input = {c.input_text: c.id for c in cases or () if inputs[c.input_text] == 1}
        self._now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._cases: dict[str, Case] = {}
        self._arms: dict[tuple[str, str, str], tuple[Arm, dict[str, Any]]] = {}
        self._arm_names: dict[str, tuple[str, str, str]] = {}
        self._models: dict[str, Model] = {}
        self._trials: Counter[tuple[str, str, str]] = Counter()
        self._taken: dict[tuple[str, str, str, int], str] = {}
        self._varying: Counter[str] = Counter()
        self._copies = 0
        self._waiting: dict[str, tuple[Observed, int]] = {}

    def add(self, seen: Observed, source: RowSource) -> None:
        """Takes a row over; raises BadCase for one that contradicts what came before."""
        case = self._case(seen, source)
        arm, levels = self._arm(seen)
        cell = (case.id, seen.model, arm.name)
        trial = self._trials[cell] if seen.trial is None else seen.trial
        key = _key(seen, case.id, arm, trial)
        if (*cell, trial) in self._taken:
            if self._taken[*cell, trial] != key:
                raise source.bad(
                    f"trial {trial} of case {case.id!r} with this model and arm is there already, with another answer",
                    seen.line, got=seen.captured.raw[:120],
                    hint="leave the column trial out to have repeated answers counted, or name what differs in arm",
                )  # fmt: skip
            self._copies += 1
            return
        self._taken[*cell, trial] = key
        self._trials[cell] = max(self._trials[cell], trial + 1)
        self._models.setdefault(seen.model, Model(seen.model))
        self.items.append(PlanItem(case.id, seen.model, key, trial, levels))
        self._waiting[key] = seen, trial
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Writes what is not in the store yet."""
        known = self._store.done_keys(self._waiting)
        new = []
        for key, (seen, trial) in self._waiting.items():
            if key not in known and seen.error is not None and self._store.get(key) is not None:
                known.add(key)
            if key not in known:
                new.append(_completion(seen, key, trial, self._now))
        # The environment is looked through once for all of them.
        clean = redact_strings([[c.request, c.response] for c in new])
        new = [replace(c, request=q, response=a or None) for c, (q, a) in zip(new, clean, strict=True)]
        self._store.record_many(new)
        self._waiting.clear()
        self.summary.planned += len(known) + len(new)
        self.summary.cached += len(known)
        failed = Counter(str(c.error_kind) for c in new if not c.ok)
        self.summary.failures.update(failed)
        self.summary.failed += failed.total()
        self.summary.done += len(new) - failed.total()

    def _case(self, seen: Observed, source: RowSource) -> Case:
        case = seen.case
        if self._given is not None:
            case_id = case.id if case.id in self._by_id else self._by_input.get(case.input_text)
            if case_id is None:
                raise source.bad(
                    "there is no such case", seen.line, "case_id", got=case.id,
                    expected="the id of one of the cases given, or the input of just one",
                )  # fmt: skip
            return self._cases.setdefault(case_id, self._by_id[case_id])
        before = self._cases.get(case.id)
        if before is None:
            self._cases[case.id] = case
            return case
        changes: dict[str, Any] = {}
        for name in ("input", "tools", "target"):
            old, new = getattr(before, name), getattr(case, name)
            if old == new or (name not in seen.known and not (name == "tools" and new)):
                continue
            if old not in ("", (), None):
                raise source.bad(
                    f"case {case.id!r} has another {name} in a row before", seen.line, name, got=str(new)[:120],
                    expected=str(old)[:120], hint="give the cases by cases=, or another case_id",
                )  # fmt: skip
            changes[name] = new
        if case.metadata != before.metadata:
            varying = {k for k, v in case.metadata.items() if before.metadata.get(k, v) != v}
            self._varying.update(varying)
            changes["metadata"] = {**case.metadata, **before.metadata}
        if changes:
            self._cases[case.id] = replace(before, **changes)
        return self._cases[case.id]

    def _arm(self, seen: Observed) -> tuple[Arm, dict[str, Any]]:
        choice = seen.tool_choice if isinstance(seen.tool_choice, str) else write_canonical(seen.tool_choice)
        identity = (seen.arm, seen.protocol, choice)
        known = self._arms.get(identity)
        if known is None:
            name = seen.arm
            if self._arm_names.setdefault(name, identity) != identity:
                # One name for two ways of asking: it says the difference then.
                name = " ".join(dict.fromkeys(w for w in (seen.arm, seen.protocol, choice) if w != "auto"))
            levels = {"max_turns": 1, "tool_choice": seen.tool_choice}
            arm = Arm(seen.protocol, levels, name)
            known = arm, {"arm": name, "prompt_protocol": seen.protocol, **levels}
            self._arms[identity] = known
        return known

    def skipped(self) -> Iterator[Skipped]:
        """What of the rows is in no case and no answer."""
        if self._copies:
            yield Skipped("copies", self._copies, "the same answer stands in a row before")
        for name, n in sorted(self._varying.items()):
            yield Skipped(f"metadata {name}", n, "it differs between the rows of one case")

    def plan(self, source: RowSource, skipped: list[Skipped]) -> Plan:
        """The plan that asking for all of this would have been."""
        kept = [{k: v for k, v in c.metadata.items() if k not in self._varying} for c in self._cases.values()]
        clean = redact_strings([[c.input, m] for c, m in zip(self._cases.values(), kept, strict=True)])
        cases = (replace(c, input=i, metadata=m) for c, (i, m) in zip(self._cases.values(), clean, strict=True))
        trials = max(self._trials.values())
        arms = tuple(arm for arm, _ in self._arms.values())
        return Plan(Cases(cases, source.name, skipped), self._models, arms, trials, tuple(self.items), Held(()))


def _completion(seen: Observed, key: str, trial: int, now: str) -> Completion:
    c = seen.captured
    kind, message = seen.error or (None, None)
    response = {"id": c.id, "model": c.model, "usage": None if c.usage is None else dict(c.usage)}
    request: dict[str, Any] = {}
    if seen.request is not None:
        params = {k: v for k, v in seen.request.items() if k not in ("model", "messages", "tools")}
        request = {
            "model": {"name": seen.request.get("model") or seen.model}, "model_alias": seen.model,
            "messages": seen.request.get("messages") or [], "params": redact_named(params), "trial": trial,
        }  # fmt: skip
        if seen.request.get("tools"):
            request["tools"] = seen.request["tools"]
    return Completion(
        key=key,
        raw=c.raw,
        status="ok" if kind is None else "error",
        error_kind=kind,
        error_message=None if message is None else redact(message),
        finish_reason=c.finish_reason,
        chunks=tuple(Chunk(0.0, text, part) for part, text in c.chunks),
        reasoning=c.reasoning,
        endpoint_kind=seen.endpoint_kind,
        fidelity=c.fidelity,
        stream=c.stream,
        cut=kind == "cut_stream",
        system_fingerprint=c.system_fingerprint,
        created=seen.created or now,
        request=request,
        response={k: v for k, v in response.items() if v is not None},
        **seen.numbers,
    )


def _key(seen: Observed, case_id: str, arm: Arm, trial: int) -> str:
    """The same for the same answer to the same case, whenever and wherever it is read in again."""
    c = seen.captured
    choice = arm.levels["tool_choice"]
    subject = [
        "ingested", _VERSION, case_id, seen.model, arm.name, arm.protocol, choice, trial, c.raw, c.reasoning,
        seen.endpoint_kind, seen.error, c.finish_reason,
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(subject, ensure_ascii=True).encode()).hexdigest()


def _record_run(store: Store, plan: Plan, summary: Summary) -> str:
    """The run's id, which is the same for the same rows and cases; nothing is written where it is there already."""
    digest = hashlib.sha256()
    for item in plan.items:
        digest.update(f"{item.key}\n{json.dumps([item.case_id, item.model])}\n".encode())
    for case in plan.cases:
        said = write_canonical([case.id, case.input, tools_digest(case.tools), case.target, case.metadata])
        digest.update(said.encode("utf-8", "surrogatepass"))
    run_id = f"ingested-{digest.hexdigest()[:16]}"
    summary.run_id = run_id
    try:
        store.items(run_id)
    except BadOptions:
        skipped = [asdict(s) for s in plan.cases.skipped]
        told = {
            **plan.to_dict(), "version": __version__, "ingested": {"source": plan.cases.source, "skipped": skipped},
        }  # fmt: skip
        store.begin_run(told, plan.items, run_id=run_id)
    store.finish_run(run_id, "complete" if summary.complete else "incomplete", summary.to_dict())
    return run_id
