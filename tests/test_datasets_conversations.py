"""The shipped conversations: right by their own schemas and rows, and answerable to the end in every format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import toolparse_lab as tp
from toolparse_lab.arms import arm_of
from toolparse_lab.asking import flow_for
from toolparse_lab.evals.cases import Case, load_cases
from toolparse_lab.evals.final_text import matches_answer
from toolparse_lab.evals.score import score_answer, score_completion
from toolparse_lab.flow import Conversation, drive
from toolparse_lab.runner.types import Completion, Model, Request

PATH = Path(__file__).parent.parent / "datasets" / "conversations.jsonl"
ROWS = [json.loads(line) for line in PATH.read_text("utf-8").splitlines()]
CASES = load_cases(PATH)
MODEL = Model("openai/oracle", price=(0, 0))
PROTOCOLS = ("hermes", "gemma", "morph_xml", "yaml_xml", "qwen3_coder_xml", "kimi_k2", "harmony_channel", "pythonic")


def wanted_text(answer: Mapping[str, Any]) -> str:
    inner = answer.get("contains", answer.get("equals"))
    parts = inner if isinstance(inner, list) else [inner]
    return " ".join(p["$any"][0] if isinstance(p, dict) else str(p) for p in parts)


class Oracle:
    """A model that is always right: the target, then each other call that has a result, then the answer."""

    def __init__(self, case: Case, protocol: str) -> None:
        self.case = case
        self.protocol = tp.protocols()[protocol]
        self.tools = {t.name: t for t in case.tools}
        first = [dict(c) for c in case.target or []]
        rest = [dict(r) for r in case.results if "arguments" in r]
        for call in first:
            found = next((r for r in rest if (r["name"], r["arguments"]) == (call["name"], call["arguments"])), None)
            if found is not None:
                rest.remove(found)
        self.turns = [*([first] if first else []), *([c] for c in rest)]

    def __call__(self, request: Request) -> Completion:
        if self.turns:
            calls = self.turns.pop(0)
            texts = [
                self.protocol.write_call(c["name"], json.dumps(c["arguments"]), self.tools[c["name"]]) for c in calls
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
    kinds = [r["output"].get("type") for row in ROWS for r in row["results"] if isinstance(r["output"], dict)]
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
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
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
    assert not [c for c in tp.parse(str(last[-1]["content"]), protocol, case.tools).calls if c.name == "unlock_door"]


def test_the_image_reaches_the_model() -> None:
    content = converse(CASES["image/bird-box"], "hermes").turns[-1].request.messages[-1]["content"]
    assert [p["type"] for p in content] == ["text", "image_url"]


@pytest.mark.parametrize("protocol", ["hermes", "morph_xml"])
def test_the_seeds_form_of_results_is_another_question(protocol: str) -> None:
    case = CASES["one-call/water-level"]
    own, seed = (converse(case, protocol, result_format=f) for f in ("own", "seed"))
    assert own.turns[0].request.key == seed.turns[0].request.key
    assert own.turns[1].request.key != seed.turns[1].request.key
