"""A finished answer of litellm: its calls, what its parse found, corrections, and refusals."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...core.errors import ResponseFormatRejected, ToolparseError
from ...core.types import ParseResult, Problem
from ...core.types.spans import span_out
from ...entry.parse import parse
from ...middleware import (
    Answer,
    CorrectedAnswer,
    Reply,
    ToolCallMiddleware,
    Turn,
    acorrect_answer,
    correct_answer,
)
from ...middleware.attempts import CallIds

FIELD = "toolparse"  # the member of `provider_specific_fields` that is ours
Findings = dict[str, Any]
_REFUSALS = ("UnsupportedParamsError", "BadRequestError", "UnprocessableEntityError")
_HINT = (
    'pass tool_choice_by="prompt": the call is then asked for in the system prompt, without a '
    "response_format"
)


class AnswerIds:
    """The ids of the calls of each choice of one answer. Any thread may ask."""

    def __init__(self) -> None:
        self._by_choice: dict[int, CallIds] = {}

    def of(self, choice: int) -> CallIds:
        """Return the ids of a choice, by its index."""
        return self._by_choice.setdefault(choice, CallIds())


class Asked:
    """One request to litellm as it is sent, and what reads the answers to it.

    turn: the request before a callback or a tap adds to its parameters.
    """

    def __init__(self, litellm: Any, middleware: ToolCallMiddleware, turn: Turn) -> None:
        self.litellm = litellm
        self.middleware = middleware
        self.turn = turn
        self.ids: AnswerIds | None = None  # of the calls, where callbacks share them
        # A correction (layer 3) is a call of its own, which callbacks see as it is.
        self.corrects = middleware.feedback is not None and turn.active
        self._params = dict(turn.params) if self.corrects else {}

    def answers(self, response: Any) -> list[Answer]:
        """Return the answer of each choice of a ModelResponse, in their order."""
        return [
            self.middleware.wrap_generate(
                self.turn,
                choice.message.content,
                # litellm deletes the attribute where there is no reasoning.
                reasoning=choice.message.__dict__.get("reasoning_content"),
                finish_reason=choice.finish_reason,
                tool_calls=[call.model_dump() for call in choice.message.tool_calls or ()],
                call_ids=self.ids.of(choice.index) if self.ids else None,
            )
            for choice in response.choices
        ]

    def read(self, response: Any, answers: Sequence[CorrectedAnswer] | None = None) -> Any:
        """Return a ModelResponse like `response` (id, model, usage, headers, hidden parameters are
        the same objects), each of its choices read on its own. `response` itself if no choice
        changes. litellm's object is left as it came, because its logging and its cache still have
        it.

        answers: those of the choices, where they were read before.
        """
        if answers is None:
            answers = [CorrectedAnswer(answer) for answer in self.answers(response)]
        pairs = zip(response.choices, answers, strict=True)
        choices = [self._choice(old, answer) for old, answer in pairs]
        changed = any(new is not old for new, old in zip(choices, response.choices, strict=True))
        return _copied(response, choices=choices) if changed else response

    def _choice(self, choice: Any, corrected: CorrectedAnswer) -> Any:
        # A choice with the calls of its answer, or itself if nothing changes.
        message, answer = choice.message, corrected.answer
        thought = message.__dict__.get("reasoning_content")
        own_calls = message.tool_calls or ()
        new = answer.message
        changes: dict[str, Any] = {}
        if new["content"] != message.content:
            changes["content"] = new["content"]
        if new.get("reasoning_content", thought) != thought:
            changes["reasoning_content"] = new["reasoning_content"]
        calls = _calls(self.litellm, new.get("tool_calls", ()), own_calls, answer.written_too)
        if calls is not None:
            changes["tool_calls"] = calls
        blame = ""
        if own_calls or getattr(choice, "logprobs", None) is not None:
            blame = blame_of(choice, self.middleware, self.turn)
        findings = findings_of(answer, self.turn, blame)
        if corrected.calls:
            findings = with_feedback(findings, corrected)
        if findings is not None:
            fields = getattr(message, "provider_specific_fields", None) or {}
            changes["provider_specific_fields"] = {**fields, **findings}
        if not changes and answer.finish_reason == choice.finish_reason:
            return choice
        return _copied(
            choice, message=_copied(message, **changes), finish_reason=answer.finish_reason
        )

    def corrected(self, answer: Answer) -> CorrectedAnswer:
        """Return an answer with its calls corrected, or as it is where that fails."""

        def ask(params: dict[str, Any]) -> Reply:
            return self._reply(self.litellm.completion(**self._correction(params)))

        return correct_answer(self.middleware, self.turn, answer, ask)

    async def corrected_later(self, answer: Answer) -> CorrectedAnswer:
        """`corrected` by litellm's async completion."""

        async def ask(params: dict[str, Any]) -> Reply:
            return self._reply(await self.litellm.acompletion(**self._correction(params)))

        return await acorrect_answer(self.middleware, self.turn, answer, ask)

    def _correction(self, params: dict[str, Any]) -> dict[str, Any]:
        # What was added to the request after it was made here is none of the caller's.
        return {name: value for name, value in params.items() if name in self._params} | {
            name: self._params[name] for name in ("success_callback",) if name in self._params
        }

    @staticmethod
    def _reply(response: Any) -> Reply:
        message = response.choices[0].message
        usage = getattr(response, "usage", None)
        tokens = getattr(usage, "total_tokens", 0) or 0
        cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost") or 0.0
        return Reply(message.content or "", tokens, float(cost))

    @contextlib.contextmanager
    def refusals(self) -> Iterator[None]:
        """Raise `refusal` of what is raised inside, where it is one."""
        try:
            yield
        except Exception as e:
            rejection = self.refusal(e)
            if rejection is None:
                raise
            raise rejection from e

    def refusal(self, e: Exception) -> Exception | None:
        """Return a ResponseFormatRejected that is also of `e`'s own class and carries what `e`
        carries, where a request with a response_format for a forced tool choice was refused as a
        whole (HTTP 400 or 422, or litellm knows that the provider has no such parameter). Else
        None.
        """
        if not self.turn.read_whole or "response_format" not in self.turn.params:
            return None
        kind: Any = type(e)
        # Subclasses say what else was wrong: the context's length, the content.
        if kind.__name__ not in _REFUSALS:
            return None
        if kind.__name__ == "UnsupportedParamsError" and "response_format" not in str(e):
            return None
        # Made without its constructor: litellm's exceptions take arguments that are lost by now.
        rejected = _class_for(kind).__new__(_class_for(kind))
        rejected.__dict__.update(e.__dict__)
        rejected.message = (
            "The provider refused the request, which asks for the tool call by response_format: "
            f"{getattr(e, 'message', e)}\n  what to do: {_HINT}"
        )
        rejected.args = (rejected.message,)
        rejected.got = rejected.expected = None
        rejected.hint, rejected.kind = _HINT, "bad_request"
        failure: Exception = rejected
        return failure


