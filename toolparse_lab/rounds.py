"""A plan's conversations in rounds: ask every open question at once, then derive the next ones from what is recorded.

A run that was stopped, resumed or replayed takes the same way: what is recorded already is not asked again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from .flow import Conversation, Flow, ToolRun, advance, result_row
from .plan import Plan
from .runner.pool import Summary, run_requests
from .runner.redaction import redact_strings
from .runner.store import Store
from .runner.types import Completion, PlanItem, Request


async def run_rounds(plan: Plan, store: Store, run_id: str, **limits: Any) -> Summary:
    """Asks a plan's first questions, and the later ones of its conversations, under one run id and the same limits.

    limits: as for `run_requests`; max_cost, max_calls and deadline hold for all rounds together. Raises what
    `run_requests` raises.
    """
    began = time.monotonic()
    conversing = [item for item in plan.items if item.arm["max_turns"] > 1]
    summary = await run_requests(plan.requests, store, run_id=run_id, more=bool(conversing), **limits)
    if not conversing:
        return summary
    loop = asyncio.get_running_loop()
    open_ = _Open(plan, conversing)
    try:
        while summary.stopped is None:
            recorded = await loop.run_in_executor(None, _recorded, store, run_id, open_.keys)
            asked: dict[str, Request] = {}
            for some in open_.take():
                # Tools run here, and may take their time.
                asked |= await loop.run_in_executor(None, open_.go_on, some, recorded)
                await loop.run_in_executor(store.writer, store.record_results, run_id, open_.made())
            if not asked:
                break
            await loop.run_in_executor(store.writer, store.extend_run, run_id, open_.items, asked.values())
            left = _left(limits, summary, time.monotonic() - began)
            if left.get("deadline") is not None and left["deadline"] <= 0:  # the tools took what time there was
                summary = dataclasses.replace(summary, planned=summary.planned + len(asked), stopped="deadline")
                break
            later = await run_requests(asked.values(), store, run_id=run_id, more=True, **left)
            summary = summary.joined(later)
    except asyncio.CancelledError:
        store.record_results(run_id, open_.made())
        store.finish_run(run_id, "interrupted")
        raise
    finally:
        open_.close()
    status = "complete" if summary.complete else "incomplete"
    await loop.run_in_executor(store.writer, store.finish_run, run_id, status, summary.to_dict())
    return summary


_Waiting: TypeAlias = list[tuple[PlanItem, Flow[Conversation]]]
_AT_ONCE = 50  # conversations whose tools run between two writes of what they gave back


class _Open:
    """The conversations that are not over, each with the item of the question that it waits for."""

    def __init__(self, plan: Plan, items: list[PlanItem]) -> None:
        self._waiting: _Waiting = []
        self._secrets = {alias: model.secrets for alias, model in plan.models.items()}
        self._results: dict[str, list[dict[str, str]]] = {}
        self._made: dict[str, list[dict[str, str]]] = {}
        for item in items:
            flow = plan.flow(item, record=functools.partial(self._ran, item.model))
            advance(flow)
            self._waiting.append((item, flow))

    @property
    def items(self) -> list[PlanItem]:
        return [item for item, _ in self._waiting]

    @property
    def keys(self) -> set[str]:
        return {item.key for item in self.items}

    def take(self) -> list[_Waiting]:
        """The conversations of a round, a few at a time, so that little of what functions did can be lost."""
        waiting, self._waiting, self._results = self._waiting, [], {}
        return [waiting[at : at + _AT_ONCE] for at in range(0, len(waiting), _AT_ONCE)]

    def go_on(self, some: _Waiting, recorded: Mapping[str, Completion]) -> dict[str, Request]:
        """Sends conversations their answers; the next questions by key. What has no answer is over."""
        asked: dict[str, Request] = {}
        for item, flow in some:
            completion = recorded.get(item.key)
            if completion is not None and item.key in self._results:
                # Arms that share a question share what was done for its answer.
                shared = (*completion.results, *self._results[item.key])
                completion = dataclasses.replace(completion, results=shared)
            request, _ = advance(flow, completion)
            if request is not None:
                key = request.key
                asked[key] = request
                turn = item.arm.get("turn", 1) + 1
                self._waiting.append((dataclasses.replace(item, key=key, arm={**item.arm, "turn": turn}), flow))
        return asked

    def made(self) -> dict[str, list[dict[str, str]]]:
        """What functions gave back since this was asked last, by the key of the question whose answer called them."""
        made, self._made = self._made, {}
        return made

    def _ran(self, alias: str, completion: Completion, run: ToolRun) -> None:
        row = redact_strings(result_row(run), self._secrets[alias])
        for kept in (self._results, self._made):
            kept.setdefault(completion.key, []).append(row)

    def close(self) -> None:
        for _, flow in self._waiting:
            flow.close()


def _recorded(store: Store, run_id: str, keys: set[str]) -> dict[str, Completion]:
    return {item.key: completion for item, completion in store.completions(run_id, keys=keys)}


def _left(limits: Mapping[str, Any], used: Summary, seconds: float) -> dict[str, Any]:
    """The limits of the rounds to come."""
    left = dict(limits)
    for name, spent in (("max_cost", used.cost), ("max_calls", used.calls), ("deadline", seconds)):
        if left.get(name) is not None:
            left[name] -= spent
    return left
