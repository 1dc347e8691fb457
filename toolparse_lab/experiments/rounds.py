"""A plan's conversations in rounds, within limits: all open questions are asked, and their answers
make the next.

A run that was stopped, resumed or replayed goes the same way: whatever is recorded already is not
asked again.
"""

# How it works. Every conversation is a flow, a generator that waits for the answer to one question.
# A round asks what all of them wait for, in one go of the pool; then each flow is sent its answer,
# runs its tools and yields its next question, or ends. Only what is in the store counts as an
# answer, so a round that was cut off loses nothing.
#
# Invariant: a function's result is recorded soon after it ran (`_AT_ONCE` conversations at most
# are ahead of the store), since running it again could have effects.
#
# Tools run in a thread and the store is written by its own one, so the event loop stays free.

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
from collections.abc import Collection, Mapping
from typing import TypeAlias, Unpack

from ..middleware.flow import Conversation, Flow, ToolRun, advance, result_row
from ..runner.exchange.redaction import redact_strings
from ..runner.exchange.summary import Summary
from ..runner.exchange.types import Completion, PlanItem, Request
from ..runner.limits import RunLimits, remaining_limits
from ..runner.pool import run_requests
from ..runner.store.store import Store
from .arms import later_questions
from .plan import Plan


async def run_rounds(
    plan: Plan,
    store: Store,
    run_id: str,
    *,
    more: bool = False,
    met: Collection[str] = (),
    **limits: Unpack[RunLimits],
) -> Summary:
    """Ask a plan's first questions, and the later ones of its conversations, as one run.

    limits: max_cost, max_calls and deadline hold for all rounds together.
    more: further parts of this run follow, so that it is not marked complete. met: the models
    reached in earlier parts. Returns the summary of all rounds. Raises as `run_requests` does.
    """
    began = time.monotonic()
    conversing = [item for item in plan.items if later_questions(item.arm)]
    summary = await run_requests(
        plan.requests, store, run_id=run_id, more=more or bool(conversing), met=met, **limits
    )
    if not conversing:
        return summary
    conversations = _OpenConversations(plan, conversing)
    try:
        while summary.stopped is None:
            questions = await _next_questions(conversations, store, run_id)
            if not questions:
                break
            remaining = remaining_limits(limits, summary, began)
            if remaining is None:
                # The tools took all the time there was.
                planned = summary.planned + len(questions)
                summary = dataclasses.replace(summary, planned=planned, stopped="deadline")
                break
            # A next question comes from an answer, so that each of these models was reached.
            answered = {request.model_alias for request in questions.values()}
            later = await run_requests(
                questions.values(), store, run_id=run_id, more=True, met=answered, **remaining
            )
            summary = summary.joined(later)
    except asyncio.CancelledError:
        # Not in a thread: a task that was cancelled may not get to wait for one.
        store.record_results(run_id, conversations.new_results())
        store.finish_run(run_id, "interrupted")
        raise
    finally:
        conversations.close()

    complete = "running" if more else "complete"
    status = complete if summary.complete else "incomplete"
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(store.writer, store.finish_run, run_id, status, summary.to_dict())
    return summary


async def _next_questions(
    conversations: _OpenConversations, store: Store, run_id: str
) -> dict[str, Request]:
    # By key, once they are part of the recorded run.
    loop = asyncio.get_running_loop()
    keys = {item.key for item in conversations.items}
    rows = await loop.run_in_executor(None, lambda: list(store.completions(run_id, keys=keys)))
    answers = {item.key: completion for item, completion in rows}
    questions: dict[str, Request] = {}
    for batch in conversations.take():
        # Tools run here, and may take their time.
        questions |= await loop.run_in_executor(None, conversations.go_on, batch, answers)
        await loop.run_in_executor(
            store.writer, store.record_results, run_id, conversations.new_results()
        )
    if questions:
        await loop.run_in_executor(
            store.writer, store.extend_run, run_id, conversations.items, questions.values()
        )
    return questions


_Waiting: TypeAlias = list[tuple[PlanItem, Flow[Conversation]]]
_AT_ONCE = 50  # conversations whose tools run between two writes of their results


class _OpenConversations:
    # The conversations that are not over, each with the item of the question it waits for.
    def __init__(self, plan: Plan, items: list[PlanItem]) -> None:
        self._waiting: _Waiting = []
        self._secrets = {alias: model.secrets for alias, model in plan.models.items()}
        # Results of functions by the key of the question whose answer called them: those of this
        # round, and those that are not in the store yet.
        self._results: dict[str, list[dict[str, str]]] = {}
        self._new_results: dict[str, list[dict[str, str]]] = {}
        for item in items:
            flow = plan.flow(item, record=functools.partial(self._record, item.model))
            advance(flow)  # to the first question, which has been asked
            self._waiting.append((item, flow))

    @property
    def items(self) -> list[PlanItem]:
        return [item for item, _ in self._waiting]

    def take(self) -> list[_Waiting]:
        # A few at a time: in between, the results of functions can be written, so that few of them
        # can be lost.
        waiting, self._waiting, self._results = self._waiting, [], {}
        return [waiting[at : at + _AT_ONCE] for at in range(0, len(waiting), _AT_ONCE)]

    def go_on(self, batch: _Waiting, answers: Mapping[str, Completion]) -> dict[str, Request]:
        # A conversation without an answer is over.
        questions: dict[str, Request] = {}
        for item, flow in batch:
            answer = answers.get(item.key)
            if answer is not None and (results := self._results.get(item.key)):
                # Arms that share a question share the results for its answer: no function is run
                # twice.
                answer = dataclasses.replace(answer, results=(*answer.results, *results))
            request, _ = advance(flow, answer)
            if request is not None:
                questions[request.key] = request
                arm = {**item.arm, "turn": item.arm.get("turn", 1) + 1}
                next_item = dataclasses.replace(item, key=request.key, arm=arm)
                self._waiting.append((next_item, flow))
        return questions

    def new_results(self) -> dict[str, list[dict[str, str]]]:
        results, self._new_results = self._new_results, {}
        return results

    def _record(self, alias: str, completion: Completion, run: ToolRun) -> None:
        # Without the secrets of the model.
        row = redact_strings(result_row(run), self._secrets[alias])
        for results in (self._results, self._new_results):
            results.setdefault(completion.key, []).append(row)

    def close(self) -> None:
        for _, flow in self._waiting:
            flow.close()
