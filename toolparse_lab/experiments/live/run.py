"""Exchanges of an application, taken into a run of the same store."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ... import __version__
from ...core.errors import BadOptions, near
from ...core.values import write_canonical
from ...core.values.printable import counted
from ...evals.cases.collection import Cases, pack_cases
from ...evals.scoring.trial import Trial
from ...formats.auto import AUTO
from ...middleware.flow import is_unlifted
from ...runner.exchange.summary import Summary
from ...runner.exchange.types import Completion, Held, Model, PlanItem
from ...runner.store.store import Store
from ..arms import Arm, prompt_protocol
from ..ingest.rows import tools_digest
from ..kept_readings import KeptReadings
from ..plan import Plan
from ..run import HEADLINE, Run
from ..run_reader import RunReader
from ..stored_run import find_run, stored_plan, stored_summary, summary_of
from .alarms import ALARMS, alarms_of
from .answers import LiveAnswer, answers_in

# How it works. Whoever records an application writes exchanges as they passed, and reads nothing in
# them. Here they are read, when somebody looks: each becomes a case and as many answers as it has,
# at the end of the run of its application. One transaction adds the answers, their items and the
# plan that says up to which exchange they were taken in; a process that comes second changes
# nothing and looks again. A plan is written anew each time, so a run has an end, and after it
# another one begins.

MOST = 10_000
"""Exchanges of a run; after them another one begins."""
SOURCE = "live"
_PAGE = 400  # exchanges in one transaction
_POLL = 0.5  # seconds from one look for new answers to the next
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")


def take_in(store: Store, app: str | None = None) -> None:
    """Read what was recorded of an application, or of all, since somebody last looked."""
    for name, newest in store.exchange_apps().items():
        if app in (None, name):
            _take_in(store, name, newest)


def _take_in(store: Store, app: str, newest: int) -> None:
    while True:
        run_id, known, plan, summary = _run_so_far(store, app)
        live = plan["live"]
        if live["taken"] >= newest:
            return
        exchanges = store.exchanges(app, live["taken"], min(_PAGE, MOST - live["exchanges"]))
        if not exchanges:
            return
        added = _Added(plan, summary)
        for number, passed in exchanges:
            for answer in answers_in(passed, number):
                added.add(answer)
            live["taken"] = number
        live["exchanges"] += len(exchanges)
        added.summary.run_id = run_id
        store.grow_run(
            run_id, known, added.plan(), added.summary.to_dict(), added.items, added.completions
        )


def _run_so_far(store: Store, app: str) -> tuple[str, int, dict[str, Any], Summary]:
    # The newest run of an application that is not full, or a new one: its id, the number of its
    # items, its plan and its summary.
    base, taken = _run_id(app), 0
    ids = set(store.run_ids())
    number = 1
    while (run_id := base if number == 1 else f"{base}.{number}") in ids:
        number += 1
    if number > 1:
        run_id = base if number == 2 else f"{base}.{number - 1}"
        record = store.run(run_id)
        plan = dict(record.plan)
        plan["live"] = dict(plan["live"])
        if plan["live"]["exchanges"] < MOST:
            return run_id, record.items, plan, summary_of(record.summary or {})
        taken = plan["live"]["taken"]
        run_id = f"{base}.{number}"
    empty = Plan(Cases([], SOURCE), {}, (), 1, (), Held(())).to_dict()
    live = {"app": app, "taken": taken, "exchanges": 0, "alarms": {}}
    ingested = {"source": f"{SOURCE} {app}", "skipped": []}
    plan = {**empty, "version": __version__, "ingested": ingested, "live": live}
    return run_id, 0, plan, Summary()


def _run_id(app: str) -> str:
    word = _ODD.sub("-", app)[:40]
    if word != app:
        word += f"-{hashlib.sha256(app.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return f"{SOURCE}-{word}"


class _Added:
    # What is added to a run at once. plan: as it is recorded, with the cases of before.

    def __init__(self, plan: dict[str, Any], summary: Summary) -> None:
        self.items: list[PlanItem] = []
        self.completions: list[Completion] = []
        self.summary = summary
        self._plan = plan
        self._alarms = Counter(plan["live"]["alarms"])
        self._cases = list(plan["cases"])
        self._models = dict(plan["models"])
        self._arms = {arm["name"]: arm for arm in plan["arms"]}
        self._trials = int(plan["trials"])
        # Tools -> the first case that has them: most requests of an application offer the same.
        self._tools: dict[str, str] = dict(plan["live"].get("tools") or {})
        self._last_case = ""

    def add(self, answer: LiveAnswer) -> None:
        case, completion = answer.case, answer.completion
        alarms = alarms_of(answer)
        if alarms:
            response = {**(completion.response or {}), "alarms": alarms}
            completion = replace(completion, response=response)
        self._alarms.update(alarms)
        if case.id != self._last_case:
            self._last_case = case.id
            (row,) = pack_cases([case])
            if case.tools:
                first = self._tools.setdefault(tools_digest(case.tools), case.id)
                if first != case.id:
                    row["tools_of"] = first
                    del row["tools"]
            self._cases.append(row)
        self._models.setdefault(answer.model, Model(answer.model).to_dict())
        is_native = completion.endpoint_kind == "native_tools" or is_unlifted(completion)
        protocol = None if is_native else AUTO
        choice = answer.tool_choice
        word = choice if isinstance(choice, str) else write_canonical(choice)
        prompted = prompt_protocol(protocol)
        name = prompted if word == "auto" else f"{prompted} {word}"
        arm = Arm(protocol, {"max_turns": 1, "tool_choice": choice}, name)
        self._arms.setdefault(name, {"name": name, "prompt_protocol": prompted, **arm.levels})
        levels = {"arm": name, "prompt_protocol": prompted, **arm.levels}
        self.items.append(PlanItem(case.id, answer.model, completion.key, answer.choice, levels))
        self.completions.append(completion)
        self._trials = max(self._trials, answer.choice + 1)
        self.summary.count(None if completion.ok else str(completion.error_kind))

    def plan(self) -> dict[str, Any]:
        live = {**self._plan["live"], "alarms": dict(self._alarms), "tools": self._tools}
        return {
            **self._plan,
            "models": self._models,
            "arms": list(self._arms.values()),
            "trials": self._trials,
            "live": live,
            "cases": self._cases,
        }


def alarms_in(trial: Trial) -> list[str]:
    """Return the alarms of an answer of a live run, see `ALARMS`."""
    response = None if trial.completion is None else trial.completion.response
    return [alarm for alarm in (response or {}).get("alarms") or () if alarm in ALARMS]


class LiveRun(Run):
    """The answers that an application got, as a run that grows: every view looks for new ones.

    app: the name under which they are recorded. After `MOST` exchanges another run begins, and this
    one is it then.
    """

    def __init__(self, store: Store, app: str) -> None:
        self.app = app
        self._begun = False
        take_in(store, app)
        run_id, plan, summary = _newest(store, app)
        super().__init__(store, run_id, plan, summary)
        self._begun = True

    def _views(self) -> tuple[RunReader, KeptReadings]:
        if self._begun:
            self.refresh()
        return super()._views()

    def refresh(self) -> None:
        """Take in what was recorded since the last look. Views do so themselves."""
        take_in(self.store, self.app)
        record = self.store.run(self.run_id)
        run_id = _run_ids(self.store, self.app)[-1]
        if run_id != self.run_id or record.items != len(self.plan.items):
            self._begun = False
            self.run_id, plan, summary = _newest(self.store, self.app)
            super().__init__(self.store, self.run_id, plan, summary)
            self._begun = True

    @property
    def alarms(self) -> Counter[str]:
        """How many answers of this run have each of `ALARMS`, in their order."""
        self.refresh()
        counts = self.store.run(self.run_id).outline["live"]["alarms"]
        return Counter({alarm: counts.get(alarm, 0) for alarm in ALARMS})

    def follow(
        self, *, new: bool = False, until: Callable[[], bool] | None = None
    ) -> Iterator[Trial]:
        """Yield every answer as a trial, and then each one when it is recorded, without an end.

        new: leave out those that are there already. until: is asked whenever there is none; True
        ends it.
        """
        run_id = self.run_id
        read = len(self.plan.items) if new else 0
        while True:
            self.refresh()
            for later in _run_ids(self.store, self.app):
                if _place(later) < _place(run_id):
                    continue
                if later != run_id:
                    run_id, read = later, 0
                record = self.store.run(run_id)
                if record.items == read:
                    continue
                plan = stored_plan(self.store, record)
                items = list(plan.items)[read:]
                read += len(items)
                yield from RunReader(self.store, run_id, plan).trials(items, None, HEADLINE)
            if until is not None and until():
                return
            time.sleep(_POLL)

    def __repr__(self) -> str:
        alarms = ", ".join(f"{name} {n}" for name, n in self.alarms.items() if n)
        size = counted(len(self.plan.items), "answer")
        return f"LiveRun {self.run_id} of {self.app}: {size}; {alarms or 'no alarm'}"


def live_run(store: Store, app: str | None) -> LiveRun:
    """Return the live run of an application, which may be left out where there is one alone.

    Raises BadOptions where there are several, or none.
    """
    apps = list(store.exchange_apps())
    if app is None and len(apps) == 1:
        app = apps[0]
    if app is None or app not in apps:
        raise BadOptions(
            "no application of this name is recorded here" if app else "whose answers?",
            got=app,
            expected=", ".join(apps) or "nothing is recorded in this store yet",
            hint=near(app, apps) if app and apps else "the extension serve records",
        )
    return LiveRun(store, app)


def _run_ids(store: Store, app: str) -> list[str]:
    own = re.compile(rf"{re.escape(_run_id(app))}(\.\d+)?")
    return sorted(filter(own.fullmatch, store.run_ids()), key=_place)


def _place(run_id: str) -> int:
    tail = run_id.rpartition(".")[2]
    return int(tail) if tail.isdigit() and "." in run_id else 1


def _newest(store: Store, app: str) -> tuple[str, Plan, Summary]:
    record = find_run(store, _run_ids(store, app)[-1])
    return record.run_id, stored_plan(store, record), stored_summary(record)
