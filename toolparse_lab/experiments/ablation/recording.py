"""From `Lab.ablation` to recorded answers: plan or open, ask the missing questions, read.

How it works. Base answers are asked first, then the leaves of the correction tree, round by round:
a round asks the questions at which walks have ended, in one go of the pool; the walks then go on.
Only what is in the store counts, so that a run which is stopped anywhere loses nothing, and the
same call goes on where it ended. A replay answers what it holds; the rest stays open, and is named.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from ...core.errors import BadPlan, MissingRecording, ToolparseError
from ...core.values.printable import counted
from ...evals.cases.collection import Cases
from ...evals.cases.loading import load_cases
from ...runner.exchange.summary import Summary
from ...runner.exchange.types import Held, Request
from ...runner.limits import RunLimits, check_limits, remaining_limits
from ...runner.loop import run_sync
from ...runner.pool import run_requests
from ...runner.store.store import Store
from ..plan import Plan
from ..run import Run
from .answers import (
    BaseAnswer,
    CorrectionTree,
    Path,
    PathKey,
    base_answers,
    questions_of,
    wants_call,
)
from .settings import SETTINGS, AblationSettings
from .tools import CaseTools

_OF_RUN = (*RunLimits.__annotations__, "despite_check")


@dataclasses.dataclass(slots=True)
class Recorded:
    """Base answers and paths as far as they are recorded.

    open_questions: those that were to be asked and have no answer, by key.
    """

    run: Run
    settings: AblationSettings
    answers: list[BaseAnswer]
    paths: dict[PathKey, Path]
    open_questions: dict[str, Request]

    @property
    def missing(self) -> tuple[str, ...]:
        """The keys of the questions without an answer: base ones, then corrections that layer 3 may
        ask. Later corrections of a path are known only when these are answered.
        """
        base = [one.question.item.key for one in self.answers if one.parsed is None]
        return tuple(dict.fromkeys((*base, *self.open_questions)))


@dataclasses.dataclass(frozen=True, slots=True)
class Recorder:
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

    def recorded(
        self, source: Any, models: Any, protocols: Any, *, ask: bool, **settings: Any
    ) -> Recorded:
        """Return the answers of an ablation, the missing ones asked first. See `Lab.ablation`."""
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

        async def of_plan() -> Recorded:
            # The settings are kept with the run.
            run_id = await self.begin(plan, despite_check, limits, ablation=record)
            run = Run(self.store, run_id, plan, None, partial(self.retry, plan))
            if not ask:
                # Nobody works on it: another process may.
                self.store.finish_run(run_id, "incomplete")
            return await self._of_run(run, chosen, limits, ask)

        return run_sync(of_plan())

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

    async def _of_run(
        self, run: Run, settings: AblationSettings, limits: Mapping[str, Any], ask: bool
    ) -> Recorded:
        loop = asyncio.get_running_loop()
        if not ask or not run.plan.requests:
            return await loop.run_in_executor(None, read_recorded, run, settings)
        rest: Any = dict(limits)
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
        status = "incomplete" if recorded.missing else "complete"
        await loop.run_in_executor(run.store.writer, finish, run.run_id, status, summary.to_dict())
        return recorded


def read_recorded(
    run: Run,
    settings: AblationSettings,
    tree: CorrectionTree | None = None,
    answers: list[BaseAnswer] | None = None,
) -> Recorded:
    """Read the answers that a run has by now, asking nothing.

    answers: the base answers, if they are read already.
    """
    tree = tree or tree_of(run, settings)
    answers = list(base_answers(run, settings)) if answers is None else answers
    paths = tree.walk(answers, run.store, run.run_id)
    leaves = {}  # equal prompts are one
    for (_, _, policy, _), path in paths.items():
        if path.leaf is not None and policy in settings.correct_under:
            leaves[path.leaf.key] = path.leaf
    return Recorded(run, settings, answers, paths, leaves)


def tree_of(run: Run, settings: AblationSettings) -> CorrectionTree:
    """Return an empty tree with the tools of its calls."""
    return CorrectionTree(run.plan, settings, CaseTools(settings.functions, settings.dialect))


async def record(
    run: Run, settings: AblationSettings, complete: Any, limits: RunLimits
) -> tuple[Recorded, Summary]:
    """Ask the missing questions of a run that was begun, and return all that is recorded then.

    complete: answers in the place of litellm, None for litellm itself. limits: as for
    `run_requests`. max_cost, max_calls and deadline hold for all rounds together. Raises as
    `run_requests` does, but for answers that a replay lacks: that stays open.
    """
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    store, run_id, plan = run.store, run.run_id, run.plan
    options = {"run_id": run_id, "complete": complete, "more": True}
    base = _answerable(complete, plan.requests)
    questions = (
        plan.requests
        if len(base) == len(plan.requests)
        else Held(plan.requests[key] for key in base)
    )
    summary = await run_requests(questions, store, **options, **limits)
    tree = tree_of(run, settings)
    recorded = await loop.run_in_executor(None, read_recorded, run, settings, tree)
    done: set[str] = set()
    while summary.stopped is None:
        # What failed is asked again by the next call, not in a circle by this one.
        leaves = _answerable(complete, recorded.open_questions.keys() - done)
        if not leaves:
            break
        rest = remaining_limits(limits, summary, began)
        if rest is None:
            summary = dataclasses.replace(summary, stopped="deadline")
            break
        done.update(leaves)
        # In the order of the plan, which is balanced wherever it stops.
        round_of = [one for key, one in recorded.open_questions.items() if key in set(leaves)]
        await loop.run_in_executor(store.writer, _extend, run, tree, round_of)
        # These follow answers, so that each of their models was reached.
        met = {one.model_alias for one in round_of}
        later = await run_requests(round_of, store, met=met, **options, **rest)
        summary = summary.joined(later)
        tree.recorded = {key: one for key, one in tree.recorded.items() if one is not None}
        recorded = await loop.run_in_executor(
            None, read_recorded, run, settings, tree, recorded.answers
        )
    # What an earlier run has asked belongs to this one as well, and to its recording.
    nodes = [request for key, request in tree.requests.items() if tree.recorded.get(key)]
    await loop.run_in_executor(store.writer, _extend, run, tree, nodes)
    return recorded, summary


def _answerable(complete: Any, keys: Collection[str]) -> list[str]:
    # A replay answers only those it contains.
    check: Callable[[Iterable[str]], None] | None = getattr(complete, "check", None)
    if check is None:
        return list(keys)
    try:
        check(keys)
    except MissingRecording as e:
        return [key for key in keys if key not in e.keys]
    return list(keys)


def _extend(run: Run, tree: CorrectionTree, questions: Iterable[Request]) -> None:
    # The recording then contains them, too.
    present = {item.key for item in run.store.items(run.run_id)}
    new = [question for question in questions if question.key not in present]
    if new:
        run.store.extend_run(run.run_id, [tree.items[one.key] for one in new], new)
