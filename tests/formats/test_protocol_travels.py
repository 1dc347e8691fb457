"""A protocol object goes wherever an id does, and a run made with one can be opened later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.bridge import ask
from tests.mock_openai import MockOpenAI, unseen
from tests.tools import tool_named

TOOLS = [tool_named("tide", "Tells the tide.", required=["port"], port="string", days="integer")]
TARGET = [{"name": "tide", "arguments": {"port": "Bergen"}}]


class AtSigns:
    """Calls are JSON between @@ and @@: somebody else's protocol object."""

    def format_tools(self, tools: Any, tool_system_prompt_template: Any) -> str:
        return str(tool_system_prompt_template(json.dumps([t["name"] for t in tools])))

    def format_tool_call(self, tool_call: Any) -> str:
        return f'@@{{"name":"{tool_call["toolName"]}","input":{tool_call["input"]}}}@@'

    def format_tool_response(self, tool_result: Any) -> str:
        return str(tool_result)

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> list[dict[str, Any]]:
        before, _, rest = text.partition("@@")
        body, _, after = rest.partition("@@")
        parts: list[dict[str, Any]] = [{"type": "text", "text": before}]
        if body:
            call = json.loads(body)
            parts.append(
                {"type": "tool-call", "toolName": call["name"], "input": json.dumps(call["input"])}
            )
        return [*parts, {"type": "text", "text": after}]

    def create_stream_parser(self, tools: Any, options: Any) -> Any:
        return lambda chunks: self.parse_generated_text("".join(chunks), tools, options)


BRACKETED = tp.Protocol.from_spec(
    id="bracketed", opener="[CALL]", closer="[/CALL]", name_key="tool", arguments_key="args",
    wordings={"terse": "{{tools_json}}\nAnswer with {{form}}"},
)  # fmt: skip
MIX = tp.json_mix_protocol("<<", ">>")
FOREIGN = AtSigns()
OBJECTS: dict[str, Any] = {
    "bracketed": BRACKETED,
    "json_mix(<<…>>)": MIX,
    "custom:AtSigns": FOREIGN,
}
ANSWERS = {
    "bracketed": '[CALL]{"tool":"tide","args":{"port":"Bergen"}}[/CALL]',
    "json_mix(<<…>>)": '<<{"name":"tide","arguments":{"port":"Bergen"}}>>',
    "custom:AtSigns": '@@{"name":"tide","input":{"port":"Bergen"}}@@',
}


def model_of(mock: MockOpenAI) -> tp.Model:
    return tp.Model("openai/m", api_base=mock.url, api_key="k", price=(0, 0))


def cases_of(name: str) -> list[dict[str, Any]]:
    return [{"id": "a", "input": unseen(f"say={ANSWERS[name]}"), "tools": TOOLS, "target": TARGET}]