def _calls(
    litellm: Any,
    calls: Sequence[dict[str, Any]],
    own_calls: Sequence[Any],
    written_too: frozenset[int],
) -> Any:
    """Return the calls of an answer as litellm's objects, None if there are none but the provider's
    own and these are as they were.

    calls: those of the text first, and after them the provider's own with their arguments coerced.
    written_too: the numbers of the provider's own that are among those of the text.
    """
    own_calls = [call for number, call in enumerate(own_calls) if number not in written_too]
    from_text = len(calls) - len(own_calls)
    blank, function = _blank_call(litellm.types.utils)
    new_calls = [
        _copied(blank, id=call["id"], function=_copied(function, **call["function"]))
        for call in calls[:from_text]
    ]
    if not own_calls:
        return new_calls or None

    pairs = zip(own_calls, calls[from_text:], strict=True)
    coerced = [_with_arguments(call, fixed) for call, fixed in pairs]
    unchanged = all(new is old for new, old in zip(coerced, own_calls, strict=True))
    return None if unchanged and not new_calls else new_calls + coerced


def _with_arguments(call: Any, fixed: dict[str, Any]) -> Any:
    """Return a call that the provider made, with its arguments as they fit the schema, or itself
    if they did.
    """
    function = getattr(call, "function", None)  # a call of a custom tool has none
    if function is None:
        return call
    own = fixed["function"]
    changes = {k: own[k] for k in ("name", "arguments") if getattr(function, k) != own.get(k)}
    return _copied(call, function=_copied(function, **changes)) if changes else call


@functools.lru_cache(maxsize=1)
def _blank_call(shapes: Any) -> tuple[Any, Any]:
    # A tool call of litellm's and its function: building them again would run their validators.
    blank = shapes.ChatCompletionMessageToolCall(
        id="", type="function", function={"name": "", "arguments": ""}
    )
    return blank, blank.function


