"""The tool loop: ask, read, run the tools, tell the model, until it answers. No I/O but that of the tools.

What a function gave back is recorded with the answer that called it (`Completion.results`), and a loop that is sent
such an answer takes the result from there: looking at a conversation, going on with it and replaying it run no function
twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ..errors import BadOptions, UnwritableCall
from ..middleware import Answer, ToolCallMiddleware, Turn
from ..protocols.results import ToolResult
from ..runner.types import Completion, Request
from ..types import ToolCall
from ..values import read_plain, read_strict, write_canonical
from .conversation import Conversation, ConversationTurn, Stop, ToolRun
from .drive import Flow
from .native import NativeTools

Middleware: TypeAlias = ToolCallMiddleware | NativeTools
Runnable: TypeAlias = Mapping[str, Callable[..., Any]]
"""Name of a tool -> a function of its arguments."""
Record: TypeAlias = Callable[[Completion, "ToolRun"], None]
"""Told of every function that was run, and the answer that called it; see `result_row`."""

_ERRORS = ("error-text", "error-json", "execution-denied")
_SHOWN = 10  # problems that a model is told of


def tool_loop(
    question: Request,
    middleware: Middleware,
    runnable: Runnable,
    *,
    max_turns: int = 8,
    first: Mapping[str, Any] | None = None,
    stop_on_failure: bool = False,
    data: Collection[str] = (),
    replay: bool = False,
    record: Record | None = None,
) -> Flow[Conversation]:
    """A flow that asks `question` and goes on until the model answers without a call.

    question: as for a model with tool calls: messages with calls and results of the past, `tools`, and `tool_choice`
    among its params, which holds for the first turn alone (a model that must always call never answers). The
    middleware makes of it what is sent. runnable: the tools; one that raises gives an error result. Calls whose
    arguments do not fit their schema are not run, and the model is told so. first: parameters of the first turn only,
    such as a grammar; None takes one away. stop_on_failure: a failing tool ends the loop. A call whose result is
    recorded with its answer is not run but takes that result. data: tools of `runnable` that are rows and no code, so
    that they are asked every time. replay: run no function; a result that is not recorded ends the loop. record: is
    told of each function that was run.

    Ids of calls come from their place or from the text, so that a replay asks the same questions. Raises BadOptions,
    and what `transform_params` raises for the question itself; after that, nothing.
    """
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
        raise BadOptions("max_turns is how often the model may be asked", got=max_turns, expected="1 or more")
    tools = _Tools(runnable, frozenset(data), replay, record)
    return _loop(question, middleware, tools, max_turns, dict(first or {}), stop_on_failure)


def _loop(
    question: Request,
    middleware: Middleware,
    tools: _Tools,
    max_turns: int,
    first: Mapping[str, Any],
    stop_on_failure: bool,
) -> Flow[Conversation]:
    params = dict(question.params)
    choice = {"tool_choice": params.pop("tool_choice", None)}
    messages: list[Mapping[str, Any]] = list(question.messages)
    turns: list[ConversationTurn] = []

    def ended(stop: Stop, pending: Request | None = None) -> Conversation:
        return Conversation(tuple(turns), stop, tuple(messages), pending)

    while True:
        asked = {**params, **({} if turns else choice), "messages": messages, "tools": list(question.tools)}
        try:
            turn = middleware.transform_params(asked)
        except UnwritableCall:
            if not turns:
                raise
            return ended("unwritable_result")
        request = _sent(question, turn, {} if turns else first)
        completion = yield request
        if completion is None:
            return ended("not_asked", request)
        if not completion.ok:
            turns.append(ConversationTurn(request, completion))
            return ended("provider_error")
        answer, calls = _read(middleware, turn, completion, len(turns))
        messages.append({k: v for k, v in answer.message.items() if k != "reasoning_content"})
        stop = _end_of(turn, answer, calls, tools.of(completion), last=len(turns) + 1 == max_turns)
        runs = () if stop else tuple(tools.run(call, id, completion) for id, call in calls)
        turns.append(ConversationTurn(request, completion, answer, runs))
        messages += [_message_of(run) for run in runs]
        if stop:
            return ended(stop)
        if stop_on_failure and any(run.status == "failed" for run in runs):
            return ended("tool_failed")


def _sent(question: Request, turn: Turn, first: Mapping[str, Any]) -> Request:
    sent = {**turn.params, **first}
    messages, tools = tuple(sent.pop("messages")), tuple(sent.pop("tools", ()))
    params = {k: v for k, v in sent.items() if v is not None or k not in first}
    return replace(question, messages=messages, params=params, tools=tools)


def _read(
    middleware: Middleware, turn: Turn, completion: Completion, number: int
) -> tuple[Answer, list[tuple[str, ToolCall]]]:
    """The answer, and its calls that are ok, by id."""
    answer = middleware.wrap_generate(
        turn, completion.raw, reasoning=completion.reasoning or None, finish_reason=completion.finish_reason
    )
    calls: dict[str, ToolCall] = {}
    for call in answer.result.calls if answer.result else ():
        if call.ok:
            calls[_new_id(call.wire_id, number + 1, calls)] = call
    if not calls:
        return answer, []
    # The middleware's own ids are random, and a model may be shown them.
    named = [{**said, "id": id} for said, id in zip(answer.tool_calls, calls, strict=True)]
    return replace(answer, message={**answer.message, "tool_calls": named}), list(calls.items())


def _new_id(wire: str | None, number: int, taken: Mapping[str, ToolCall]) -> str:
    made = wire if wire and wire not in taken else f"call_{number}_{len(taken) + 1}"
    while made in taken:  # the text of the call before may carry just this id
        made += "_"
    return made


def _end_of(
    turn: Turn,
    answer: Answer,
    calls: Sequence[tuple[str, ToolCall]],
    missing: Callable[[ToolCall, str], Stop | None],
    *,
    last: bool,
) -> Stop | None:
    if not calls:
        tried = turn.forced or (answer.result is not None and bool(answer.result.calls))
        return "unreadable_call" if tried else "answered"
    if last:
        return "max_turns"
    return next((stop for id, c in calls if c.valid and (stop := missing(c, id))), None)


@dataclass(frozen=True, slots=True)
class _Tools:
    """Where results come from: the recording, rows, functions, in this order of trust."""

    runnable: Runnable
    data: frozenset[str]
    replay: bool
    record: Record | None

    def of(self, completion: Completion) -> Callable[[ToolCall, str], Stop | None]:
        """Says why a valid call of this answer has no result, None where it has one or will."""

        def missing(call: ToolCall, call_id: str) -> Stop | None:
            if call.name in self.data or _recorded(completion, call, call_id) is not None:
                return None
            if call.name not in self.runnable:
                return "no_runnable_tool"
            return "not_run" if self.replay else None

        return missing

    def run(self, call: ToolCall, call_id: str, completion: Completion) -> ToolRun:
        if not call.valid:
            return ToolRun(call, call_id, _result(call, call_id, _error(_rejection(call))), "rejected")
        told = None if call.name in self.data else _recorded(completion, call, call_id)
        if told is not None:
            result = _result(call, call_id, read_plain(told))
            if write_canonical(result.output) != told:  # a number that Python's own types cannot write the same
                result = _result(call, call_id, read_strict(told))
            return _done(call, call_id, result)
        try:
            result = _result(call, call_id, self.runnable[call.name](**call.arguments))
        except (Exception, SystemExit) as e:
            result = _result(call, call_id, _error(_said(e)))
        done = _done(call, call_id, result)
        if self.record is not None and call.name not in self.data:
            self.record(completion, done)
        return done


def result_row(run: ToolRun) -> dict[str, str]:
    """What `Completion.results` holds of a function that was run. Its output is JSON text, which carries what a
    number of a database or of Python's own reader could not."""
    return {
        "call_id": run.call_id,
        "name": run.call.name,
        "arguments_json": run.call.arguments_json,
        "output_json": write_canonical(run.result.output),
    }


