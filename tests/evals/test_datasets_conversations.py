"""The shipped conversations: right by their own schemas and rows, and answerable to the end in
every format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import toolparse_lab as tp
from tests.laws import check_all
from tests.tables import asked_of
from toolparse_lab.cli.demo import conversation_plan
from toolparse_lab.evals.cases.case import Case, matches_answer
from toolparse_lab.evals.cases.loading import load_cases
from toolparse_lab.evals.scoring.score import score_answer, score_completion
from toolparse_lab.experiments.arms import arm_of
from toolparse_lab.experiments.case_flow import flow_for
from toolparse_lab.middleware.flow import Conversation, drive
from toolparse_lab.runner.exchange.types import Completion, Model, Request
from toolparse_lab.runner.local.setup import local_model_ready
from toolparse_lab.runner.store.recording import export_recording

PATH = Path(__file__).parents[2] / "datasets" / "conversations.jsonl"
ROWS = [json.loads(line) for line in PATH.read_text("utf-8").splitlines()]
CASES = load_cases(PATH)
MODEL = Model("openai/oracle", price=(0, 0))
PROTOCOLS = (
    "hermes", "gemma", "morph_xml", "yaml_xml", "qwen3_coder_xml", "kimi_k2", "harmony_channel",
    "pythonic",
)  # fmt: skip


def wanted_text(answer: Mapping[str, Any]) -> str:
    inner = answer.get("contains", answer.get("equals"))
    parts = inner if isinstance(inner, list) else [inner]
    return " ".join(p["$any"][0] if isinstance(p, dict) else str(p) for p in parts)


class Oracle:
    """A model that is always right: the target, then each other call that has a result, then the
    answer."""

    def __init__(self, case: Case, protocol: str) -> None:
        self.case = case
        self.protocol = tp.protocols()[protocol]
        self.tools = {t.name: t for t in case.tools}
        first = [dict(c) for c in case.target or []]
        rest = [dict(r) for r in case.results if "arguments" in r]
        for call in first:
            found = next(
                (
                    r
                    for r in rest
                    if (r["name"], r["arguments"]) == (call["name"], call["arguments"])
                ),
                None,
            )
            if found is not None:
                rest.remove(found)
        self.turns = [*([first] if first else []), *([c] for c in rest)]

    def __call__(self, request: Request) -> Completion:
        if self.turns:
            calls = self.turns.pop(0)
            texts = [
                self.protocol.write_call(
                    c["name"], json.dumps(c["arguments"]), self.tools[c["name"]]
                )
                for c in calls
            ]
            # This format writes the calls of one answer as one list.
            pythonic = self.protocol.id == "pythonic"
            raw = f"[{', '.join(t[1:-1] for t in texts)}]" if pythonic else "\n".join(texts)
        else:
            raw = wanted_text(self.case.answer)
        return Completion(key=request.key, raw=raw, finish_reason="stop")


def converse(case: Case, protocol: str, **settings: Any) -> Conversation:
    arm = arm_of(protocol, {"max_turns": 6, **settings})
    return drive(flow_for(case, "m", MODEL, arm, {}, 0), Oracle(case, protocol))


def test_what_the_set_covers() -> None:
    assert len(ROWS) >= 12
    assert Counter(r["metadata"]["category"] for r in ROWS).keys() == {
        "one-call", "parallel", "chain", "error", "image", "hostile", "no-call",
    }  # fmt: skip
    assert {r["metadata"]["language"] for r in ROWS} >= {"en", "de", "es", "fr"}
    assert all(r["id"].split("/")[0] == r["metadata"]["category"] for r in ROWS)
    kinds = [
        r["output"].get("type")
        for row in ROWS
        for r in row["results"]
        if isinstance(r["output"], dict)
    ]
    assert {"error-text", "execution-denied", "content", "json", "text"} <= set(kinds)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_calls_satisfy_their_schemas(row: dict[str, Any]) -> None:
    assert set(row) == {"id", "input", "tools", "target", "results", "answer", "metadata"}
    assert load_cases([row])[0].to_dict() == row
    schemas = {t["name"]: t["parameters"] for t in row["tools"]}
    for call in [*row["target"], *(r for r in row["results"] if "arguments" in r)]:
        Draft202012Validator.check_schema(schemas[call["name"]])
        assert Draft202012Validator(schemas[call["name"]]).is_valid(call["arguments"])
    for call in row["target"]:
        answering = [r for r in row["results"] if r["name"] == call["name"]]
        assert any(r.get("arguments", call["arguments"]) == call["arguments"] for r in answering)
    assert matches_answer(row["answer"], wanted_text(row["answer"]))
    assert not matches_answer(row["answer"], "I do not know.")
    asked = json.dumps(row["input"], ensure_ascii=False)
    if row["metadata"]["category"] == "one-call" and row["id"] != "one-call/heating":
        assert not matches_answer(row["answer"], asked), "the question holds the answer"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@asked_of("case", CASES, ids=lambda case: case.id)
def test_who_does_everything_right_succeeds(case: Case, protocol: str) -> None:
    done = converse(case, protocol)
    assert done.stop == "answered", str(done)
    assert score_answer(case, done) is True
    first = done.turns[0]
    assert first.result is not None
    score = score_completion(case, first.completion, first.result)
    assert score is not None
    assert score.success
    assert done.counts["rejected"] == 0
    wanted_failures = 1 if case.category == "error" else 0
    assert done.counts["failed"] == wanted_failures


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_result_that_quotes_a_call_is_no_call(protocol: str) -> None:
    case = CASES["hostile/result-with-a-call"]
    done = converse(case, protocol)
    last = done.turns[-1].request.messages
    assert [r.call.name for r in done.runs] == ["read_note"]
    assert not [
        c
        for c in tp.parse(str(last[-1]["content"]), protocol, case.tools).calls
        if c.name == "unlock_door"
    ]


def test_the_image_reaches_the_model() -> None:
    content = converse(CASES["image/bird-box"], "hermes").turns[-1].request.messages[-1]["content"]
    assert [p["type"] for p in content] == ["text", "image_url"]


@pytest.mark.parametrize("protocol", ["hermes", "morph_xml"])
def test_the_seeds_form_of_results_is_another_question(protocol: str) -> None:
    case = CASES["one-call/water-level"]
    own, seed = (converse(case, protocol, result_format=f) for f in ("own", "ai-sdk-2"))
    assert own.turns[0].request.key == seed.turns[0].request.key
    assert own.turns[1].request.key != seed.turns[1].request.key


def test_the_shipped_recording_answers_the_whole_plan(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db").replaying(tp.example_recording(conversations=True)) as lab:
        run = lab.run(conversation_plan(lab), progress=False)
        assert run.summary is not None
        assert run.summary.missing == 0
        frame = run.frame()
        assert len(frame) == 6
        assert frame["n_turns"].between(1, 3).all()
        assert frame["score_answer"].notna().all()
        for trial in run.trials():
            assert trial.conversation is not None
            assert trial.result is not None
            assert trial.result.calls[0].ok, "a grammar wrote it"
            for turn in trial.conversation.turns:
                check_all(
                    turn.completion.raw, trial.parse_protocol, trial.case.tools, every_split=False
                )


def test_an_echo_of_the_result_is_no_answer() -> None:
    case = CASES["one-call/water-level"]
    for raw, right in (
        ("It is 412 cm.", True),
        ('<tool_response>{"centimetres":412}</tool_response>', False),
    ):
        oracle = Oracle(case, "hermes")

        def ask(request: Request, oracle: Oracle = oracle, raw: str = raw) -> Completion:
            return (
                oracle(request)
                if oracle.turns
                else Completion(key=request.key, raw=raw, finish_reason="stop")
            )

        done = drive(flow_for(case, "m", MODEL, arm_of("hermes", {"max_turns": 3}), {}, 0), ask)
        assert done.stop == "answered"
        assert score_answer(case, done) is right


@pytest.mark.local_model
@pytest.mark.skipif(
    not local_model_ready(),
    reason="the embedded model is not installed: toolparse demo --install-only",
)
@pytest.mark.parametrize(
    "settings", [{"decoding": "grammar"}, {"tool_choice": "required"}], ids=str
)
@pytest.mark.exhaustive(2)
def test_the_embedded_model_converses_and_is_replayed(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    def plan_of(lab: tp.Lab) -> Any:
        model = {"local": tp.Model("toolparse-local/smollm2-135m")}
        return lab.plan(
            CASES[:1], model, "hermes", wording="brief", max_turns=2, max_tokens=48, **settings
        )

    with tp.Lab(tmp_path / "live.db") as lab:
        live = lab.run(plan_of(lab), progress=False)
        (trial,) = live.trials()
        assert trial.result is not None
        assert trial.conversation is not None
        assert trial.result.calls[0].name == "get_water_level"
        assert trial.conversation.stop in ("answered", "max_turns", "unreadable_call")
        export_recording(lab.store, tmp_path / "r.jsonl", run_id=live.run_id)
    with tp.Lab(tmp_path / "other.db").replaying(tmp_path / "r.jsonl") as lab:
        again = lab.run(plan_of(lab), progress=False)
        assert str(again.trials()[0].conversation) == str(trial.conversation)
