"""The tool loop: ask, read, run the tools, tell the model, until it answers; and its conversation.

No I/O but that of the tools.

How it works: the loop is a generator. It yields a question and is sent the answer, so one body of
code runs live, sync or async, and from a recording. Its state is the conversation so far. Each turn
is a pure function of that and the next answer, but for the functions that are run. What a function
gave back is recorded with the answer that called it (`Completion.results`), and a loop that is sent
such an answer takes the result from there: looking at a conversation, going on with it and
replaying it run no function twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ...arguments.schema.strict_form import strict_form
from ...core.errors import BadOptions, CorrectionFailed, NoStrictForm, UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.types import ParseOptions, ParseResult, ToolCall
from ...core.types.call import is_held_back
from ...core.values import read_plain, read_strict, write_canonical
from ...entry.parse import parse_text
from ...formats.json.openai_json import OPENAI_JSON, OPENAI_STRICT
from ...formats.results import ToolResult
from ...runner.exchange.types import Completion, Request
from .. import Answer, ToolCallMiddleware, Turn
from ..answer import answer_of
from ..attempts import CallIds
from ..choice import read_choice, read_tools
from ..correction import (
    Accepted,
    Correct,
    CorrectedCall,
    Feedback,
    Issue,
    ModelCorrection,
    Refused,
    RunTool,
    ToolFailure,
    corrected_call,
)
from ..correction.call import Need
from ..correction.drive import corrected_by
from ..correction.failure import DEFAULT_DETECTORS
from ..corrections import refusal_of, with_answer
from ..drive import Flow, relay

_REPLACED = ("messages", "tools", "tool_choice")


@dataclass(frozen=True, slots=True)
class NativeTools:
    """Sends tools, calls and results in OpenAI's shape, and reads the provider's own calls.

    strict: ask the provider to keep its calls to the schemas, which are sent in their strict form:
    closed, every property required, and null for what is left out. The nulls are dropped again from
    its calls.
    """

    strict: bool = False

    def transform_params(self, params: Mapping[str, Any]) -> Turn:
        """Return the request to send: the tools as such, and the tool choice.

        params: the keyword arguments of an OpenAI-compatible completion. `messages` must be there.

        The tool choice drops out where it is 'auto', and if there are no tools. The turn is
        active where there are tools, so that the answer's calls are read with their schemas.

        Raises BadToolSpec, NoStrictForm and BadToolChoice.
        """
        offered = read_tools(params.get("tools"))
        choice = read_choice(params.get("tool_choice"), offered)
        request = {k: v for k, v in params.items() if k not in _REPLACED}
        # A provider takes no tool choice without tools.
        if offered.tools:
            request["tools"] = [self._tool(t) for t in offered.tools]
            if choice.kind == "tool":
                request["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
            elif choice.kind != "auto":
                request["tool_choice"] = choice.kind
        request["messages"] = [m for message in params["messages"] for m in _messages_of(message)]
        active = bool(offered.tools)
        return Turn(
            request, offered.tools, choice.kind, choice.name, active, active and choice.forced,
            messages=tuple(params["messages"]),
        )  # fmt: skip

    def _tool(self, tool: ToolSpec) -> dict[str, Any]:
        definition = tool.to_openai()
        if self.strict:
            try:
                form = strict_form(tool.schema_json)
            except NoStrictForm as error:
                error.message = f"tool {tool.name!r}: {error.message}"
                raise
            definition["function"] |= {"parameters": form.schema, "strict": True}
        return definition

    def wrap_generate(
        self,
        turn: Turn,
        content: Any,
        *,
        reasoning: str | None = None,
        finish_reason: str | None = "stop",
    ) -> Answer:
        """Read a recorded answer.

        turn: the result of `transform_params` for the question.
        reasoning: the words that the provider gave as reasoning, apart from the text.
        finish_reason: the words that the provider said of the answer's end, None if it said
            nothing.
        content: its text, or with tools the canonical JSON of text and calls.
        """
        # The runner records such an answer as the JSON of text and calls, which this format reads.
        options = ParseOptions(coerce="middleware")
        reader = OPENAI_STRICT if self.strict else OPENAI_JSON
        result = parse_text(content, reader, turn.tools, options, request=turn.messages)
        return answer_of(result, finish_reason, CallIds(), reasoning=reasoning)


def _messages_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    # One result is one message. Other parts next to results drop out: OpenAI's tool messages have
    # no place for them.
    content = message.get("content")
    if message.get("role") != "tool" or not isinstance(content, (list, tuple)):
        return [dict(message)]
    messages = []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") == "tool-result":
            result = ToolResult.of(part)
            text = result.content
            text = text if isinstance(text, str) else write_canonical(text)
            ids = {"tool_call_id": result.call_id, "name": result.name}
            messages.append({"role": "tool", **ids, "content": text})
    return messages or [dict(message)]


Stop: TypeAlias = Literal[
    "answered", "unreadable_call", "max_turns", "no_runnable_tool", "not_run",
    "unwritable_result", "provider_error", "not_asked", "accepted", "refused",
]  # fmt: skip
# Why a conversation ended -> one sentence.
STOPS: Mapping[Stop, str] = {
    "answered": "The model answered without a call.",
    "unreadable_call": "A call was tried or required, and none could be read.",
    "max_turns": "The last turn allowed still held calls; they were not run.",
    "no_runnable_tool": "A call needs a tool that cannot be run here; nothing of its turn was run.",
    "not_run": "The results of its calls are not recorded, and reading a recording runs no "
    "function.",
    "unwritable_result": "A tool's result cannot be written in the format of the model.",
    "provider_error": "The provider failed.",
    "not_asked": "The next question has no answer yet.",
    "accepted": "The tools took all calls of the last turn allowed, some perhaps corrected.",
    "refused": "A call of the last turn allowed was refused, and its corrections are used up.",
}
# The ends of a conversation that may go on once more is recorded.
OPEN: tuple[Stop, ...] = ("not_asked", "not_run")


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One call and its outcome.

    status: 'ran'. 'failed', the tool raised or gave an error. 'rejected', the arguments do not fit
    the tool's schema, so that it was not run and the model is told why. call_id: the same whenever
    the conversation is replayed.
    """

    call: ToolCall
    call_id: str
    result: ToolResult
    status: Literal["ran", "failed", "rejected"]


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One question as it was sent, its recorded answer, its reading, and the calls that were run.

    answer is None if the provider failed, and for a correction. corrects: of a correction, the id
    of the call that it is about. corrected: what became of the calls of this answer, by id, where
    refused calls are corrected.
    """

    request: Request
    completion: Completion
    answer: Answer | None = None
    runs: tuple[ToolRun, ...] = ()
    corrected: Mapping[str, CorrectedCall] = field(default_factory=dict)
    corrects: str = ""

    @property
    def result(self) -> ParseResult | None:
        """The parse of the answer with every call that was seen, those that could not be read
        included. None if there is no answer, or no call was allowed.
        """
        return self.answer.result if self.answer else None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A finished tool loop, or as much of it as has answers.

    stop: one of `STOPS`. messages: the conversation in OpenAI shape, as the caller of a model with
    tool calls would keep it, the given messages first. pending: the question that has no answer,
    where stop is 'not_asked'.
    """

    turns: tuple[ConversationTurn, ...]
    stop: Stop
    messages: tuple[Mapping[str, Any], ...] = ()
    pending: Request | None = None

    @property
    def answer(self) -> str | None:
        """The text of the final answer, or None if the conversation did not end with one."""
        # The last text next to calls that were not run is not an answer.
        if self.stop != "answered" or not self.turns or self.turns[-1].answer is None:
            return None
        content = self.turns[-1].answer.message.get("content")
        return content if isinstance(content, str) else ""

    @property
    def runs(self) -> tuple[ToolRun, ...]:
        """The tool runs of all turns, in order. Calls that were not run are not among them."""
        return tuple(run for turn in self.turns for run in turn.runs)

    @property
    def counts(self) -> Mapping[str, int]:
        """Status of a tool run -> how many. Each status is a key, even where no run has it."""
        return {"ran": 0, "failed": 0, "rejected": 0, **Counter(run.status for run in self.runs)}

    def __str__(self) -> str:
        lines: list[str] = []
        for number, turn in enumerate(self.turns, 1):
            message = turn.answer.message if turn.answer else {}
            text = message.get("content") or turn.completion.error_message
            if turn.corrects:
                text = f"correction of {turn.corrects}: {turn.completion.raw or text}"
            lines.append(f"{number}. {text if isinstance(text, str) else ''}".rstrip())
            for run in turn.runs:
                result = write_canonical(run.result.content)
                lines.append(
                    f"   {run.call.name}({run.call.arguments_json}) {run.status}: {result}"
                )
        return "\n".join([*lines, f"{self.stop}: {STOPS[self.stop]}"])


