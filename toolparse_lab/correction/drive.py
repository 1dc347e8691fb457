"""Drivers of a corrected call: with functions, with awaitable ones, and from a recording."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from ..errors import CorrectionFailed, MissingRecording
from ..exchange.types import Completion, Request
from .call import Accepted, Correct, CorrectedCall, Need, OnEvent, Pause, RunTool, corrected_call
from .failure import ToolFailure
from .feedback import Feedback
from .prompt import (
    Corrected,
    CorrectionContext,
    CorrectionWording,
    correction_messages,
    read_correction,
)

Tool: TypeAlias = Callable[..., Any]
Callback: TypeAlias = Callable[[CorrectionContext], Any]
"""Gives corrected arguments, `Corrected`, or an awaitable of one of them; raises where it cannot."""
Messages: TypeAlias = tuple[Mapping[str, Any], ...]


class ModelCorrection:
    """The default correction: the same model is asked.

    question: the request of which model, parameters and trial are taken; its messages are those of
    the call. wording: of the correction prompt.
    """

    def __init__(self, question: Request, wording: CorrectionWording = "plain") -> None:
        self._question = question
        self._wording = wording

    def request(self, context: CorrectionContext) -> Request:
        """The question for a correction; equal contexts give equal questions, and are asked once."""
        # A grammar or a forced choice of the first question is none of this one's.
        dropped = ("tools", "tool_choice", "response_format", "grammar", "parallel_tool_calls")
        params = {k: v for k, v in self._question.params.items() if k not in dropped}
        messages = correction_messages(context, self._wording)
        return replace(
            self._question, messages=messages, params=params, tools=(), stream=False
        )

    def read(self, completion: Completion, context: CorrectionContext) -> Corrected:
        """The correction in an answer. Raises CorrectionFailed, with what it cost."""
        tokens = (completion.prompt_tokens or 0) + (completion.completion_tokens or 0)
        cost = completion.cost or 0.0
        try:
            if not completion.ok:
                kind = completion.error_kind or "other"
                raise CorrectionFailed(f"the model could not be asked: {kind}")
            return Corrected(read_correction(completion.raw, context.tool), tokens, cost)
        except CorrectionFailed as e:
            e.tokens, e.cost = tokens, cost
            raise


def run_call(
    tool: Any,
    arguments: Mapping[str, Any],
    run: Tool,
    *,
    correct: Callback | None = None,
    feedback: Feedback | None = None,
    messages: Messages = (),
    sleep: Callable[[float], Any] = time.sleep,
    on_event: OnEvent | None = None,
    step_id: str = "",
    agent: str = "",
) -> CorrectedCall:
    """Call a tool with arguments that a model wrote, and have them corrected where it refuses them.

    tool: its definition. run: the function itself, called with the arguments by name; what it raises
    is its refusal. correct: gives corrected arguments, None where nobody can be asked. sleep: waits
    between regular attempts.

    >>> tool = {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}
    >>> run_call(tool, {"n": "7"}, lambda n: n + 1).value
    8
    """
    flow = corrected_call(
        tool,
        arguments,
        feedback,
        messages=messages,
        can_correct=correct is not None,
        step_id=step_id,
        agent=agent,
        on_event=on_event,
    )
    need, outcome = _advance(flow, None)
    while need is not None:
        if isinstance(need, RunTool):
            reply: Any = called(run, need)
        elif isinstance(need, Correct):
            reply = _corrected(correct, need.context)
        else:
            reply = sleep(need.seconds) and None
        need, outcome = _advance(flow, reply)
    assert outcome is not None
    return outcome


async def arun_call(
    tool: Any,
    arguments: Mapping[str, Any],
    run: Tool,
    *,
    correct: Callback | None = None,
    feedback: Feedback | None = None,
    messages: Messages = (),
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    on_event: OnEvent | None = None,
    step_id: str = "",
    agent: str = "",
) -> CorrectedCall:
    """`run_call` for a tool and a correction that may be awaited."""
    flow = corrected_call(
        tool,
        arguments,
        feedback,
        messages=messages,
        can_correct=correct is not None,
        step_id=step_id,
        agent=agent,
        on_event=on_event,
    )
    need, outcome = _advance(flow, None)
    while need is not None:
        if isinstance(need, Pause):
            await sleep(need.seconds)
            reply: Any = None
        elif isinstance(need, RunTool):
            reply = called(run, need)
            if isinstance(reply, Accepted) and inspect.isawaitable(reply.value):
                reply = await _awaited(reply.value)
        else:
            reply = _corrected(correct, need.context)
            if inspect.isawaitable(reply):
                reply = await _corrected_later(reply)
        need, outcome = _advance(flow, reply)
    assert outcome is not None
    return outcome


def asking(
    correction: ModelCorrection, ask: Callable[[Request], Completion | None]
) -> Callback:
    """A callback that asks a model by `ask`, which may be a recording (`Recording.answer`)."""

    def correct(context: CorrectionContext) -> Corrected:
        request = correction.request(context)
        completion = ask(request)
        if completion is None:
            raise MissingRecording(
                "this correction was never recorded", got=request.key, hint="run it live once"
            )
        return correction.read(completion, context)

    return correct


def asking_later(
    correction: ModelCorrection, ask: Callable[[Request], Awaitable[Completion | None]]
) -> Callback:
    """`asking` for an `ask` that is awaited, such as `runner.complete.complete`."""

    async def correct(context: CorrectionContext) -> Corrected:
        request = correction.request(context)
        completion = await ask(request)
        if completion is None:
            raise MissingRecording(
                "this correction was never recorded", got=request.key, hint="run it live once"
            )
        return correction.read(completion, context)

    return correct


def _advance(
    flow: Generator[Need, Any, CorrectedCall], reply: Any
) -> tuple[Need, None] | tuple[None, CorrectedCall]:
    """The next need of a flow, or what came of it."""
    try:
        return flow.send(reply), None
    except StopIteration as end:
        return None, end.value


def called(run: Tool, need: RunTool) -> Accepted | ToolFailure:
    """What a tool's function does with a call."""
    # A tool that calls sys.exit must not end the flow.
    try:
        return Accepted(run(**need.arguments))
    except (Exception, SystemExit) as e:
        return ToolFailure.of(e)


async def _awaited(value: Awaitable[Any]) -> Accepted | ToolFailure:
    """What comes of a tool that is awaited."""
    try:
        return Accepted(await value)
    except (Exception, SystemExit) as e:
        return ToolFailure.of(e)


def _corrected(correct: Callback | None, context: CorrectionContext) -> Any:
    """What a callback gives, or what it raised; None where nothing is recorded."""
    if correct is None:
        return CorrectionFailed("nobody can be asked")
    try:
        return correct(context)
    except MissingRecording:
        return None
    except Exception as e:
        return e


async def _corrected_later(value: Awaitable[Any]) -> Any:
    """`_corrected` for an awaitable."""
    try:
        return await value
    except MissingRecording:
        return None
    except Exception as e:
        return e
