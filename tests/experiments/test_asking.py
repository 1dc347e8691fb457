"""How a case is asked: the same text as ever at the default levels, and what each level of a factor
changes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of
from tests.tools import tool_named
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.evals.cases.case import Case, read_case
from toolparse_lab.experiments.arms import arm_of
from toolparse_lab.experiments.case_flow import Prompts, flow_for
from toolparse_lab.formats.prompt.messages import build_messages
from toolparse_lab.runner.exchange.types import Model, Request

TOOL = tool_named("set_timer", minutes="integer")
OTHER = {"name": "stop", "parameters": {"type": "object"}}
CASE = Case(
    "c",
    "Three minutes.",
    tool_specs([TOOL, OTHER]),
    [{"name": "set_timer", "arguments": {"minutes": 3}}],
)
MODEL = Model("openai/x", price=(0, 0))


def ask(case: Case = CASE, protocol: str = "hermes", **settings: Any) -> Request:
    return next(flow_for(case, "m", MODEL, arm_of(protocol, settings), {"seed": 1}, 0))


@asked_of("protocol", ["hermes", "gemma", "morph_xml", "yaml_xml"])
def test_the_middleware_sends_what_build_messages_makes(protocol: str) -> None:
    """So that what was recorded without it is found again."""
    chosen = tp.protocols()[protocol]
    shipped = tp.example_cases()
    kept = [*shipped.filter(lambda c: not isinstance(c.input, str)), *shipped[:3]]
    for case, placement, wording in itertools.product(
        kept, ("first", "last"), chosen.wordings.names
    ):
        made = build_messages(
            case.input, case.tools, protocol=chosen, wording=wording, few_shot=2,
            target=case.target,
            placement=placement,  # type: ignore[arg-type]
        )  # fmt: skip
        assert ask(case, protocol, placement=placement, wording=wording).messages == made


def test_nothing_but_the_prompt_is_sent_by_default() -> None:
    request = ask()
    assert request.params == {"temperature": 0, "seed": 1}
    assert request.tools == ()


def test_a_forced_choice_by_schema_by_prompt_and_by_grammar() -> None:
    by_schema = ask(tool_choice="required")
    assert by_schema.params["response_format"]["type"] == "json_schema"
    by_prompt = ask(tool_choice="required", tool_choice_by="prompt")
    assert "response_format" not in by_prompt.params
    assert by_prompt.messages[0]["content"].startswith(by_schema.messages[0]["content"])
    by_grammar = ask(tool_choice={"name": "stop"}, decoding="grammar")
    assert "response_format" not in by_grammar.params
    assert "stop" in by_grammar.params["grammar"]
    assert "set_timer" not in by_grammar.params["grammar"]
    named = ask(tool_choice={"name": "stop"})
    assert named.params["response_format"]["json_schema"]["name"] == "stop"


def test_no_choice_tells_of_no_tool() -> None:
    request = ask(tool_choice="none", decoding="grammar", few_shot=2)
    assert [m["content"] for m in request.messages] == ["Three minutes."]
    assert "grammar" not in request.params


def test_a_history_with_tool_calls_is_rewritten() -> None:
    case = read_case(
        {
            "id": "h",
            "tools": [TOOL],
            "input": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "Three minutes."},
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "set_timer", "arguments": '{"minutes":3}'}}
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "set"},
                {"role": "user", "content": "And now?"},
            ],
        }
    )  # fmt: skip
    request = ask(case, few_shot=1, wording="brief")
    roles = [m["role"] for m in request.messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert request.messages[0]["content"].endswith("Be short.")
    assert "<tool_response>" in request.messages[-1]["content"]
    assert all(m.keys() == {"role", "content"} for m in request.messages)


def test_a_choice_that_a_case_cannot_honour() -> None:
    with pytest.raises(tp.errors.BadPlan, match="case 'c' cannot be asked"):
        ask(tool_choice={"name": "no_such"}, decoding="grammar")
    with pytest.raises(tp.errors.BadPlan, match="cannot be asked"):
        ask(Case("e", "hi"), tool_choice="required")


def test_what_a_case_is_told_is_made_once_a_case_and_an_arm() -> None:
    prompts, cases = Prompts(), tp.example_cases()[:12]
    arms = [
        arm_of("hermes", {}),
        arm_of("hermes", {"wording": "brief"}),
        arm_of("morph_xml", {}),
        arm_of("native", {}),
    ]
    arms = [replace(arm, name=str(n)) for n, arm in enumerate(arms)]
    for trial, case, arm in itertools.product(range(2), cases, arms):
        alone = next(flow_for(case, "m", MODEL, arm, {"seed": 1}, trial))
        shared = next(flow_for(case, "m", MODEL, arm, {"seed": 1}, trial, prompts=prompts))
        assert shared == alone
        assert shared.key == alone.key
    first, again = prompts.of(cases[0], arms[0]), prompts.of(cases[0], arms[0])
    assert first[1] is again[1]
    first[0][0]["content"] = "changed by whoever got it"
    assert prompts.of(cases[0], arms[0])[0] == again[0]


def test_only_so_many_are_remembered_those_asked_for_last() -> None:
    prompts, (a, b, c), arm = Prompts(2), tp.example_cases()[:3], arm_of("hermes", {})
    kept = {case.id: prompts.of(case, arm)[1] for case in (a, b)}
    assert prompts.of(a, arm)[1] is kept[a.id]
    prompts.of(c, arm)
    assert prompts.of(a, arm)[1] is kept[a.id]
    assert prompts.of(b, arm)[1] is not kept[b.id]
