"""How a case is asked under an arm: its prompt, its middleware and its tools, as a flow that yields requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .arms import Arm
from .errors import BadPlan, BadToolChoice
from .evals.cases import Case
from .evals.tool_results import runnable_of
from .flow import Conversation, Flow, Runnable, tool_loop
from .middleware import create_tool_middleware
from .prompt import explain_tools, grammar_for
from .protocols.base import Protocol
from .registry import protocol_of
from .runner.types import Model, Request
from .toolspec import ToolSpec


def flow_for(
    case: Case,
    alias: str,
    model: Model,
    arm: Arm,
    params: Mapping[str, Any],
    trial: int,
    *,
    stream: bool = False,
    runnable: Runnable | None = None,
) -> Flow[Conversation]:
    """The conversation about one case under one arm, to be driven.

    params: sampling parameters. runnable: tools as functions; they go before the case's own results. Raises BadPlan
    for a tool choice that the case cannot honour, when the flow is begun.
    """
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
    sent = {"temperature": level["temperature"], **params}
    if choice != "auto":
        sent["tool_choice"] = {"type": "function", "function": dict(choice)} if isinstance(choice, Mapping) else choice
    question = Request(
        model, alias, tuple(messages), sent, tuple(t.to_dict() for t in case.tools), stream=stream, trial=trial
    )
    tools = {**runnable_of(case.results, case.tools), **(runnable or {})}
    flow = tool_loop(question, middleware, tools, max_turns=level["max_turns"], first=_first(case, protocol, level))
    return _checked(flow, case)


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
