"""Drivers of a corrected call: with functions, with awaitable ones, and from a recording."""

from __future__ import annotations

import asyncio
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from ...core.errors import CorrectionFailed, MissingExtra, MissingRecording
from ...core.values import write_canonical
from ...runner.exchange.redaction import redact
from ...runner.exchange.types import Completion, Request
from ..drive import adrive, drive
from .call import Accepted, Correct, CorrectedCall, Need, OnEvent, RunTool, corrected_call
from .failure import ToolFailure, ToolRefused, issues_in_body
from .feedback import Feedback
from .prompt import Corrected, CorrectionContext, CorrectionWording, correction_messages, read_paid

Tool: TypeAlias = Callable[..., Any]
# Gives corrected arguments, `Corrected`, or an awaitable of one; raises where it cannot.
Callback: TypeAlias = Callable[[CorrectionContext], Any]
Messages: TypeAlias = tuple[Mapping[str, Any], ...]
# Parameters that a correction is asked without: a grammar or a forced choice of the first question
# is none of its own.
OF_FIRST_QUESTION = ("tools", "tool_choice", "response_format", "grammar", "parallel_tool_calls")


class ModelCorrection:
    """The default correction: the same model is asked.

    Args:
        question: the request of which model, parameters and trial are taken. Its messages are those
            of the call.
        wording: of the correction prompt.
    """

    def __init__(self, question: Request, wording: CorrectionWording = "plain") -> None:
        self._question = question
        self._wording = wording

    def request(self, context: CorrectionContext) -> Request:
        """Return the question for a correction: equal contexts give equal questions."""
        first = self._question.params
        params = {k: v for k, v in first.items() if k not in OF_FIRST_QUESTION}
        messages = correction_messages(context, self._wording)
        return replace(self._question, messages=messages, params=params, tools=(), stream=False)

    def read(self, completion: Completion, context: CorrectionContext) -> Corrected:
        """Return the correction in an answer. Raises CorrectionFailed, with its cost."""
        return corrected_by(completion, context)


def corrected_by(completion: Completion, context: CorrectionContext) -> Corrected:
    """Return the correction in a model's answer. Raises CorrectionFailed, with its cost."""
    tokens, cost = tokens_of(completion), completion.cost or 0.0
    if completion.ok:
        return read_paid(completion.raw, context.tool, tokens, cost)
    failed = CorrectionFailed(f"the model could not be asked: {completion.error_kind or 'other'}")
    failed.tokens, failed.cost = tokens, cost
    raise failed


def tokens_of(completion: Completion) -> int:
    """Return the tokens of an answer, in and out, as far as the provider counted them."""
    return (completion.prompt_tokens or 0) + (completion.completion_tokens or 0)


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
    """Call a tool with a model's arguments, and have refused ones corrected.

    Args:
        tool: its definition.
        run: the function itself, called with the arguments by name. The error that it raises is its
            refusal.
        correct: gives corrected arguments, None if no one can be asked.
        sleep: waits so many seconds between regular attempts.

    >>> tool = {"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}
    >>> run_call(tool, {"n": "7"}, lambda n: n + 1).value
    8
    """

    def answer(need: Need) -> Any:
        if isinstance(need, RunTool):
            return result_of(run, need)
        if isinstance(need, Correct):
            return _corrected(correct, need.context)
        sleep(need.seconds)
        return None

    flow = corrected_call(
        tool, arguments, feedback, messages=messages, can_correct=correct is not None,
        step_id=step_id, agent=agent, on_event=on_event,
    )  # fmt: skip
    return drive(flow, answer)


async def arun_call(
    tool: Any,
    arguments: Mapping[str, Any],
    run: Tool,
    *,
    correct: Callback | None = None,
    feedback: Feedback | None = None,
    messages: Messages = (),
    sleep: Callable[[float], Any] = asyncio.sleep,
    on_event: OnEvent | None = None,
    step_id: str = "",
    agent: str = "",
) -> CorrectedCall:
    """`run_call` for a tool, a correction and a `sleep` that may be awaited."""

    async def answer(need: Need) -> Any:
        if isinstance(need, RunTool):
            reply = result_of(run, need)
            if not isinstance(reply, Accepted) or not inspect.isawaitable(reply.value):
                return reply
            try:
                return Accepted(await reply.value)
            except (Exception, SystemExit) as e:
                return ToolFailure.of(e)
        if isinstance(need, Correct):
            correction = _corrected(correct, need.context)
            if not inspect.isawaitable(correction):
                return correction
            try:
                return await correction
            except MissingRecording:
                return None
            except Exception as e:
                return e
        # As a plain function it would stop everything else that runs in this loop.
        waiting = (asyncio.sleep if sleep is time.sleep else sleep)(need.seconds)
        if inspect.isawaitable(waiting):
            await waiting
        return None

    flow = corrected_call(
        tool, arguments, feedback, messages=messages, can_correct=correct is not None,
        step_id=step_id, agent=agent, on_event=on_event,
    )  # fmt: skip
    return await adrive(flow, answer)