@pytest.fixture(params=list(OBJECTS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_plan_takes_it_and_its_run_reads_by_it_in_any_process(
    name: str, mock: MockOpenAI, tmp_path: Path
) -> None:
    with tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(cases_of(name), model_of(mock), [OBJECTS[name]], few_shot=1)
        assert [arm.prompt_protocol for arm in plan.arms] == [name]
        run = lab.run(plan, progress=False)
        (trial,) = run.trials()
        assert (trial.outcome, trial.prompt_protocol, trial.parse_protocol) == (
            "correct", name, name,
        )  # fmt: skip
        assert trial.reparse(policy="none").outcome == "correct"
        assert run.trials(protocol=OBJECTS[name])[0].outcome == "correct"
        assert run.report().frame["success"].tolist() == [1.0]
        system = plan.requests[plan.items[0].key].messages[0]["content"]
        assert ANSWERS[name][:2] in system  # the prompt shows its own form
        for protocols in ([OBJECTS[name]], OBJECTS[name], None):
            frame = lab.reparse(run, protocols, engine="serial")
            assert frame["parse_protocol"].tolist() == [name]
            assert frame["outcome"].tolist() == ["correct"]
        assert lab.open().trials()[0].outcome == "correct"
    with tp.Lab(tmp_path / "a.db") as lab:
        run = lab.open()
        if name == "custom:AtSigns":
            with pytest.raises(tp.errors.UnknownProtocol, match="protocols=\\[the_object\\]"):
                run.trials()
            run = lab.open(protocols=[FOREIGN])
        assert run.trials()[0].outcome == "correct"
        assert lab.open().trials()[0].outcome == "correct"


def test_ask_takes_it(name: str, mock: MockOpenAI, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "a.db") as lab:
        result = lab.ask(
            unseen(f"say={ANSWERS[name]}"),
            tools=TOOLS,
            model=model_of(mock),
            protocol=OBJECTS[name],
        )
        assert result.calls[0].arguments == {"port": "Bergen"}
        assert result.protocol == name


def test_ingest_takes_it(name: str, tmp_path: Path) -> None:
    rows = [{"output": ANSWERS[name], "model": "m", "case_id": "a"}]
    with tp.Lab(tmp_path / "a.db") as lab:
        run = lab.ingest(rows, tools=TOOLS, protocol=OBJECTS[name])
        result = run.trials()[0].result
        assert result is not None
        assert [c.arguments for c in result.calls] == [{"port": "Bergen"}]
        assert "success" in run.report().frame
    with tp.Lab(tmp_path / "a.db") as lab:
        again = lab.open(protocols=[FOREIGN] if name == "custom:AtSigns" else None)
        assert again.trials()[0].result == run.trials()[0].result


def test_compare_takes_it(name: str) -> None:
    comparison = tp.compare(ANSWERS[name], TOOLS, protocols=["hermes", OBJECTS[name]])
    readings = {r.name: r for r in comparison.readings}
    assert set(readings) == {"hermes", name}
    assert len(readings[name].executable) == 1


def test_the_middleware_and_the_bridge_take_it(name: str, mock: MockOpenAI) -> None:
    middleware = tp.create_tool_middleware(OBJECTS[name])
    assert middleware.protocol.id == name
    answer = ask("drop-in", mock, f"say={ANSWERS[name]}", protocol=OBJECTS[name], tools=TOOLS)
    (call,) = answer.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"port": "Bergen"}


def test_a_check_takes_it(name: str, mock: MockOpenAI, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "a.db") as lab:
        check = lab.check(model_of(mock), [OBJECTS[name]])
        assert [cell.protocol for cell in check] == [name]


def test_wordings_of_ones_own_are_a_level(mock: MockOpenAI, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(
            cases_of("bracketed"), model_of(mock), [BRACKETED], wording=["terse", "plain"]
        )
        prompts = [plan.requests[i.key].messages[0]["content"] for i in plan.items]
        assert sum(p.endswith('Answer with [CALL]{"tool":"TOOL_NAME",'
                              '"args":{"PARAMETER":"VALUE"}}[/CALL]') for p in prompts) == 1  # fmt: skip
        with pytest.raises(tp.errors.BadOptions, match="brief, plain, strict, terse"):
            lab.plan(cases_of("bracketed"), model_of(mock), [BRACKETED], wording="terce")


def test_two_protocols_of_one_id_are_refused(mock: MockOpenAI, tmp_path: Path) -> None:
    other = tp.Protocol.from_spec(id="bracketed", opener="[C]", closer="[/C]")
    shipped = tp.Protocol.from_spec(id="hermes", opener="[C]", closer="[/C]")
    with tp.Lab(tmp_path / "a.db") as lab:
        for protocols in ([BRACKETED, other], [shipped]):
            with pytest.raises(tp.errors.BadPlan, match="could not be told apart"):
                lab.plan(cases_of("bracketed"), model_of(mock), protocols)


def test_a_run_is_not_opened_with_another_protocol_of_the_id(
    mock: MockOpenAI, tmp_path: Path
) -> None:
    other = tp.Protocol.from_spec(id="bracketed", opener="[C]", closer="[/C]")
    with tp.Lab(tmp_path / "a.db") as lab:
        lab.run(lab.plan(cases_of("bracketed"), model_of(mock), [BRACKETED]), progress=False)
        with pytest.raises(tp.errors.BadPlan, match="from other data"):
            lab.open(protocols=[other])
        with pytest.raises(tp.errors.BadPlan, match="was not made with this protocol"):
            lab.open(protocols=[MIX])


def test_an_attempt_in_its_format_is_no_abstention(mock: MockOpenAI, tmp_path: Path) -> None:
    """The opener of a format that nobody else knows is a sign that a call was tried."""
    case = {"id": "a", "input": "say=[CALL]{tide of Bergen, please", "tools": TOOLS,
            "target": TARGET}  # fmt: skip
    with tp.Lab(tmp_path / "a.db") as lab:
        run = lab.run(lab.plan([case], model_of(mock), [BRACKETED]), progress=False)
        hermes = run.trials(protocol="hermes")[0]
        assert hermes.outcome == "attempted_unparseable", hermes.detail