def _recorded(completion: Completion, call: ToolCall, call_id: str) -> str | None:
    wanted = (call_id, call.name, call.arguments_json)
    for row in completion.results:
        if (row["call_id"], row["name"], row["arguments_json"]) == wanted:
            return row["output_json"]
    return None


def _done(call: ToolCall, call_id: str, result: ToolResult) -> ToolRun:
    output = result.output
    failed = isinstance(output, dict) and output.get("type") in _ERRORS
    return ToolRun(call, call_id, result, "failed" if failed else "ran")


def _result(call: ToolCall, call_id: str, output: Any) -> ToolResult:
    return ToolResult.of({"toolName": call.name, "toolCallId": call_id, "output": output})


def _error(text: str) -> dict[str, Any]:
    return {"type": "error-text", "value": text}


def _said(e: BaseException) -> str:
    try:
        return f"{type(e).__name__}: {e}"
    except Exception:  # an error that cannot even say what it is
        return type(e).__name__


def _rejection(call: ToolCall) -> str:
    errors = [p for p in call.problems if p.stage == "validate" and p.severity == "error"]
    lines = [f"- {p.path or 'arguments'}: {p.message}" for p in errors[:_SHOWN]]
    return "\n".join(
        [f"The arguments do not fit the schema of {call.name}, so it was not run:", *lines, "Call it again."]
    )


def _message_of(run: ToolRun) -> dict[str, Any]:
    """In the shape of an AI SDK, which keeps the type of an output."""
    part = {"type": "tool-result", "toolCallId": run.call_id, "toolName": run.call.name, "output": run.result.output}
    return {"role": "tool", "tool_call_id": run.call_id, "name": run.call.name, "content": [part]}