def asking(correction: ModelCorrection, ask: Callable[[Request], Completion | None]) -> Callback:
    """Return a callback that asks a model by `ask`.

    `ask` may be a recording (`store.recording.replay(path).answer`).
    """

    def correct(context: CorrectionContext) -> Corrected:
        request = correction.request(context)
        return correction.read(_recorded(ask(request), request), context)

    return correct


def asking_later(
    correction: ModelCorrection, ask: Callable[[Request], Awaitable[Completion | None]]
) -> Callback:
    """`asking` for an `ask` that is awaited, such as `runner.complete.complete`."""

    async def correct(context: CorrectionContext) -> Corrected:
        request = correction.request(context)
        return correction.read(_recorded(await ask(request), request), context)

    return correct


def _recorded(completion: Completion | None, request: Request) -> Completion:
    if completion is None:
        raise MissingRecording(
            "this correction was never recorded", keys=(request.key,), hint="run it live once"
        )
    return completion


def result_of(run: Tool, need: RunTool) -> Accepted | ToolFailure:
    # A tool that calls sys.exit must not end the flow.
    try:
        return Accepted(run(**need.arguments))
    except (Exception, SystemExit) as e:
        return ToolFailure.of(e)


def _corrected(correct: Callback | None, context: CorrectionContext) -> Any:
    if correct is None:
        return CorrectionFailed("nobody can be asked")
    try:
        return correct(context)
    except MissingRecording:
        return None
    except Exception as e:
        return e


_MOST_BODY = 8 * 2**20  # bytes of a response


class HttpTool:
    """A tool at an address.

    Called with arguments by name. Raises ToolRefused if it fails.

    Any status from 200 to 299 is a success, and gives the body as JSON, as text where it is none.

    Args:
        go_orchestrator: only status 200 is a success, and its body must be an object; errors are
            worded as the Go orchestrator words them. headers, timeout (seconds): of each request.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        go_orchestrator: bool = False,
    ) -> None:
        try:
            import httpx  # an extra
        except ImportError:
            raise MissingExtra(
                "tools behind HTTP need httpx", hint="in a checkout: pip install '.[lab]'"
            ) from None
        self._httpx = httpx
        self.url = url
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._timeout = timeout
        self._go = go_orchestrator

    def __repr__(self) -> str:
        # Without its headers, which may hold a key.
        return f"HttpTool({redact(self.url)!r})"

    def __call__(self, **arguments: Any) -> Any:
        body = bytearray()
        try:
            with (
                self._httpx.Client(timeout=self._timeout, headers=self._headers) as client,
                client.stream("POST", self.url, content=_written(arguments)) as response,
            ):
                for piece in response.iter_bytes():
                    _add(body, piece)
        except self._httpx.HTTPError as e:
            raise self._unreachable(e) from None
        return self._read(response.status_code, body)

    async def later(self, **arguments: Any) -> Any:
        """Ask once, awaited: give this method where an async tool is wanted."""
        body = bytearray()
        try:
            async with (
                self._httpx.AsyncClient(timeout=self._timeout, headers=self._headers) as client,
                client.stream("POST", self.url, content=_written(arguments)) as response,
            ):
                async for piece in response.aiter_bytes():
                    _add(body, piece)
        except self._httpx.HTTPError as e:
            raise self._unreachable(e) from None
        return self._read(response.status_code, body)

    def _unreachable(self, e: Exception) -> ToolRefused:
        return ToolRefused(ToolFailure(f"request failed: {redact(str(e)) or type(e).__name__}"))

    def _read(self, status: int, content: bytearray) -> Any:
        body = content.decode("utf-8", "replace")
        if status != 200 if self._go else not 200 <= status <= 299:
            message = f"agent returned status {status}: {body}"
            if not self._go:
                message = f"the tool answered with status {status}"
            raise ToolRefused(ToolFailure(message, body, status, issues_in_body(body)))
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as e:
            if self._go:
                raise _undecodable(body, status, str(e)) from None
            return body
        if self._go and not isinstance(value, dict):
            raise _undecodable(body, status, "no object")
        return value


def _written(arguments: Mapping[str, Any]) -> bytes:
    # Numbers keep the digits that the model wrote.
    return write_canonical(dict(arguments)).encode("utf-8", "surrogatepass")


def _add(body: bytearray, piece: bytes) -> None:
    body += piece
    if len(body) > _MOST_BODY:
        raise ToolRefused(ToolFailure(f"the tool's answer is larger than {_MOST_BODY} bytes"))


def _undecodable(body: str, status: int, why: str) -> ToolRefused:
    return ToolRefused(ToolFailure(f"failed to decode response: {why}", body, status))
