"""A plan's conversations in rounds: ask every open question at once, then derive the next ones from what is recorded.

A run that was stopped, resumed or replayed takes the same way: what is recorded already is not asked again.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Mapping
from typing import Any

from .flow import Conversation, Flow, advance
from .plan import Plan
from .runner.pool import Summary, run_requests
from .runner.store import Store
from .runner.types import Completion, PlanItem, Request


async def run_rounds(plan: Plan, store: Store, run_id: str, **limits: Any) -> Summary:
    """Asks a plan's first questions, and the later ones of its conversations, under one run id and the same limits.

    limits: as for `run_requests`; max_cost, max_calls and deadline hold for all rounds together. Raises what
    `run_requests` raises.
    """
    began = time.monotonic()
    conversing = [item for item in plan.items if item.arm["max_turns"] > 1]
    summary = await run_requests(plan.requests.values(), store, run_id=run_id, more=bool(conversing), **limits)
    if not conversing:
        return summary
    loop = asyncio.get_running_loop()
    open_ = _Open(plan, conversing)
    try:
        while summary.stopped is None:
            recorded = await loop.run_in_executor(None, _recorded, store, run_id, open_.keys)
            # Tools run here, and may take their time.
            asked = await loop.run_in_executor(None, open_.go_on, recorded)
            if not asked:
                break
            await loop.run_in_executor(store.writer, store.extend_run, run_id, open_.items, asked.values())
            left = _left(limits, summary, time.monotonic() - began)
            later = await run_requests(asked.values(), store, run_id=run_id, more=True, **left)
            summary = _joined(summary, later)
    except asyncio.CancelledError:
        store.finish_run(run_id, "interrupted")
        raise
    finally:
        open_.close()
    status = "complete" if summary.complete else "incomplete"
    await loop.run_in_executor(store.writer, store.finish_run, run_id, status, summary.to_dict())
    return summary


class _Open:
    """The conversations that are not over, each with the item of the question that it waits for."""

    def __init__(self, plan: Plan, items: list[PlanItem]) -> None:
        self._waiting: list[tuple[PlanItem, Flow[Conversation]]] = []
        for item in items:
            flow = plan.flow(item)
            advance(flow)
            self._waiting.append((item, flow))

    @property
    def items(self) -> list[PlanItem]:
        return [item for item, _ in self._waiting]

    @property
    def keys(self) -> set[str]:
        return {item.key for item in self.items}

    def go_on(self, recorded: Mapping[str, Completion]) -> dict[str, Request]:
        """Sends every conversation its answer; the next questions by key. What has no answer is over."""
        asked: dict[str, Request] = {}
        waiting = []
        for item, flow in self._waiting:
            request, _ = advance(flow, recorded.get(item.key))
            if request is not None:
                key = request.key
                asked[key] = request
                turn = item.arm.get("turn", 1) + 1
                waiting.append((dataclasses.replace(item, key=key, arm={**item.arm, "turn": turn}), flow))
        self._waiting = waiting
        return asked

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


def _joined(one: Summary, later: Summary) -> Summary:
    """What became of several rounds together."""
    sums = {
        f.name: getattr(one, f.name) + getattr(later, f.name)
        for f in dataclasses.fields(Summary)
        if f.name not in ("run_id", "stopped")
    }
    return Summary(run_id=one.run_id, stopped=later.stopped, **sums)