Middleware: TypeAlias = ToolCallMiddleware | NativeTools
# Name of a tool -> a function of its arguments.
Runnable: TypeAlias = Mapping[str, Callable[..., Any]]
# Told of every function that was run, and the answer that called it; see `result_row`.
Record: TypeAlias = Callable[[Completion, "ToolRun"], None]

_ERRORS = ("error-text", "error-json", "execution-denied")  # types of outputs that are failures
_MOST_PROBLEMS = 10  # that a model is told of


def tool_loop(
    question: Request,
    middleware: Middleware,
    runnable: Runnable,
    *,
    max_turns: int = 8,
    first: Mapping[str, Any] | None = None,
    data: Collection[str] = (),
    replay: bool = False,
    record: Record | None = None,
    corrections: int = 0,
    mocks: Collection[str] = (),
) -> Flow[Conversation]:
    """Return a flow that asks `question` and goes on until the model answers without a call.

    question: as for a model with tool calls: messages with calls and results of the past, `tools`,
    and `tool_choice` among its params, which applies to the first turn alone (a model that must
    always call never answers). The middleware makes of it the request sent. runnable: the tools.
    One that raises gives an error result. Calls whose arguments do not fit their schema are not
    run, and the model is told so. first: parameters of the first turn only, such as a grammar. None
    takes one away. A call whose result is recorded with its answer is not run but takes that
    result. data: tools of `runnable` that are rows and no code, so that they are asked every time.
    replay: run no function. A result that is not on record ends the loop. record: is told of each
    function that was run.

    corrections: how often each call that its schema or its tool refuses is shown to the model with
    the error. Calls of the last turn are then tried as well. mocks: tools that are not run and take
    whatever their schema allows.

    Ids of calls come from their place or from the text, so that a replay asks the same questions.
    Raises BadOptions, and the error that `transform_params` raises for the question itself. After
    that, nothing.
    """
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
        raise BadOptions(
            "max_turns is how often the model may be asked", got=max_turns, expected="1 or more"
        )
    return _Loop(
        question, middleware, runnable, max_turns, dict(first or {}), frozenset(data), replay,
        record, corrections, frozenset(mocks),
    ).flow()  # fmt: skip


