"""Rows to train on, rewards, the frame of arguments and whether probabilities tell right from
wrong; from a log whose answers come with their tokens.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.chat_templates import WITH_TURNS
from tests.tables import each_case
from tests.tools import object_schema
from tests.vocabularies import answer_of, vocabulary
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions, StoreError
from toolparse_lab.extensions.train import arguments, reward, sft
from toolparse_lab.middleware.flow import recorded_tokens
from toolparse_lab.runner.chat_templates.renderer import ChatTemplate

PARAMETERS = object_schema(required=["city"], city="string", days="integer")
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
RIGHT = '<tool_call>{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}</tool_call>'
ANSWERS = {
    "right": RIGHT,
    "repaired": RIGHT.replace("3}", "3,}"),
    "coerced": RIGHT.replace("3", '"3"'),
    "wrong": RIGHT.replace("Oslo", "Rome"),
    "no call": "It is cold there.",
}


def row_of(case: str, text: str, **members: Any) -> dict[str, Any]:
    request = {
        "model": "m",
        "messages": [{"role": "user", "content": f"Weather for {case}?"}],
        "tools": TOOLS,
    }
    response = answer_of(vocabulary("cl100k_base").cut(text), text)
    response["choices"][0]["finish_reason"] = "stop"
    target = [{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]
    return {
        "case_id": case, "request": request, "response": response, "target": target, **members
    }  # fmt: skip


def ingested(lab: tp.Lab, answers: dict[str, str] = ANSWERS) -> Any:
    rows = [row_of("one", text) for text in answers.values()]
    return lab.ingest(rows, tools=TOOLS, protocol="hermes", progress=False)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# -- what is kept, and frames


def test_a_log_keeps_the_tokens_of_its_answers(lab: tp.Lab) -> None:
    run = ingested(lab)
    for trial in run.trials():
        tokens = recorded_tokens(trial.completion)
        assert tokens is not None
        assert tokens.drawn in ANSWERS.values()
        assert "".join(token.text for token in tokens) == tokens.drawn
        assert trial.result.tokens == tokens
        assert trial.reparse(policy="none").result.tokens == tokens


def test_the_frame_of_arguments_has_tokens_and_whether_each_is_right(lab: tp.Lab) -> None:
    run = ingested(lab)
    frame: Any = arguments(run.trials())
    raws = run.frame().set_index("trial_id")["raw"]
    for row in frame.itertuples():
        value = raws[row.trial_id][row.start : row.end]
        assert value in (row.value_json, row.value_json.strip('"'), f'"{row.value_json}"')
        assert row.logprob == pytest.approx(-0.25 * row.n_tokens)
        assert row.min_logprob == -0.25
    right = {(row.value_json, bool(row.right)) for row in frame.itertuples()}
    assert right == {('"Oslo"', True), ('"Rome"', False), ("3", True)}
    changed = frame[frame["changed"]]
    assert changed["path"].tolist() == ["/days"]  # the coerced one; a comma is of no argument
    assert tp.parse(RIGHT, "hermes").calls  # a single result has a frame too
    alone = arguments(tp.parse(RIGHT, "hermes"))
    assert alone["path"].tolist() == ["/city", "/days"]
    assert alone["right"].isna().all()
    assert alone["n_tokens"].isna().all()


# -- rows


def test_right_answers_as_written_become_chat_rows(lab: tp.Lab, tmp_path: Path) -> None:
    run = ingested(lab)
    written = sft(run, tmp_path / "sft.jsonl", form="calls")
    assert written.rows == 1
    assert dict(written.left_out) == {"not right": 2, "right after a repair or a coercion": 2}
    (row,) = lines(tmp_path / "sft.jsonl")
    function = {"name": "weather", "arguments": {"city": "Oslo", "days": 3}}
    assert row["messages"][-1]["tool_calls"] == [{"type": "function", "function": function}]
    assert json.loads(row["tools"])[0]["function"]["name"] == "weather"
    assert sft(run, tmp_path / "sft.jsonl", form="text").rows == 1
    (row,) = lines(tmp_path / "sft.jsonl")
    assert row["messages"][-1] == {"role": "assistant", "content": RIGHT}


def test_what_cannot_be_written_leaves_the_file_as_it_was(lab: tp.Lab, tmp_path: Path) -> None:
    run = ingested(lab)
    file = tmp_path / "rows.jsonl"
    file.write_text("before")
    with pytest.raises(BadOptions, match="form"):
        sft(run, file, form="poem")  # type: ignore[arg-type]
    with pytest.raises(StoreError):
        sft(run, tmp_path / "nowhere" / "rows.jsonl")
    assert file.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".jsonl"] == ["rows.jsonl"]


def test_rows_load_as_a_dataset_and_render_back(lab: tp.Lab, tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the rows are loaded by datasets: make dev")
    answers = {
        "right": RIGHT,
        "fewer": RIGHT.replace(', "days": 3', ""),
        "null": RIGHT.replace("3}", "null}"),
    }
    rows = [row_of(name, text) for name, text in answers.items()]
    rows[1]["target"] = [{"name": "weather", "arguments": {"city": "Oslo"}}]
    rows[2]["target"] = [{"name": "weather", "arguments": {"city": "Oslo", "days": None}}]
    nullable = json.loads(json.dumps(TOOLS))
    nullable[0]["function"]["parameters"]["properties"]["days"]["type"] = ["integer", "null"]
    for row in rows:
        row["request"]["tools"] = nullable
    run = lab.ingest(rows, protocol="hermes", progress=False)
    file = tmp_path / "sft.jsonl"
    assert sft(run, file, form="calls").rows == 3
    program = (
        "import datasets, json, sys\n"
        "rows = datasets.load_dataset('json', data_files=sys.argv[1], split='train',"
        " cache_dir=sys.argv[2])\n"
        "print(json.dumps(list(rows)))"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, str(file), str(tmp_path / "cache")],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")},
    )
    loaded = json.loads(process.stdout.splitlines()[-1])
    assert loaded == lines(file)
    jobs = [{"messages": row["messages"], "add_generation_prompt": False} for row in loaded]
    for rendering, text in zip(
        ChatTemplate.of(WITH_TURNS).render(jobs), answers.values(), strict=True
    ):
        calls = tp.parse(rendering.text, "hermes").calls
        assert [c.arguments for c in calls] == [c.arguments for c in tp.parse(text, "hermes").calls]


# -- rewards


def test_a_reward_is_the_mean_of_its_parts() -> None:
    wanted = [{"name": "weather", "arguments": {"city": "Oslo", "days": 3}}]
    texts = list(ANSWERS.values())
    columns = {"tools": [TOOLS] * 5, "target": [wanted] * 5}
    judge = reward("hermes", {"right": 1})
    assert judge(texts, **columns) == [1, 1, 1, 0, 0]
    assert reward("hermes", {"unrepaired": 1})(texts, **columns) == [1, 0, 0, 1, 0]
    assert reward("hermes", {"valid": 1})(texts, **columns) == [1, 1, 1, 1, 0]
    assert reward("hermes", {"arguments": 1})(texts, **columns) == [1, 1, 1, 0.5, 0]
    both = reward("hermes", {"right": 3, "unrepaired": 1})
    assert both(texts, **columns) == [1, 0.75, 0.75, 0.25, 0]
    assert judge.__name__ == "tool_calls_hermes"


def test_a_reward_takes_what_trainers_hand_over() -> None:
    wanted = json.dumps([{"name": "weather", "arguments": {"city": "Oslo"}}])
    function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
    completions = [
        [{"role": "assistant", "content": RIGHT.replace(', "days": 3', "")}],
        [{"role": "assistant", "content": "", "tool_calls": [{"function": function}]}],
        [{"role": "assistant", "content": "No."}],
    ]
    judge = reward("hermes", target="answer")
    rewards = judge(
        prompts=["q"] * 3,
        completions=completions,
        completion_ids=[[1]] * 3,
        trainer_state=None,
        tools=[json.dumps(TOOLS)] * 3,
        answer=[wanted] * 3,
    )
    assert rewards == [1, 1, 0]


def test_without_a_target_only_what_can_be_judged_counts() -> None:
    judge = reward("hermes")
    assert judge([RIGHT, "Hello"], tools=[TOOLS] * 2) == [1.0, None]
    # Where no call is wanted, a text is right.
    assert judge([RIGHT, "Hello"], tools=[TOOLS] * 2, target=[[], []])[1] == 1.0


@each_case
def test_a_wrong_reward_is_refused(weights: Any, columns: Any) -> None:
    with pytest.raises(BadOptions):
        reward("hermes", weights)(["a", "b"], **columns)


# -- the command line


def test_rows_on_the_command_line(lab: tp.Lab, tmp_path: Path, capsys: Any) -> None:
    run = ingested(lab)
    file = tmp_path / "sft.jsonl"
    store = ["--store", str(lab.store.url)]
    assert main(["sft", run.run_id[:8], "--out", str(file), *store]) == 0
    assert lines(file)
    assert "left out" in capsys.readouterr().out
