"""How a case is asked under an arm: its prompt, its middleware and its tools, as a flow that yields requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .arms import Arm
from .errors import BadPlan, BadToolChoice
from .evals.cases.case import Case
from .evals.cases.tool_results import runnable_of
from .flow import Conversation, Flow, Middleware, NativeTools, Record, tool_loop
from .middleware import create_tool_middleware
from .prompt import explain_tools, grammar_for
from .protocols.base import Protocol
from .registry import protocol_of
from .runner.types import Model, Request
from .toolspec import ToolSpec

Functions: TypeAlias = Mapping[str, Callable[..., Any] | None]
"""Name of a tool -> its function, None where there is one that is not at hand."""


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
    """The conversation about one case under one arm, to be driven.

    params: sampling parameters. runnable: tools as functions; they go before the case's own results, and None stands
    for one that is not at hand, whose recorded results count. replay, record: as for `tool_loop`. prompts: remembers
    what the case is told. Raises BadPlan for a tool choice that the case cannot honour, when the flow is begun.
    """
    level = arm.levels
    sent = {"temperature": level["temperature"], **params}
    choice = level["tool_choice"]
    if choice != "auto":
        sent["tool_choice"] = {"type": "function", "function": dict(choice)} if isinstance(choice, Mapping) else choice
    messages, middleware, first = (prompts or Prompts(1)).of(case, arm)
    question = Request(
        model, alias, tuple(messages), sent, tuple(t.to_dict() for t in case.tools), stream=stream, trial=trial
    )
    rows, functions = runnable_of(case.results, case.tools), runnable or {}
    tools = {name: tool for name, tool in {**rows, **functions}.items() if tool is not None}
    flow = tool_loop(
        question, middleware, tools, max_turns=level["max_turns"],
        first=first, data=rows.keys() - functions.keys(), replay=replay, record=record,
    )  # fmt: skip
    return _checked(flow, case)


_Means: TypeAlias = tuple[list[dict[str, Any]], Middleware, dict[str, Any]]


class Prompts:
    """What the cases of one plan are told: made once for a case and an arm, since its models and trials share it.

    most: how many are remembered, those asked for last.
    """

    def __init__(self, most: int = 2048) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], _Means] = OrderedDict()

    def of(self, case: Case, arm: Arm) -> _Means:
        """The messages, the middleware and what the first turn has besides."""
        key = (case.id, arm.name)
        means = self._kept.pop(key, None)
        if means is None:
            means = _offered(case) if arm.native else _told(case, arm)
            while len(self._kept) >= self._most:
                self._kept.popitem(last=False)
        self._kept[key] = means
        messages, middleware, first = means
        return [dict(m) for m in messages], middleware, dict(first)


def _offered(case: Case) -> _Means:
    """The messages of a case as they are: the provider is given its tools."""
    return case.messages, NativeTools(), {}


def _told(case: Case, arm: Arm) -> _Means:
    """The messages of a case with its examples, the middleware that tells of its tools, and what its first turn has."""
    protocol, level = protocol_of(arm.protocol), arm.levels
    prompt, examples = explain_tools(
        case.input,
        case.tools,
        protocol_id=protocol.id,
        write_call=_writer(protocol, case.tools),
        wording=level["wording"],
        few_shot=level["few_shot"],
        type_rules=level["type_rules"],
        target=case.target,
    )
    middleware = create_tool_middleware(
        protocol,
        tool_system_prompt_template=lambda _tools_json: prompt,
        placement=level["placement"],
        tool_choice_by=level["tool_choice_by"],
        result_format=None if level["result_format"] == "own" else level["result_format"],
    )
    choice = level["tool_choice"]
    messages = case.messages
    if choice != "none":
        behind = 1 if messages[0]["role"] in ("system", "developer") else 0
        messages[behind:behind] = examples
    return messages, middleware, _first(case, protocol, level)


def _checked(flow: Flow[Conversation], case: Case) -> Flow[Conversation]:
    try:
        return (yield from flow)
    except BadToolChoice as e:
        raise BadPlan(
            f"case {case.id!r} cannot be asked with this tool choice: {e.message}", got=e.got, expected=e.expected,
            hint="leave such cases out, for instance by Cases.filter",
        ) from None  # fmt: skip


def request_for(
    case: Case, alias: str, model: Model, arm: Arm, params: Mapping[str, Any], trial: int, stream: bool = False
) -> Request:
    """What is sent for one case under one arm, in the first turn."""
    return next(flow_for(case, alias, model, arm, params, trial, stream=stream))


def check_runnable(runnable: Any) -> dict[str, Callable[..., Any]]:
    """Tools as functions by name; raises BadPlan for what cannot be called, and for coroutine functions."""
    import inspect

    if runnable is None:
        return {}
    expected = '{"name": function}'
    if not isinstance(runnable, Mapping):
        raise BadPlan("runnable tools are functions by name", got=runnable, expected=expected)
    for name, function in runnable.items():
        if not isinstance(name, str) or not callable(function) or inspect.iscoroutinefunction(function):
            raise BadPlan(f"this runs no tool {name!r}", got=function, expected=f"{expected}, and it is not async")
    return dict(runnable)


def _first(case: Case, protocol: Protocol, level: Mapping[str, Any]) -> dict[str, Any]:
    """A grammar lets a model only call, so that it holds for the first turn alone; it forces a call by itself."""
    if level["decoding"] != "grammar":
        return {}
    choice = level["tool_choice"]
    if choice == "none":
        return {}
    named = [t for t in case.tools if isinstance(choice, Mapping) and t.name == choice["name"]]
    grammar = grammar_for(protocol.id, named or case.tools)
    return {"grammar": grammar} if choice == "auto" else {"grammar": grammar, "response_format": None}


def _writer(protocol: Protocol, tools: tuple[ToolSpec, ...]) -> Callable[[str, str], str]:
    named = {t.name: t for t in tools}
    return lambda name, arguments_json: protocol.write_call(name, arguments_json, named.get(name))