@dataclass(slots=True)
class _Loop:
    question: Request
    middleware: Middleware
    # Results come from the recording, rows (`data`), functions, in this order of trust.
    runnable: Runnable
    max_turns: int
    first: Mapping[str, Any]
    data: frozenset[str]
    replay: bool
    record: Record | None
    corrections: int
    mocks: frozenset[str]
    messages: list[Mapping[str, Any]] = field(default_factory=list)
    turns: list[ConversationTurn] = field(default_factory=list)

    def flow(self) -> Flow[Conversation]:
        self.messages += self.question.messages
        while True:
            params = dict(self.question.params)
            # A model that must always call never answers, so the choice is for the first turn.
            if self.turns:
                params.pop("tool_choice", None)
            params |= {"messages": self.messages, "tools": list(self.question.tools)}
            try:
                turn = self.middleware.transform_params(params)
            except UnwritableCall:
                # Of the question itself it is the caller's fault; later on, of a tool's result.
                if not self.turns:
                    raise
                return self._ended("unwritable_result")
            # A None among the first turn's parameters removes one.
            first = {} if self.turns else self.first
            params = {**turn.params, **first}
            messages, tools = tuple(params.pop("messages")), tuple(params.pop("tools", ()))
            params = {k: v for k, v in params.items() if v is not None or k not in first}
            request = replace(self.question, messages=messages, params=params, tools=tools)
            completion = yield request
            if completion is None:
                return self._ended("not_asked", request)
            stop, pending = yield from self._take(turn, request, completion)
            if stop:
                return self._ended(stop, pending)

    def _take(
        self, turn: Turn, request: Request, completion: Completion
    ) -> Flow[tuple[Stop | None, Request | None]]:
        # Gives why the conversation ends, None to go on, and the question that has no answer.
        if not completion.ok:
            self.turns.append(ConversationTurn(request, completion))
            return "provider_error", None

        number = 1 + sum(not turn.corrects for turn in self.turns)  # from 1
        answer, calls = _read(self.middleware, turn, completion, number)
        tries: list[_Try] = []
        if self.corrections:
            tries = yield from self._try(turn, request, completion, answer, calls)
            answer, calls = _with_corrected(answer, tries), [(t.call_id, t.call) for t in tries]
        # The model is not shown its reasoning again.
        message = {k: v for k, v in answer.message.items() if k != "reasoning_content"}
        self.messages.append(message)
        stop: Stop | None = None
        if not calls:
            shown = answer.result is None or all(map(is_held_back, answer.result.calls))
            tried = turn.forced or not shown
            stop = "unreadable_call" if tried else "answered"
        elif tries:
            stop = next((t.stop for t in tries if t.stop), None)
            if not stop and number == self.max_turns:
                stop = "accepted" if all(t.outcome.ok for t in tries) else "refused"
            elif not stop and not all(t.run for t in tries):
                stop = "no_runnable_tool"
        elif number == self.max_turns:
            stop = "max_turns"
        else:
            # One call that cannot be run ends the turn before any other is run.
            stops = (self._missing(c, id, completion) for id, c in calls if c.valid)
            stop = next(filter(None, stops), None)
        runs = tuple(t.run for t in tries if t.run)
        if not stop and not tries:
            runs = tuple(self._run(call, id, completion) for id, call in calls)

        corrected = {t.call_id: t.outcome for t in tries}
        self.turns.append(ConversationTurn(request, completion, answer, runs, corrected))
        self.turns += [turn for t in tries for turn in t.turns]
        if stop:
            return stop, next((t.pending for t in tries if t.pending), None)
        # In the shape of an AI SDK, which keeps the type of an output.
        for run in runs:
            id, name = run.call_id, run.call.name
            part = {"type": "tool-result", "toolCallId": id, "toolName": name}
            part["output"] = run.result.output
            result = {"role": "tool", "tool_call_id": id, "name": name, "content": [part]}
            self.messages.append(result)
        return None, None

    def _try(
        self,
        turn: Turn,
        request: Request,
        completion: Completion,
        answer: Answer,
        calls: Sequence[tuple[str, ToolCall]],
    ) -> Flow[list[_Try]]:
        # Every call is tried, one after another, and refused ones are corrected. It ends at the
        # first that cannot go on.
        if not calls or answer.result is None:
            return []
        feedback = Feedback(
            max_attempts=1,  # a tool that is asked the same again says the same
            max_validation_retries=self.corrections,
            detectors=(*DEFAULT_DETECTORS, _any_refusal),
            policy=answer.result.options.coerce,
        )
        tools, messages = {tool.name: tool for tool in turn.tools}, with_answer(turn, answer)
        tries: list[_Try] = []
        for id, call in calls:
            tool = tools.get(call.name) or ToolSpec.of({"name": call.name})
            flow = corrected_call(tool, call.arguments, feedback, messages=messages)
            one = _Try(self, request, completion, call, id)
            one.end(call, (yield from relay(flow, one.answer)))
            tries.append(one)
            if one.stop:
                break
        return tries

    def _missing(self, call: ToolCall, call_id: str, completion: Completion) -> Stop | None:
        # Why a valid call has no result. Rows are no code: they are asked every time, a replay
        # included.
        if call.name in self.data or _recorded(completion, call, call_id) is not None:
            return None
        if call.name not in self.runnable:
            return "no_runnable_tool"
        return "not_run" if self.replay else None

    def _run(self, call: ToolCall, call_id: str, completion: Completion) -> ToolRun:
        if not call.valid:
            errors = [p for p in call.problems if p.stage == "validate" and p.severity == "error"]
            lines = [
                f"The arguments do not fit the schema of {call.name}, so it was not run:",
                *(f"- {p.path or 'arguments'}: {p.message}" for p in errors[:_MOST_PROBLEMS]),
                "Call it again.",
            ]
            rejection = _result(call, call_id, {"type": "error-text", "value": "\n".join(lines)})
            return ToolRun(call, call_id, rejection, "rejected")

        if call.name not in self.data:
            output = _recorded(completion, call, call_id)
            if output is not None:
                # Reading a large number as a float could change it: where the result written again
                # differs, the numbers are kept exactly.
                result = _result(call, call_id, read_plain(output))
                if write_canonical(result.output) != output:
                    result = _result(call, call_id, read_strict(output))
                return _done(call, call_id, result)

        # A tool that calls sys.exit must not end the loop.
        try:
            result = _result(call, call_id, self.runnable[call.name](**call.arguments))
        except (Exception, SystemExit) as e:
            try:
                text = f"{type(e).__name__}: {e}"
            except Exception:  # its own __str__ failed
                text = type(e).__name__
            result = _result(call, call_id, {"type": "error-text", "value": text})

        done = _done(call, call_id, result)
        # Recorded before the next question, so that a crash runs no function twice.
        if self.record is not None and call.name not in self.data:
            self.record(completion, done)

        return done

    def _ended(self, stop: Stop, pending: Request | None = None) -> Conversation:
        return Conversation(tuple(self.turns), stop, tuple(self.messages), pending)


