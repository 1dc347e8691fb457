"""The way from `Lab.ablation` to an Ablation: plan or open, ask the missing questions, read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.errors import BadPlan, ToolparseError
from ...core.values.printable import counted
from ...evals.cases.collection import Cases
from ...evals.cases.loading import load_cases
from ...runner.loop import run_sync
from ...runner.store.store import Store
from ..limits import RunLimits, check_limits
from ..plan import Plan
from ..run import Run
from .ablation import Ablation
from .answers import questions_of, wants_call
from .recording import read_recorded, record
from .settings import SETTINGS, AblationSettings

_OF_RUN = (*RunLimits.__annotations__, "despite_check")


@dataclass(frozen=True, slots=True)
class AblationDoor:
    """The parts of a lab that an ablation needs.

    plan, open: the lab's own. begin: records a plan as a run and returns the run's id. retry: asks
    a trial again. complete: answers in the place of litellm, None for litellm itself.
    """

    store: Store
    plan: Callable[..., Plan]
    open: Callable[[str], Run]
    begin: Callable[..., Awaitable[str]]
    retry: Callable[..., Any]
    complete: Any

    def ablation(
        self, source: Any, models: Any, protocols: Any, *, ask: bool, **settings: Any
    ) -> Ablation:
        """Return the ablation. See `Lab.ablation`."""
        own = {name: settings.pop(name) for name in SETTINGS if name in settings}
        limits = {name: settings.pop(name) for name in _OF_RUN if name in settings}
        despite_check = bool(limits.pop("despite_check", False))
        check_limits(limits)
        if isinstance(source, Run) or (isinstance(source, str) and models is None):
            if models is not None or protocols is not None or settings:
                raise BadPlan(
                    "a run has its models, protocols and parameters already",
                    got=", ".join(settings) or "models and protocols",
                    hint="lab.ablation(run), or lab.ablation(cases, models, protocols)",
                )
            run = self.open(source) if isinstance(source, str) else source
            stored = run.store.run(run.run_id).plan.get("ablation") or {}
            chosen = AblationSettings.from_dict(stored, **own)
            return run_sync(self._of_run(run, chosen, limits, ask))
        chosen = AblationSettings(**own)
        plan, left_out = self._planned(source, models, protocols, chosen, settings)
        record = {**chosen.to_dict(), "left_out": left_out}
        questions_of(plan, chosen)
        return run_sync(self._of_plan(plan, chosen, record, limits, despite_check, ask))

    def _planned(
        self,
        cases: Any,
        models: Any,
        protocols: Any,
        chosen: AblationSettings,
        settings: Mapping[str, Any],
    ) -> tuple[Plan, int]:
        # Cases of which no call can be right are left out and counted: their answers would be paid
        # for in vain.
        if models is None or protocols is None:
            raise BadPlan(
                "an ablation of cases needs models and protocols",
                hint="lab.ablation(cases, models, protocols); or lab.ablation(run)",
            )
        factor, off, on = chosen.layer1
        if factor in settings:
            raise BadPlan(
                f"{factor} is layer 1 here, and has both its levels",
                got=settings[factor],
                hint=f"layer1=({factor!r}, OFF, ON) chooses them",
            )
        loaded = cases if isinstance(cases, Cases) else load_cases(cases)
        subjects = Cases(filter(wants_call, loaded), loaded.source, loaded.skipped)
        if loaded and not subjects:
            raise BadPlan(
                "no call is wanted in any of these cases", got=counted(len(loaded), "case")
            )
        plan = self.plan(subjects, models, protocols, **{factor: [off, on]}, **settings)
        return plan, len(loaded) - len(subjects)

    async def _of_plan(
        self,
        plan: Plan,
        settings: AblationSettings,
        record: Mapping[str, Any],
        limits: Mapping[str, Any],
        despite_check: bool,
        ask: bool,
    ) -> Ablation:
        # record: the settings, kept with the run.
        run_id = await self.begin(plan, despite_check, limits, ablation=record)
        run = Run(self.store, run_id, plan, None, partial(self.retry, plan))
        if not ask:
            # Nobody works on it: another process may.
            self.store.finish_run(run_id, "incomplete")
        return await self._of_run(run, settings, limits, ask)

    async def _of_run(
        self, run: Run, settings: AblationSettings, limits: Mapping[str, Any], ask: bool
    ) -> Ablation:
        loop = asyncio.get_running_loop()
        if not ask or not run.plan.requests:
            recorded = await loop.run_in_executor(None, read_recorded, run, settings)
            return Ablation(recorded)
        rest = dict(limits)
        complete = rest.pop("complete", None) or self.complete
        finish = run.store.finish_run
        try:
            recorded, summary = await record(run, settings, complete, rest)
        except asyncio.CancelledError:
            # Not in a thread: a task that was cancelled may not get to wait for one.
            finish(run.run_id, "interrupted")
            raise
        except ToolparseError:
            finish(run.run_id, "incomplete")
            raise
        run.summary = summary
        ablation = Ablation(recorded)
        status = "incomplete" if ablation.missing else "complete"
        await loop.run_in_executor(run.store.writer, finish, run.run_id, status, summary.to_dict())
        return ablation
