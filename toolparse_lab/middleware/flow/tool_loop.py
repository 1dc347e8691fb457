"""The tool loop: ask, read, run the tools, tell the model, until it answers.

No I/O but that of the tools.

How it works: the loop is a generator. It yields a question and is sent the answer, so one body of
code runs live, sync or async, and from a recording. Its state is the conversation so far. Each turn
is a pure function of that and the next answer, but for the functions that are run. What a function
gave back is recorded with the answer that called it (`Completion.results`), and a loop that is sent
such an answer takes the result from there: looking at a conversation, going on with it and
replaying it run no function twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ...core.errors import BadOptions, UnwritableCall
from ...core.types import ToolCall
from ...core.values import read_plain, read_strict, write_canonical
from ...formats.results import ToolResult
from ...runner.exchange.types import Completion, Request
from .. import Answer, ToolCallMiddleware, Turn
from ..drive import Flow
from .conversation import Conversation, ConversationTurn, Stop, ToolRun
from .native import NativeTools

Middleware: TypeAlias = ToolCallMiddleware | NativeTools
Runnable: TypeAlias = Mapping[str, Callable[..., Any]]
"""Name of a tool -> a function of its arguments."""
Record: TypeAlias = Callable[[Completion, "ToolRun"], None]
"""Told of every function that was run, and the answer that called it; see `result_row`."""

_ERRORS = ("error-text", "error-json", "execution-denied")  # types of outputs that are failures
_MOST_PROBLEMS = 10  # that a model is told of


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
    """Return a flow that asks `question` and goes on until the model answers without a call.

    question: as for a model with tool calls: messages with calls and results of the past, `tools`,
    and `tool_choice` among its params, which holds for the first turn alone (a model that must
    always call never answers). The middleware makes of it the request sent. runnable: the tools.
    One that raises gives an error result. Calls whose arguments do not fit their schema are not
    run, and the model is told so. first: parameters of the first turn only, such as a grammar. None
    takes one away. stop_on_failure: a failing tool ends the loop. A call whose result is recorded
    with its answer is not run but takes that result. data: tools of `runnable` that are rows and no
    code, so that they are asked every time. replay: run no function. A result that is not on record
    ends the loop. record: is told of each function that was run.

    Ids of calls come from their place or from the text, so that a replay asks the same questions.
    Raises BadOptions, and the error that `transform_params` raises for the question itself. After
    that, nothing.
    """
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
        raise BadOptions(
            "max_turns is how often the model may be asked", got=max_turns, expected="1 or more"
        )

    tools = _Tools(runnable, frozenset(data), replay, record)
    loop = _Loop(question, middleware, tools, max_turns, dict(first or {}), stop_on_failure)
    return loop.flow()


@dataclass(slots=True)
class _Loop:
    """One conversation under way.

    The fields are the arguments of `tool_loop`, and its state.
    """

    question: Request
    middleware: Middleware
    tools: _Tools
    max_turns: int
    first: Mapping[str, Any]
    stop_on_failure: bool
    messages: list[Mapping[str, Any]] = field(default_factory=list)
    turns: list[ConversationTurn] = field(default_factory=list)

    def flow(self) -> Flow[Conversation]:
        """Yield the generator: yields questions, is sent answers, returns the conversation.

        Each round is one turn: the question is made of all messages so far, sent, and its answer
        taken in. The middleware may raise for the question itself. After the first turn it raises
        nothing.
        """
        self.messages += self.question.messages
        while True:
            try:
                turn = self.middleware.transform_params(self._params())
            except UnwritableCall:
                # Of the question itself it is the caller's fault; later on, of a tool's result.
                if not self.turns:
                    raise
                return self._ended("unwritable_result")

            request = self._request(turn)
            completion = yield request
            if completion is None:
                return self._ended("not_asked", request)

            stop = self._take(turn, request, completion)
            if stop:
                return self._ended(stop)

    def _params(self) -> dict[str, Any]:
        """Return the next question, as for a model with tool calls.

        Returned are the caller's parameters with all messages so far and the tools, which the
        middleware then turns into the request sent.
        """
        params = dict(self.question.params)
        choice = params.pop("tool_choice", None)
        # A model that must always call never answers, so the choice is for the first turn.
        if not self.turns:
            params["tool_choice"] = choice

        return {**params, "messages": self.messages, "tools": list(self.question.tools)}

    def _request(self, turn: Turn) -> Request:
        """Return the question as it is sent.

        A None among the first turn's parameters removes one.

        turn: the middleware's form of `_params`. Its messages and tools move from the parameters to
        the fields of the request.
        """
        first = {} if self.turns else self.first
        params = {**turn.params, **first}
        messages, tools = tuple(params.pop("messages")), tuple(params.pop("tools", ()))
        params = {k: v for k, v in params.items() if v is not None or k not in first}
        return replace(self.question, messages=messages, params=params, tools=tools)

    def _take(self, turn: Turn, request: Request, completion: Completion) -> Stop | None:
        """Read an answer and run its tools.

        Return why the conversation ends, None to go on.

        turn: the question as the middleware prepared it, which says how to read the answer.
        request: the question as it was sent, kept for the record.
        completion: its answer, or the provider's failure.

        Changes the state of the loop: one turn more, and the messages that the next question shows.
        """
        if not completion.ok:
            self.turns.append(ConversationTurn(request, completion))
            return "provider_error"

        number = len(self.turns) + 1
        answer, calls = _read(self.middleware, turn, completion, number)
        # The model is not shown its reasoning again.
        message = {k: v for k, v in answer.message.items() if k != "reasoning_content"}
        self.messages.append(message)
        missing = self.tools.missing_in(completion)
        stop = _end_of(turn, answer, calls, missing, last=number == self.max_turns)
        runs: tuple[ToolRun, ...] = ()
        if not stop:
            runs = tuple(self.tools.run(call, id, completion) for id, call in calls)

        self.turns.append(ConversationTurn(request, completion, answer, runs))
        self.messages += [_message_of(run) for run in runs]
        if stop or not self.stop_on_failure:
            return stop

        return "tool_failed" if any(run.status == "failed" for run in runs) else None

    def _ended(self, stop: Stop, pending: Request | None = None) -> Conversation:
        """Return the conversation as it is now.

        stop: why it ends here. pending: the question that still has no answer.
        """
        return Conversation(tuple(self.turns), stop, tuple(self.messages), pending)


def _read(
    middleware: Middleware, turn: Turn, completion: Completion, number: int
) -> tuple[Answer, list[tuple[str, ToolCall]]]:
    """Return the answer, and its calls that are ok, by id. number: of the turn, from 1.

    middleware: reads the text of the answer, by the turn it prepared.
    completion: the answer as it was recorded.

    Calls that could not be read have no id and are not among those returned.
    """
    answer = middleware.wrap_generate(
        turn,
        completion.raw,
        reasoning=completion.reasoning or None,
        finish_reason=completion.finish_reason,
    )
    calls: dict[str, ToolCall] = {}

    # An answer that was passed through has no parse.
    parsed = answer.result.calls if answer.result else ()
    for call in parsed:
        if call.ok:
            calls[_new_id(call.wire_id, number, calls)] = call

    if not calls:
        return answer, []

    # The middleware's own ids are random, and a model may be shown them.
    tool_calls = [
        {**tool_call, "id": id} for tool_call, id in zip(answer.tool_calls, calls, strict=True)
    ]
    message = {**answer.message, "tool_calls": tool_calls}
    return replace(answer, message=message), list(calls.items())


def _new_id(wire: str | None, number: int, used: Mapping[str, ToolCall]) -> str:
    """Return the id of a call: that of the text, else one of its place in the conversation.

    wire: the id that stands in the text, None if there is none.
    number: the turn, from 1.
    used: the calls of this answer that already have an id.
    """
    id = f"call_{number}_{len(used) + 1}"
    if wire and wire not in used:
        id = wire

    while id in used:  # the text of the call before may carry just this id
        id += "_"

    return id


def _end_of(
    turn: Turn,
    answer: Answer,
    calls: Sequence[tuple[str, ToolCall]],
    missing: Callable[[ToolCall, str], Stop | None],
    *,
    last: bool,
) -> Stop | None:
    """The reason why the conversation ends with this answer, None if its calls can be run.

    turn: the question, which may have forced a call.
    calls: the calls that are ok, with their ids.
    missing: the reason why a valid call has no result. last: no further turn is allowed.
    """
    if not calls:
        tried = turn.forced or (answer.result is not None and bool(answer.result.calls))
        return "unreadable_call" if tried else "answered"
    if last:
        return "max_turns"

    # One call that cannot be run ends the turn before any other is run.
    for id, call in calls:
        stop = missing(call, id) if call.valid else None
        if stop:
            return stop

    return None


@dataclass(frozen=True, slots=True)
class _Tools:
    """The sources of results: the recording, rows, functions, in this order of trust."""

    runnable: Runnable
    data: frozenset[str]
    replay: bool
    record: Record | None

    def missing_in(self, completion: Completion) -> Callable[[ToolCall, str], Stop | None]:
        """Return a function that returns why a valid call of this answer has no result, None if it
        has one or will.

        completion: the answer, whose recorded results are looked through for each call.
        """

        def missing(call: ToolCall, call_id: str) -> Stop | None:
            # Rows are no code: they are asked every time, a replay included.
            if call.name in self.data or _recorded(completion, call, call_id) is not None:
                return None
            if call.name not in self.runnable:
                return "no_runnable_tool"
            return "not_run" if self.replay else None

        return missing

    def run(self, call: ToolCall, call_id: str, completion: Completion) -> ToolRun:
        """Return the run of a call: its recorded result, or that of its function.

        Rejected where the arguments do not fit.

        call: a call that is ok, though its arguments may not fit the schema.
        call_id: the id that a recorded result is found by.
        completion: the answer that made the call, whose recorded results are used.

        A function that raises is a run that failed. The conversation goes on with its message.
        """
        if not call.valid:
            rejection = _result(call, call_id, _error(_rejection(call)))
            return ToolRun(call, call_id, rejection, "rejected")

        if call.name not in self.data:
            output = _recorded(completion, call, call_id)
            if output is not None:
                return _done(call, call_id, _restored(call, call_id, output))

        # A tool that calls sys.exit must not end the loop.
        try:
            result = _result(call, call_id, self.runnable[call.name](**call.arguments))
        except (Exception, SystemExit) as e:
            result = _result(call, call_id, _error(_text_of(e)))

        done = _done(call, call_id, result)
        # Recorded before the next question, so that a crash runs no function twice.
        if self.record is not None and call.name not in self.data:
            self.record(completion, done)

        return done


def _restored(call: ToolCall, call_id: str, output: str) -> ToolResult:
    """Return a result from its recorded JSON text, with Python's own numbers where they say the
    same.

    output: the recorded JSON text.

    Reading a large number as a float could change it, so the result is written again, and where the
    text differs the numbers are kept exactly.
    """
    result = _result(call, call_id, read_plain(output))
    if write_canonical(result.output) == output:
        return result
    return _result(call, call_id, read_strict(output))


def result_row(run: ToolRun) -> dict[str, str]:
    """Return the row of `Completion.results` for a function that was run.

    Its output is JSON text, which carries the value that a number of a database or of Python's own
    reader could not.
    """
    return {
        "call_id": run.call_id,
        "name": run.call.name,
        "arguments_json": run.call.arguments_json,
        "output_json": write_canonical(run.result.output),
    }


def _recorded(completion: Completion, call: ToolCall, call_id: str) -> str | None:
    """Return the recorded output of a call as JSON text.

    Of another call of the same id it is none.

    A call is the same only with the same id, name and arguments: a model may use one id twice.
    """
    key = (call_id, call.name, call.arguments_json)
    for row in completion.results:
        if (row["call_id"], row["name"], row["arguments_json"]) == key:
            return row["output_json"]

    return None


def _done(call: ToolCall, call_id: str, result: ToolResult) -> ToolRun:
    """Return the run of a function, failed where its output is an error.

    call_id: the id the model knows the call by. result: the result of the function back, in the
    shapes of `ToolResult`.
    """
    output = result.output
    failed = isinstance(output, dict) and output.get("type") in _ERRORS
    return ToolRun(call, call_id, result, "failed" if failed else "ran")


def _result(call: ToolCall, call_id: str, output: Any) -> ToolResult:
    """Return an output as the result of a call.

    output: any value, or a mapping in the shape of an AI SDK, which says the kind of its output.
    """
    return ToolResult.of({"toolName": call.name, "toolCallId": call_id, "output": output})


def _error(text: str) -> dict[str, Any]:
    """Return an output that is a failure, in the shape of an AI SDK."""
    return {"type": "error-text", "value": text}


def _text_of(e: BaseException) -> str:
    """Return an exception as text.

    >>> _text_of(KeyError("word"))
    "KeyError: 'word'"
    """
    try:
        return f"{type(e).__name__}: {e}"
    except Exception:  # its own __str__ failed
        return type(e).__name__


def _rejection(call: ToolCall) -> str:
    """Return the sentence for the model whose arguments do not fit.

    call: a call whose arguments were validated. At most `_MOST_PROBLEMS` errors are named, each by
    the path of its value.
    """
    errors = [p for p in call.problems if p.stage == "validate" and p.severity == "error"]
    lines = [f"- {p.path or 'arguments'}: {p.message}" for p in errors[:_MOST_PROBLEMS]]
    return "\n".join(
        [
            f"The arguments do not fit the schema of {call.name}, so it was not run:",
            *lines,
            "Call it again.",
        ]
    )


def _message_of(run: ToolRun) -> dict[str, Any]:
    """Return the message of a tool run, in the shape of an AI SDK, which keeps the type of an
    output.

    run: a finished run, of whichever status: a failure is an output like others.
    """
    part = {
        "type": "tool-result",
        "toolCallId": run.call_id,
        "toolName": run.call.name,
        "output": run.result.output,
    }
    return {"role": "tool", "tool_call_id": run.call_id, "name": run.call.name, "content": [part]}