def _any_refusal(refused: Refused) -> list[Issue]:
    # Whatever a tool says against a call that its schema allows.
    return [Issue(None, "", refused.failure.message)]


@dataclass(slots=True)
class _Try:
    # One call on its way to its tool, and the questions about it.
    loop: _Loop
    request: Request
    source: Completion  # the answer that holds the arguments; the result is recorded with it
    call: ToolCall
    call_id: str
    outcome: CorrectedCall = field(init=False)
    turns: list[ConversationTurn] = field(default_factory=list)
    runs: list[ToolRun] = field(default_factory=list)
    run: ToolRun | None = None  # what the model is told; None for a mock
    stop: Stop | None = None  # why the conversation cannot go on
    pending: Request | None = None

    def answer(self, need: Need) -> Flow[Any]:
        if isinstance(need, RunTool):
            return self._tool(need)
        if not isinstance(need, Correct):
            return None
        question = ModelCorrection(self.request).request(need.context)
        reply = yield question
        if reply is None:
            self.stop, self.pending = "not_asked", question
            return None
        self.source = reply
        self.turns.append(ConversationTurn(question, reply, corrects=self.call_id))
        if not reply.ok:
            self.stop = "provider_error"
        try:
            return corrected_by(reply, need.context)
        except CorrectionFailed as e:
            return e

    def _tool(self, need: RunTool) -> Accepted | ToolFailure:
        refusal = refusal_of(need.tool, need.arguments)
        if refusal is not None:
            return refusal
        text = write_canonical(dict(need.arguments))
        if text != self.call.arguments_json:
            problems = tuple(p for p in self.call.problems if p.stage != "validate")
            self.call = replace(self.call, arguments_json=text, problems=problems)
        is_mock = self.call.name in self.loop.mocks
        if is_mock and _recorded(self.source, self.call, self.call_id) is None:
            return Accepted()
        self.stop = self.loop._missing(self.call, self.call_id, self.source)
        if self.stop:
            return Accepted()  # nothing more can be found out
        run = self.loop._run(self.call, self.call_id, self.source)
        self.runs.append(run)
        content = run.result.content
        if run.status == "ran":
            return Accepted(content)
        return ToolFailure(content if isinstance(content, str) else write_canonical(content))

    def end(self, call: ToolCall, outcome: CorrectedCall) -> None:
        # call: as the model wrote it. One that stays refused is handed on like this: half a
        # correction is worse than none.
        self.outcome = outcome
        if outcome.ok:
            self.run = self.runs[-1] if self.runs else None
            return
        self.call = call
        if self.runs and self.runs[0].call == call:
            self.run = self.runs[0]
        else:
            refusal = {"type": "error-text", "value": outcome.failures[0].message}
            self.run = ToolRun(call, self.call_id, _result(call, self.call_id, refusal), "rejected")


