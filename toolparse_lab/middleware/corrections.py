"""Layer 3 of type safety for answers: a call whose arguments the schema refuses is asked about
again. Nothing is sent from here: a flow decides the question, and a driver asks it.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ..core.errors import CorrectionFailed
from ..core.toolspec import EMPTY_SCHEMA, ToolSpec
from ..core.values import read_plain, write_canonical
from .answer import Answer, was_run
from .core import ToolCallMiddleware
from .correction import Accepted, Correct, CorrectedCall, RunTool
from .correction.call import Need, corrected_call
from .correction.drive import OF_FIRST_QUESTION
from .correction.failure import Refused, ToolFailure, by_schema
from .correction.prompt import CorrectionContext, correction_messages, read_paid
from .drive import adrive, drive, relay
from .history import rewrite_history
from .turn import Turn

# How it works. The flow of a corrected call is the one that tools have; here the tool is the
# schema, which takes a call or refuses it and never changes its mind. So there is no pause, and a
# regular attempt is only another chance to ask. Each call of an answer has such a flow, one after
# another, and they share the budget. A call that stays refused is handed on as the model wrote it:
# half a correction is worse than none.

# Arguments of the first question that are none of a correction's.
_NOT_AGAIN = (*OF_FIRST_QUESTION, "stream", "stream_options", "n", "logprobs", "top_logprobs")


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Needed: a completion. To be sent: a `Reply`, or the exception that was raised.

    Attributes:
        params: the keyword arguments of an OpenAI-compatible completion.
        context: of the correction.
    """

    params: dict[str, Any]
    context: CorrectionContext


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's answer to a correction: text, tokens in and out, cost, time.

    The cost is in US dollars, the time in seconds.
    """

    text: str
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CallCorrection:
    """A call that the schema refused, and everything done for it.

    The index is among the message's tool calls. Its `ok` says that the schema takes it now.
    """

    index: int
    call: CorrectedCall

    def to_dict(self) -> dict[str, Any]:
        """Return the correction as JSON: paths only, no values."""
        corrections = self.call.corrections
        return {
            "call": self.index,
            "tool": self.call.tool.name,
            "valid": self.call.ok,
            "stop": self.call.stop,
            "asked": self.call.model_calls,
            "changed": list(dict.fromkeys(e.path for c in corrections for e in c.edits)),
            "collateral": list(dict.fromkeys(e.path for c in corrections for e in c.collateral)),
            "failures": [c.reason for c in corrections if c.reason],
        }


@dataclass(frozen=True, slots=True)
class CorrectedAnswer:
    """An answer after its corrections.

    Attributes:
        answer: with the corrected arguments. `answer.result` stays the model's own text.
        calls: those that the schema refused, () where no one was asked.
        seconds: of all replies together.
    """

    answer: Answer
    calls: tuple[CallCorrection, ...] = ()
    seconds: float = 0.0

    @property
    def asked(self) -> int:
        """Number of questions to the model, the first one left out."""
        return sum(call.call.model_calls for call in self.calls)

    @property
    def tokens(self) -> int:
        """Tokens of all corrections, in and out, as far as the provider counted them."""
        return sum(c.tokens for call in self.calls for c in call.call.corrections)

    @property
    def cost(self) -> float:
        """US dollars of all corrections, as far as they are known."""
        return sum(c.cost for call in self.calls for c in call.call.corrections)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON, as the bridge tells them."""
        return {
            "asked": self.asked,
            "tokens": self.tokens,
            "cost": round(self.cost, 9),
            "seconds": round(self.seconds, 3),
            "calls": [call.to_dict() for call in self.calls],
        }


Flow: TypeAlias = Generator[AskAgain, "Reply | BaseException", CorrectedAnswer]


def corrections(middleware: ToolCallMiddleware, turn: Turn, answer: Answer) -> Flow:
    """Run a flow that has the refused calls of an answer corrected.

    It goes by the middleware's `feedback`.

    Args:
        turn: the result of `transform_params`.
        answer: the result of `wrap_generate`, or the answer of a stream that is over. Without
            feedback, and where the schema takes every call, nothing is yielded. The flow raises
            nothing on account of a model.
    """
    feedback = middleware.feedback
    if feedback is None or not turn.active or not feedback.enabled:
        return CorrectedAnswer(answer)
    retries = feedback.max_validation_retries
    policy = middleware.for_turn(turn).ways.batch.coerce
    feedback = replace(
        feedback, policy=policy, max_attempts=1 + retries, backoff=lambda attempt: 0.0
    )
    seconds = 0.0

    def asked(need: Need) -> Generator[AskAgain, Any, Any]:
        nonlocal seconds
        if isinstance(need, RunTool):
            return refusal_of(need.tool, need.arguments) or Accepted()
        if not isinstance(need, Correct):
            return None
        params = {k: v for k, v in turn.params.items() if k not in _NOT_AGAIN}
        params["messages"] = list(correction_messages(need.context, feedback.wording))
        reply = yield AskAgain(params, need.context)
        if not isinstance(reply, Reply):
            # Its words may hold what was sent, credentials too.
            return CorrectionFailed(f"the model could not be asked: {type(reply).__name__}")
        seconds += reply.seconds
        try:
            return read_paid(reply.text, need.context.tool, reply.tokens, reply.cost)
        except CorrectionFailed as e:
            return e

    done: list[CallCorrection] = []
    calls = list(answer.tool_calls)
    for index, tool, arguments in _refused_calls(answer, {t.name: t for t in turn.tools}):
        # With nothing left of the budget no one is asked.
        before = CorrectedAnswer(answer, tuple(done))
        tokens, cost = feedback.max_tokens, feedback.max_cost
        budget = replace(
            feedback,
            max_tokens=None if tokens is None else max(0, tokens - before.tokens),
            max_cost=None if cost is None else max(0.0, cost - before.cost),
        )
        messages = with_answer(turn, answer)
        call = yield from relay(corrected_call(tool, arguments, budget, messages=messages), asked)
        done.append(CallCorrection(index, call))
        if call.ok:
            fitting = write_canonical(dict(call.arguments))
            function = {**calls[index]["function"], "arguments": fitting}
            calls[index] = {**calls[index], "function": function}
    if any(d.call.ok for d in done):
        answer = replace(answer, message={**answer.message, "tool_calls": calls})
    return CorrectedAnswer(answer, tuple(done), seconds)


