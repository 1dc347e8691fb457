"""The arm `native`: tools are the provider's business, its own calls are read, and everything else
is as for others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.core.errors import BadPlan, NoStrictForm
from toolparse_lab.experiments.arms import FACTORS, Arm, arm_of, arms_of
from toolparse_lab.runner.store.recording import export_recording

WEATHER = tool_named("get_weather", "d", required=["city"], city="string", days="integer")
WANTED = [{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}]
HERMES = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}</tool_call>'


def case(id: str, words: str, target: Any = WANTED, **more: Any) -> dict[str, Any]:
    return {"id": id, "input": words, "tools": [WEATHER], "target": target, **more}


CASES = [
    case("good", 'tool say={"city": "Paris", "days": 2}'),
    case("repaired", "tool say={'city': 'Paris', \"days\": \"2\",}"),
    case("broken", "tool say={'city'"),
    case("text", f"say={HERMES}"),
    case("abstains", 'say=No "tool" fits.', []),
]


def models(mock: MockOpenAI) -> dict[str, tp.Model]:
    return {
        "m": tp.Model("openai/mock", api_base=mock.url, api_key="sk-not-a-real-key", price=(0, 0))
    }


def test_factors_that_mean_nothing_to_it_collapse() -> None:
    arms = arms_of(
        ["native", "hermes"], {"wording": ["plain", "strict"], "temperature": [0, 1], "few_shot": 3}
    )
    assert [a.name for a in arms] == [
        "native temperature=0", "native temperature=1",
        "hermes temperature=0 plain", "hermes temperature=0 strict",
        "hermes temperature=1 plain", "hermes temperature=1 strict",
    ]  # fmt: skip
    native = arms[0]
    assert native.native
    assert set(native.levels) == set(FACTORS)
    assert {f for f, v in native.levels.items() if v is not None} == {
        "corrections",
        "max_turns",
        "temperature",
        "tool_choice",
    }
    assert arm_of("hermes", native.levels).levels["few_shot"] == 2
    assert arm_of("openai_json", {}).native is False
    assert arm_of("native", {"temperature": None}).levels["temperature"] is None  # it is not sent


def test_strict_decoding_is_the_providers(tmp_path: Path) -> None:
    levels = ["free", "grammar", "strict"]
    names = [arm.name for arm in arms_of(["native", "hermes"], {"decoding": levels})]
    assert names == ["native free", "native strict", "hermes free", "hermes grammar"]
    assert [arm.name for arm in arms_of(["native", "hermes"], {"decoding": "strict"})] == [
        "native",
        "hermes",
    ]
    with pytest.raises(BadPlan, match="the arm 'native'"):
        arms_of("hermes", {"decoding": "strict"})
    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(CASES[:1], models(mock), ["native"], decoding=["free", "strict"])
        run = lab.run(plan, progress=False)
        sent = [body["tools"][0]["function"].get("strict") for body in mock.bodies]
        assert sorted(sent, key=bool) == [None, True]
        assert [arm.name for arm in lab.open(run.run_id).plan.arms] == [a.name for a in plan.arms]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.exhaustive(2, 1)
def test_a_strict_mode_is_sent_the_strict_form_and_its_nulls_are_dropped(
    tmp_path: Path, stream: bool
) -> None:
    paris = [{"name": "get_weather", "arguments": {"city": "Paris"}}]
    cases = [
        case("left out", 'tool say={"city": "Paris", "days": null}', paris),
        case("wrong null", 'tool say={"city": null, "days": 2}'),
    ]
    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(cases, models(mock), "native", decoding=["free", "strict"], stream=stream)
        run = lab.run(plan, progress=False)
        tools = [body["tools"][0]["function"] for body in mock.bodies]
        assert [t["parameters"] for t in tools if not t.get("strict")] == [
            WEATHER["parameters"],
            WEATHER["parameters"],
        ]
        strict = {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}},
            "required": ["city", "days"],
            "additionalProperties": False,
        }
        assert [t["parameters"] for t in tools if t.get("strict")] == [strict, strict]

        trials = {(t.case_id, t.arm): t for t in run.trials()}
        outcomes = {key: t.outcome for key, t in trials.items()}
        assert outcomes == {
            ("left out", "native strict"): "correct",
            ("left out", "native free"): "wrong_call",
            ("wrong null", "native strict"): "wrong_call",
            ("wrong null", "native free"): "wrong_call",
        }
        trial = trials["left out", "native strict"]
        assert trial.score is not None
        assert trial.result is not None
        # The mode left it no other way to write this.
        assert (trial.score.strict, trial.score.rescues) == (True, ())
        assert [step.rule for step in trial.result.calls[0].steps] == ["read.strict-null"]
        assert trial.reparse().outcome == "correct"
        assert trial.reparse("openai_json").outcome == "wrong_call"
        again = lab.reparse(run.frame()).set_index(["case_id", "arm"])["outcome"]
        assert again.to_dict() == outcomes
        opened = {(t.case_id, t.arm): t.outcome for t in lab.open(run.run_id).trials()}
        assert opened == outcomes


def test_the_reader_of_an_arm_without_levels_is_that_of_a_free_one() -> None:
    assert Arm(None, {}, "ingested").reader.id == "openai_json"
    assert arm_of("native", {}).reader.id == "openai_json"
    assert arm_of("native", {"decoding": "strict"}).reader.id == "openai_strict"


def test_a_conversation_in_a_strict_mode(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def get_weather(**arguments: Any) -> str:
        asked.append(arguments)
        return "say=It is sunny."

    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        cases = [case("a", 'tool say={"city": "Paris", "days": null}', answer="sunny")]
        plan = lab.plan(
            cases,
            models(mock),
            "native",
            decoding="strict",
            max_turns=2,
            runnable={"get_weather": get_weather},
        )
        (trial,) = lab.run(plan, progress=False).trials()
        assert asked == [{"city": "Paris"}]
        assert trial.conversation is not None
        assert trial.conversation.answer == "It is sunny."
        assert [body["tools"][0]["function"]["strict"] for body in mock.bodies] == [True, True]


def test_a_schema_without_a_strict_form_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    parameters = {"type": "object", "properties": {"when": {"not": {"type": "null"}}}}
    tool = {"name": "book", "parameters": parameters}
    cases = [CASES[0], {"id": "b", "input": "hi", "tools": [tool], "target": []}]
    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        with pytest.raises(NoStrictForm, match="tool 'book'") as raised:
            lab.plan(cases, models(mock), "native", decoding="strict")
        assert (raised.value.keyword, raised.value.path) == ("not", "/properties/when/not")
        with pytest.raises(NoStrictForm):
            lab.ask("hi", [tool], model=models(mock)["m"], protocol="native", decoding="strict")
        assert mock.calls == 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.exhaustive(2)
def test_a_run_with_the_native_arm(tmp_path: Path, stream: bool) -> None:
    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(CASES, models(mock), ["native", "hermes"], stream=stream)
        assert plan.varied == ()
        assert plan.calls == 10
        run = lab.run(plan, progress=False)
        native = [b for b in mock.bodies if "tools" in b]
        assert len(native) == 5
        assert native[0]["tools"] == [{"type": "function", "function": WEATHER}]
        assert all([m["role"] for m in b["messages"]] == ["user"] for b in native)
        trials = {t.case_id: t for t in run.trials() if t.arm == "native"}
        assert {t.parse_protocol for t in trials.values()} == {"openai_json"}
        assert {t.prompt_protocol for t in trials.values()} == {"native"}
        outcomes = {k: (t.score.outcome, t.score.strict) for k, t in trials.items() if t.score}
        assert outcomes["good"] == ("correct", True)
        assert outcomes["repaired"] == ("correct", False)
        assert outcomes["broken"] == ("attempted_unparseable", False)
        assert outcomes["text"][0] == "attempted_unparseable"
        assert outcomes["abstains"][0] == "abstained_correctly"
        assert trials["abstains"].result is not None
        assert trials["abstains"].result.text == 'No "tool" fits.'
        repaired = trials["repaired"]
        assert repaired.completion is not None
        assert repaired.result is not None
        assert repaired.completion.endpoint_kind == "native_tools"
        call = repaired.result.calls[0]
        assert call.origin("/days").span.of(repaired.completion.raw) == "2"
        frame = run.frame()
        assert set(frame["prompt_protocol"]) == {"native", "hermes"}
        report = run.report(by=["model", "prompt_protocol"], baseline="native")
        assert "native" in str(report)
        assert len(run.compare("hermes", "native", within="model").frame) >= 1
        calls = mock.calls
        assert [t.result for t in lab.run(plan, progress=False).trials()] == [
            t.result for t in run.trials()
        ]
        opened = lab.open(run.run_id)
        assert [t.outcome for t in opened.trials()] == [t.outcome for t in run.trials()]
        other = repaired.retry(protocol="hermes", fresh=True)
        assert (other.prompt_protocol, other.parse_protocol, mock.calls) == (
            "hermes",
            "hermes",
            calls + 1,
        )
        again = trials["good"].retry(fresh=True)
        assert (again.outcome, again.parse_protocol) == ("correct", "openai_json")
        pinned = trials["broken"].as_pytest(tmp_path / "test_pinned.py").read_text()
        assert "'openai_json'" in pinned
        export_recording(lab.store, tmp_path / "cassette.jsonl", run_id=run.run_id)
    with tp.Lab(tmp_path / "b.db") as lab:
        replayed = lab.replaying(tmp_path / "cassette.jsonl").run(plan, progress=False)
        assert [t.outcome for t in replayed.trials()] == [t.outcome for t in run.trials()]


@each_case
def test_a_tool_choice_is_the_provider_s(tmp_path: Path, choice: Any, sent: Any) -> None:
    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        run = lab.run(
            lab.plan(CASES[:1], models(mock), "native", tool_choice=choice), progress=False
        )
        assert [b.get("tool_choice") for b in mock.bodies] == [sent]
        assert "response_format" not in mock.bodies[0]
        assert run.trials()[0].outcome == ("wrong_call" if choice == "none" else "correct")


def test_a_tool_that_is_not_there_cannot_be_chosen() -> None:
    with pytest.raises(tp.errors.BadPlan, match="good"):
        tp.Lab(":memory:").plan(
            CASES[:1], tp.Model("openai/m"), "native", tool_choice={"name": "nope"}
        )


def test_a_case_without_tools_is_a_plain_question(tmp_path: Path) -> None:
    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan([{"id": "a", "input": "say=Hi", "target": []}], models(mock), "native")
        (trial,) = lab.run(plan, progress=False).trials()
        assert "tools" not in mock.bodies[0]
        assert trial.result is not None
        assert (trial.outcome, trial.result.text) == ("abstained_correctly", "Hi")


@pytest.mark.parametrize("protocol", ["native", "hermes"])
def test_a_raw_completion_endpoint_is_refused_what_it_cannot_take(protocol: str) -> None:
    model = tp.Model("text-completion-openai/m")
    with pytest.raises(tp.errors.BadPlan, match=r"takes one prompt|takes no tools"):
        tp.Lab(":memory:").plan(CASES[:1], model, protocol)
    plain = {"id": "p", "input": "<|im_start|>user", "target": []}
    assert tp.Lab(":memory:").plan([plain], model, "native").calls == 1


def test_a_conversation(tmp_path: Path) -> None:
    """Calls and results go as the provider's API has them, with the ids that it gave."""
    asked: list[dict[str, Any]] = []

    def get_weather(**arguments: Any) -> Any:
        asked.append(arguments)
        return "say=It is sunny." if "days" not in arguments else {"sky": "blue"}

    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        cases = [case("a", 'tool say={"city": "Paris"}|{"days": 1}', answer="sunny")]
        plan = lab.plan(
            cases, models(mock), "native", max_turns=3, runnable={"get_weather": get_weather}
        )
        (trial,) = lab.run(plan, progress=False).trials()
        assert trial.conversation is not None
        assert asked == [{"city": "Paris"}]
        _, assistant, one, two = mock.bodies[1]["messages"]
        assert [c["id"] for c in assistant["tool_calls"]] == ["call_0", "call_1"]
        assert assistant["tool_calls"][0]["function"] == {
            "name": "get_weather",
            "arguments": '{"city":"Paris"}',
        }
        assert (one["role"], one["tool_call_id"], one["content"]) == (
            "tool",
            "call_0",
            "say=It is sunny.",
        )
        assert two["tool_call_id"] == "call_1"
        assert "do not fit" in two["content"]
        assert mock.bodies[1]["tools"]
        assert trial.conversation.stop == "answered"
        assert len(trial.conversation.turns) == 2
        again = lab.run(plan, progress=False)
        same = again.trials()[0].conversation
        assert same is not None
        assert (mock.calls, len(asked), same.answer) == (
            2, 1, trial.conversation.answer,
        )  # fmt: skip


def test_ask_and_what_a_plan_shows(tmp_path: Path) -> None:
    with MockOpenAI() as mock, tp.Lab(tmp_path / "a.db") as lab:
        result = lab.ask(
            'tool say={"city": "Rome"}', [WEATHER], model=models(mock)["m"], protocol="native"
        )
        assert (result.protocol, result.calls[0].arguments) == ("openai_json", {"city": "Rome"})
        plan = lab.plan(CASES, models(mock), ["native"], wording=["plain", "strict"])
        assert (plan.calls, plan.varied) == (5, ())
        assert json.loads(json.dumps(plan.to_dict()))["arms"][0]["prompt_protocol"] == "native"