def _with_corrected(answer: Answer, tries: Sequence[_Try]) -> Answer:
    # The next question shows the calls as they were made in the end.
    new = {t.call_id: t.call.arguments_json for t in tries if t.outcome.corrections}
    tool_calls = answer.message.get("tool_calls") or ()
    if not new or not tool_calls:
        return answer
    changed = [
        {**c, "function": {**c["function"], "arguments": new[c["id"]]}} if c["id"] in new else c
        for c in tool_calls
    ]
    return replace(answer, message={**answer.message, "tool_calls": changed})


def _read(
    middleware: Middleware, turn: Turn, completion: Completion, number: int
) -> tuple[Answer, list[tuple[str, ToolCall]]]:
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
            # The id of the text, else one of its place in the conversation.
            id = f"call_{number}_{len(calls) + 1}"
            if call.wire_id and call.wire_id not in calls:
                id = call.wire_id
            while id in calls:  # the text of the call before may carry just this id
                id += "_"
            calls[id] = call

    if not calls:
        return answer, []

    # The middleware's own ids are random, and a model may be shown them.
    tool_calls = [
        {**tool_call, "id": id} for tool_call, id in zip(answer.tool_calls, calls, strict=True)
    ]
    message = {**answer.message, "tool_calls": tool_calls}
    return replace(answer, message=message), list(calls.items())


def result_row(run: ToolRun) -> dict[str, str]:
    """Return the row of `Completion.results` for a function that was run.

    Its output is JSON text, which carries the value that a number of a database or of Python's own
    reader could not.
    """
    row = {"call_id": run.call_id, "name": run.call.name}
    row["arguments_json"] = run.call.arguments_json
    return {**row, "output_json": write_canonical(run.result.output)}


def _recorded(completion: Completion, call: ToolCall, call_id: str) -> str | None:
    # A call is the same only with the same id, name and arguments: a model may use one id twice.
    key = (call_id, call.name, call.arguments_json)
    for row in completion.results:
        if (row["call_id"], row["name"], row["arguments_json"]) == key:
            return row["output_json"]
    return None


def _done(call: ToolCall, call_id: str, result: ToolResult) -> ToolRun:
    output = result.output
    failed = isinstance(output, dict) and output.get("type") in _ERRORS
    return ToolRun(call, call_id, result, "failed" if failed else "ran")


def _result(call: ToolCall, call_id: str, output: Any) -> ToolResult:
    return ToolResult.of({"toolName": call.name, "toolCallId": call_id, "output": output})