def _copied(model: Any, **changes: Any) -> Any:
    """`model.model_copy(update=changes)`, faster."""
    shape = type(model)
    copied = object.__new__(shape)
    values, private = dict(model.__dict__), model.__pydantic_private__
    extra = None if model.__pydantic_extra__ is None else dict(model.__pydantic_extra__)
    declared = shape.__pydantic_fields__
    for name, value in changes.items():
        # Some of litellm's shapes declare no fields at all: all their values are extra.
        (values if extra is None or name in declared else extra)[name] = value
    put = object.__setattr__
    put(copied, "__dict__", values)
    put(copied, "__pydantic_fields_set__", model.__pydantic_fields_set__ | changes.keys())
    put(copied, "__pydantic_extra__", extra)
    put(copied, "__pydantic_private__", None if private is None else dict(private))
    return copied


def findings_of(answer: Answer, turn: Turn, blame: str = "") -> Findings | None:
    """Return the findings about an answer, ready for JSON, for `provider_specific_fields`. None if
    no call was tried in the text, or the answer was passed through.

    verdict: of the whole answer. problems: of the text, and of each call (`call`: its number in the
    text, from 0, `tool`: its name). blame: whether the model or the server is at fault, where the
    response tells. left_out: tools of the request that only a provider could run.
    """
    result = answer.result
    if result is None:
        return None
    if not (result.calls or answer.problems or blame or turn.left_out):
        return None
    findings: Findings = {"verdict": result.verdict, "problems": _problems(result, answer)}
    if blame:
        findings["blame"] = blame
    if turn.left_out:
        left_out = findings["left_out"] = []
        for tool in turn.left_out:
            kind: Any = tool.get("type")
            inner = tool.get(kind)
            name = tool.get("name") or (inner.get("name") if isinstance(inner, dict) else None)
            left_out.append({"type": kind, "name": name} if name else {"type": kind})
    return {FIELD: findings}


def with_feedback(findings: Findings | None, corrected: CorrectedAnswer) -> Findings:
    """Return findings with what layer 3 did about the calls that the schema refused.

    feedback: how often the model was asked again, the tokens, US dollars and seconds of that, and
    for each call its number among the message's tool calls, from 0, and whether it is valid now.
    """
    members = (findings or {}).get(FIELD, {})
    return {FIELD: {**members, "feedback": corrected.to_dict()}}


def blame_of(response: Any, middleware: ToolCallMiddleware, turn: Turn) -> str:
    """Return a sentence on whether the model or the server's parser is at fault, '' where the
    response does not tell.

    response: a choice of litellm's, or the chunks of a stream, with calls that the server read
    itself or with the tokens that the model wrote.
    """
    try:
        return parse(response, middleware.protocol, turn.tools, request=turn.asked).blame
    except ToolparseError:  # a shape without an answer says nothing of a fault
        return ""


def without_findings(messages: Iterable[Any]) -> list[Any]:
    """Return the messages of a conversation without the findings of answers of the bridge: they
    are for programs, and no provider knows them. Messages without any are the same objects.
    """
    cleaned: list[Any] = []
    for message in messages:
        is_mapping = isinstance(message, Mapping)
        name = "provider_specific_fields"
        fields = message.get(name) if is_mapping else getattr(message, name, None)
        if isinstance(fields, Mapping) and FIELD in fields:
            message = dict(message) if is_mapping else message.model_dump()
            others = {k: v for k, v in message.pop(name).items() if k != FIELD}
            # What litellm puts there itself is only of use where it says something.
            if any(value is not None for value in others.values()):
                message[name] = others
        cleaned.append(message)
    return cleaned


def _problems(result: ParseResult, answer: Answer) -> list[dict[str, Any]]:
    # Those of the text come first.
    if not answer.problems:
        return []
    whose: list[tuple[int | None, str | None, Problem]] = [
        (None, None, problem) for problem in result.problems
    ]
    for index, call in enumerate(result.calls):
        whose += [(index, call.name, problem) for problem in call.problems]
    return [
        {
            "code": problem.code,
            "severity": problem.severity,
            "message": problem.message,
            "path": problem.path,
            "span": span_out(problem.span),
            "call": index,
            "tool": name,
        }
        for index, name, problem in whose
    ]


@functools.lru_cache(maxsize=8)
def _class_for(kind: Any) -> Any:
    # Both at once, so code written for litellm's exceptions still catches it. Its message contains
    # the hint, because a gateway passes on nothing else.
    return type(
        ResponseFormatRejected.__name__,
        (ResponseFormatRejected, kind),
        {"__module__": __name__, "__str__": lambda self: self.message},
    )
