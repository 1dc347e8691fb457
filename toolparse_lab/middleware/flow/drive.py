"""Drivers of flows: one step, to the end with a function, to the end with an awaitable function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TypeAlias, TypeVar

from ...runner.exchange.types import Completion, Request

_T = TypeVar("_T")
Flow: TypeAlias = Generator[Request, Completion | None, _T]
"""Yields questions; is sent their answers, or None for one that has none; returns what came of
it."""


def advance(
    flow: Flow[_T], completion: Completion | None = None
) -> tuple[Request, None] | tuple[None, _T]:
    """Return the next question and None, or None and the flow's outcome.

    completion: the answer to the question before, or None for a flow not begun, and for a question
    that has no answer.

    Raises whatever the flow itself raises. An exhausted flow cannot be advanced again.
    """
    try:
        return flow.send(completion), None
    except StopIteration as end:
        return None, end.value


def drive(flow: Flow[_T], ask: Callable[[Request], Completion | None]) -> _T:
    """Run a flow to its end.

    ask: gives the answer to a question: a model's, or a recorded one
    (`store.recording.replay(path).answer`). The error that it raises is raised from here, and the
    flow is closed.
    """
    request, outcome = advance(flow)
    try:
        while request is not None:
            request, outcome = advance(flow, ask(request))
    finally:
        # A flow that is left half way still runs its own clean-up.
        flow.close()

    return outcome  # type: ignore[return-value]


async def adrive(flow: Flow[_T], ask: Callable[[Request], Awaitable[Completion | None]]) -> _T:
    """`drive` for an `ask` that is awaited, such as `runner.complete.complete` or
    `store.recording.replay(path)`.
    """
    request, outcome = advance(flow)
    try:
        while request is not None:
            request, outcome = advance(flow, await ask(request))
    finally:
        flow.close()

    return outcome  # type: ignore[return-value]
