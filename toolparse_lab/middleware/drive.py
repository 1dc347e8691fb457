"""Drivers of flows: generators that yield what they need and are sent what came of it.

One body of code so runs live, sync or async, and from a recording.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

from ..runner.exchange.types import Completion, Request

_T = TypeVar("_T")
_Need = TypeVar("_Need")
_Reply = TypeVar("_Reply")
_Asked = TypeVar("_Asked")
# Yields questions; is sent their answers, or None for one that has none; returns what came of it.
Flow: TypeAlias = Generator[Request, Completion | None, _T]


def advance(
    flow: Generator[_Need, _Reply, _T], reply: _Reply | None = None
) -> tuple[_Need, None] | tuple[None, _T]:
    """Return the next need (of a `Flow`, its question) and None, or None and the flow's outcome.

    reply: the answer to the need before, or None for a flow not begun, and for a question that has
    no answer.

    Raises whatever the flow itself raises. An exhausted flow cannot be advanced again.
    """
    try:
        return flow.send(reply), None  # type: ignore[arg-type]  # None begins any flow
    except StopIteration as end:
        return None, end.value


def drive(flow: Generator[_Need, _Reply, _T], answer: Callable[[_Need], _Reply]) -> _T:
    """Run a flow to its end.

    answer: gives what a need wants. Of a question it is a model's answer, or a recorded one
    (`store.recording.replay(path).answer`). The error that it raises is raised from here, and the
    flow is closed.
    """
    # `answer` is called outside of `advance`: a StopIteration of its own is not the flow's end.
    try:
        need, outcome = advance(flow)
        while need is not None:
            need, outcome = advance(flow, answer(need))
    finally:
        flow.close()  # a flow that is left half way still runs its own clean-up
    return outcome  # type: ignore[return-value]


async def adrive(
    flow: Generator[_Need, _Reply, _T],
    answer: Callable[[_Need], Awaitable[_Reply]],
    *,
    apart: bool = False,
) -> _T:
    """`drive` for an `answer` that is awaited, such as `runner.complete.complete` or
    `store.recording.replay(path)`.

    apart: the flow's own work takes long, and is done in a thread.
    """

    async def step(reply: _Reply | None = None) -> tuple[_Need, None] | tuple[None, _T]:
        return await asyncio.to_thread(advance, flow, reply) if apart else advance(flow, reply)

    try:
        need, outcome = await step()
        while need is not None:
            need, outcome = await step(await answer(need))
    finally:
        flow.close()
    return outcome  # type: ignore[return-value]


def relay(
    flow: Generator[_Need, _Reply, _T], answer: Callable[[_Need], Generator[_Asked, Any, _Reply]]
) -> Generator[_Asked, Any, _T]:
    """`drive` inside another flow: `answer` is one, which may yield needs of its own."""
    try:
        need, outcome = advance(flow)
        while need is not None:
            need, outcome = advance(flow, (yield from answer(need)))
    finally:
        flow.close()
    return outcome  # type: ignore[return-value]
