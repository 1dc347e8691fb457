"""Recording the answers that an ablation needs: base answers first, then the leaves of the
correction tree, round by round.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ...core.errors import MissingRecording
from ...runner.exchange.types import Held, Request
from ...runner.pool import Summary, run_requests
from ..rounds import remaining_limits
from ..run import Run
from .answers import BaseAnswer, base_answers
from .paths import CorrectionTree, Path, PathKey
from .settings import AblationSettings
from .tools import CaseTools

# How it works. A round asks the questions at which walks have ended, in one go of the pool; the
# walks then go on. Only what is in the store counts, so that a run which is stopped anywhere loses
# nothing, and the same call goes on where it ended. A replay answers what it holds; the rest stays
# open, and is named.


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


def read_recorded(
    run: Run,
    settings: AblationSettings,
    tree: CorrectionTree | None = None,
    answers: list[BaseAnswer] | None = None,
) -> Recorded:
    """Read the answers that a run has by now, asking nothing.

    Return `answers` if they are read already.
    """
    tree = tree or tree_of(run, settings)
    answers = list(base_answers(run, settings)) if answers is None else answers
    paths = tree.walk(answers, run.store, run.run_id)
    return Recorded(run, settings, answers, paths, _open_questions(paths, settings))


def tree_of(run: Run, settings: AblationSettings) -> CorrectionTree:
    """Return an empty tree with the tools of its calls."""
    return CorrectionTree(run.plan, settings, CaseTools(settings.functions, settings.dialect))


def _open_questions(
    paths: Mapping[PathKey, Path], settings: AblationSettings
) -> dict[str, Request]:
    # By key: equal prompts are one.
    leaves = {}
    for (_, _, policy, _), path in paths.items():
        if path.leaf is not None and policy in settings.correct_under:
            leaves[path.leaf.key] = path.leaf
    return leaves


async def record(
    run: Run, settings: AblationSettings, complete: Any, limits: Mapping[str, Any]
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
        rest = remaining_limits(limits, summary, time.monotonic() - began)
        if rest.get("deadline") is not None and rest["deadline"] <= 0:
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
