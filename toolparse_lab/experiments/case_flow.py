"""A case under an arm as a flow that yields requests: its prompt, its middleware and its tools."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..core.errors import BadPlan, BadToolChoice
from ..evals.cases.case import Case
from ..evals.cases.tool_results import runnable_of
from ..formats.prompt.messages import explain_tools, shots_for
from ..middleware import create_tool_middleware
from ..middleware.flow import Conversation, Flow, Middleware, NativeTools, Record, tool_loop
from ..runner.exchange.types import Model, Request
from .arms import STRICT, Arm

Functions: TypeAlias = Mapping[str, Callable[..., Any] | None]
"""Name of a tool -> its function; None for a function that is not at hand."""


def flow_for(
    case: Case,
    alias: str,
    model: Model,
    arm: Arm,
    params: Mapping[str, Any],
    trial: int,
    *,
    stream: bool = False,
    runnable: Functions | None = None,
    replay: bool = False,
    record: Record | None = None,
    prompts: Prompts | None = None,
) -> Flow[Conversation]:
    """Return the conversation about one case under one arm, to be driven.

    params: sampling parameters. runnable: tools as functions. They go before the case's own
    results, and None stands for one that is not at hand, whose recorded results count. replay,
    record: as for `tool_loop`. prompts: remembers the prompts of the plan. Raises BadPlan for a
    tool choice that the case cannot honour, when the flow is begun.
    """
    messages, middleware, first = (prompts or Prompts(1)).of(case, arm)
    parameters = {"temperature": arm.levels["temperature"], **params}
    # Arms of older runs have it among the parameters.
    if (effort := arm.levels.get("reasoning_effort")) is not None:
        parameters["reasoning_effort"] = effort
    choice = arm.levels["tool_choice"]
    if isinstance(choice, Mapping):
        parameters["tool_choice"] = {"type": "function", "function": dict(choice)}
    elif choice != "auto":  # the default of every provider
        parameters["tool_choice"] = choice
    question = Request(
        model,
        alias,
        tuple(messages),
        parameters,
        tuple(tool.to_dict() for tool in case.tools),
        stream=stream,
        trial=trial,
    )

    # A function that is not at hand must not fall back on the case's own results: its recorded
    # ones are read from the answer.
    rows, functions = runnable_of(case.results, case.tools), runnable or {}
    tools = {name: tool for name, tool in {**rows, **functions}.items() if tool is not None}
    flow = tool_loop(
        question,
        middleware,
        tools,
        max_turns=arm.levels["max_turns"],
        first=first,
        data=rows.keys() - functions.keys(),
        replay=replay,
        record=record,
        corrections=arm.levels.get("corrections") or 0,
        mocks={tool.name for tool in case.tools} - rows.keys() - functions.keys(),
    )
    return _checked(flow, case)


def _checked(flow: Flow[Conversation], case: Case) -> Flow[Conversation]:
    try:
        return (yield from flow)
    except BadToolChoice as e:
        raise BadPlan(
            f"case {case.id!r} cannot be asked with this tool choice: {e.message}",
            got=e.got,
            expected=e.expected,
            hint="leave such cases out, for instance by Cases.filter",
        ) from None


_Prompt: TypeAlias = tuple[list[dict[str, Any]], Middleware, dict[str, Any]]
"""Messages, middleware and the extra parameters of the first turn."""


@dataclass(frozen=True, slots=True)
class PromptIssue:
    """A prompt builder that failed: at which case, in which arm, with which words.

    The built-in prompt took its place.
    """

    case: str
    arm: str
    error: str


class Prompts:
    """The prompts of one plan's cases, each made once for a case and an arm.

    Models and trials share them. most: how many are remembered, those used last.
    """

    def __init__(self, most: int = 2048, issues: Iterable[PromptIssue] = ()) -> None:
        self._most = most
        # By case, arm and words: a prompt that is made again fails again.
        self._issues: dict[PromptIssue, None] = dict.fromkeys(issues)
        self._cache: OrderedDict[tuple[str, str], _Prompt] = OrderedDict()
        # By arm, tools and examples: cases mostly share them.
        self._written: dict[Hashable, _Written] = {}

    @property
    def issues(self) -> tuple[PromptIssue, ...]:
        """The builders that failed, and for which the built-in prompt was sent."""
        return tuple(self._issues)

    def of(self, case: Case, arm: Arm) -> _Prompt:
        """Return messages, middleware and the extra parameters of the first turn.

        The caller may change the messages: it gets dicts of its own.
        """
        key = (case.id, arm.name)
        prompt = self._cache.pop(key, None)
        if prompt is None:
            if arm.native:
                # As they are: the provider is sent its tools.
                strict = arm.levels["decoding"] == STRICT
                prompt = case.messages, NativeTools(strict=strict), {}
            else:
                prompt = self._prompt(case, arm)
            while len(self._cache) >= self._most:
                self._cache.popitem(last=False)
        # Taken out and put back, it is the last to be dropped.
        self._cache[key] = prompt
        messages, middleware, first = prompt
        return [dict(message) for message in messages], middleware, dict(first)

    def _prompt(self, case: Case, arm: Arm) -> _Prompt:
        shots = shots_for(case.input, case.tools, arm.levels["few_shot"], case.target)
        own = arm.own_prompt
        if own is not None and own.builder is not None:  # may say something else each time
            return _prompt(case, arm, _written(case, arm, self._issues))
        key = (arm.name, case.tools, shots)
        if (written := self._written.get(key)) is None:
            if len(self._written) >= self._most:
                self._written.clear()
            written = self._written[key] = _written(case, arm, self._issues)
        return _prompt(case, arm, written)


_Written: TypeAlias = tuple[list[dict[str, Any]], Middleware]
"""The examples that follow a prompt as turns, and the middleware that writes it."""


def _written(case: Case, arm: Arm, issues: dict[PromptIssue, None]) -> _Written:
    # Notes in `issues` a builder that fails. The middleware writes the system prompt into the
    # request, since later turns need it, too.
    protocol, level, own = arm.reader, arm.levels, arm.own_prompt
    if own is not None and own.is_lost:
        raise BadPlan(
            "this run was made with a prompt builder, which a store cannot keep",
            got=own.name,
            hint="plan with the builder in this lab before the run is opened",
        )

    def note(_message: str, details: Mapping[str, Any]) -> None:
        issues[PromptIssue(case.id, arm.name, str(details["error"]))] = None

    prompt, examples = explain_tools(
        case.input,
        case.tools,
        protocol=protocol,
        wording="plain" if own is not None else level["wording"],
        few_shot=level["few_shot"],
        type_rules=level["type_rules"],
        target=case.target,
        builder=own.builder if own is not None else None,
        on_error=note,
        template=own.template if own is not None else "",
    )
    return examples, create_tool_middleware(
        protocol,
        tool_system_prompt_template=lambda _tools_json: prompt,
        placement=level["placement"],
        tool_choice_by=level["tool_choice_by"],
        result_format=None if level["result_format"] == "own" else level["result_format"],
        neutral_text=False,  # a case is asked as it was written
        choice_schema="any_of",
    )


def _prompt(case: Case, arm: Arm, written: _Written) -> _Prompt:
    examples, middleware = written
    messages, level = case.messages, arm.levels
    choice = level["tool_choice"]
    # Examples of calls would contradict a choice that forbids them.
    if choice != "none":
        first = 1 if messages[0]["role"] in ("system", "developer") else 0
        messages[first:first] = examples
    extra: dict[str, Any] = {}
    # A grammar lets a model only call, so it is for the first turn alone.
    if level["decoding"] == "grammar" and choice != "none":
        # The grammar of a named tool can only call this one.
        named = choice["name"] if isinstance(choice, Mapping) else None
        tools = [tool for tool in case.tools if tool.name == named]
        extra["grammar"] = arm.reader.write_grammar(tools or case.tools)
        if choice != "auto":
            # It forces a call by itself: a response format next to it would be a second constraint.
            extra["response_format"] = None
    return messages, middleware, extra


def check_runnable(runnable: Any) -> dict[str, Callable[..., Any]]:
    """Return tools as functions by name. Raises BadPlan if one is none, or is a coroutine."""
    if runnable is None:
        return {}
    expected = '{"name": function}'
    if not isinstance(runnable, Mapping):
        raise BadPlan("runnable tools are functions by name", got=runnable, expected=expected)
    for name, function in runnable.items():
        if (
            not isinstance(name, str)
            or not callable(function)
            or inspect.iscoroutinefunction(function)
        ):
            raise BadPlan(
                f"this runs no tool {name!r}",
                got=function,
                expected=f"{expected}, and it is not async",
            )
    return dict(runnable)