# Asks a model with the arguments of a completion; gives a `Reply` or its text.
Ask: TypeAlias = Callable[[dict[str, Any]], Any]


def correct_answer(
    middleware: ToolCallMiddleware, turn: Turn, answer: Answer, ask: Ask
) -> CorrectedAnswer:
    """Have the calls of an answer corrected by `ask`, which gives a `Reply` or a text.

    The error that `ask` raises is a correction that failed. The answer then stays as it is.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.middleware import correct_answer
    >>> middleware = tp.create_tool_middleware("hermes", feedback=True)
    >>> schema = {"properties": {"n": {"type": "integer"}}}
    >>> params = {"messages": [], "tools": [{"name": "f", "parameters": schema}]}
    >>> turn = middleware.transform_params(params)
    >>> text = '<tool_call>{"name": "f", "arguments": {"n": "many"}}</tool_call>'
    >>> answer = middleware.wrap_generate(turn, text)
    >>> corrected = correct_answer(middleware, turn, answer, lambda params: '{"n": 7}')
    >>> corrected.answer.tool_calls[0]["function"]["arguments"]
    '{"n":7}'
    """

    def reply(need: AskAgain) -> Reply | BaseException:
        begin = time.monotonic()
        try:
            return _timed(ask(need.params), begin)
        except Exception as e:
            return e

    return drive(corrections(middleware, turn, answer), reply)


async def acorrect_answer(
    middleware: ToolCallMiddleware,
    turn: Turn,
    answer: Answer,
    ask: Callable[[dict[str, Any]], Awaitable[Any]],
) -> CorrectedAnswer:
    """`correct_answer` for an `ask` that is awaited."""

    async def reply(need: AskAgain) -> Reply | BaseException:
        begin = time.monotonic()
        try:
            text = ask(need.params)
            return _timed(await text if inspect.isawaitable(text) else text, begin)
        except Exception as e:
            return e

    return await adrive(corrections(middleware, turn, answer), reply)


def _timed(reply: Any, begin: float) -> Reply:
    seconds = time.monotonic() - begin
    if isinstance(reply, str):
        return Reply(reply, seconds=seconds)
    if isinstance(reply, Reply):
        return replace(reply, seconds=reply.seconds or seconds)
    raise CorrectionFailed("no text came", got=type(reply).__name__)


def _refused_calls(
    answer: Answer, tools: Mapping[str, ToolSpec]
) -> Iterator[tuple[int, ToolSpec, dict[str, Any]]]:
    # Readable, of a tool with a schema, and refused by it.
    for index, call in enumerate(answer.tool_calls):
        function = call.get("function")
        if not isinstance(function, Mapping):
            continue
        tool = tools.get(str(function.get("name")))
        if tool is None or tool.schema_json == EMPTY_SCHEMA or was_run(call):
            continue
        try:
            arguments = read_plain(function["arguments"])
        except (KeyError, TypeError, ValueError, RecursionError):
            continue
        if isinstance(arguments, dict) and refusal_of(tool, arguments) is not None:
            yield index, tool, arguments


def refusal_of(tool: ToolSpec, arguments: Mapping[str, Any]) -> ToolFailure | None:
    """Return what the tool's schema says against arguments, None if it takes them."""
    issues = tuple(by_schema(Refused(ToolFailure(""), arguments, tool.schema_json)))
    if not issues:
        return None
    return ToolFailure("; ".join(dict.fromkeys(i.message for i in issues)), issues=issues)


def with_answer(turn: Turn, answer: Answer) -> tuple[Mapping[str, Any], ...]:
    """Return the messages that were sent, and the answer: what a correction is asked after."""
    # Many chat templates take nothing but turns, so the answer comes before the question about it.
    text = answer.result.raw if answer.result is not None else ""
    wording: list[dict[str, Any]] = [{"role": "assistant", "content": text}]
    if not text.strip() and turn._prepared is not None:
        # Calls that the provider read itself, written as the format has them.
        wording = list(rewrite_history([answer.message], turn._prepared.writer))
    return (*turn.params["messages"], *wording)
