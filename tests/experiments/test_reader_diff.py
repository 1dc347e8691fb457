"""Readers of every kind in a diff: protocols, functions and commands over the same answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.core.errors import BadOptions, UnknownProtocol
from toolparse_lab.entry.foreign.protocol import ForeignProtocol
from toolparse_lab.evals.readings.readers import FunctionReader, reader, version_of

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
RIGHT = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
BROKEN = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'
TARGET = [{"name": "f", "arguments": {"a": 1}}]
ROWS: list[dict[str, Any]] = [
    {"id": "right", "output": RIGHT, "target": TARGET},
    {"id": "broken", "output": BROKEN, "target": TARGET},
    {"id": "silent", "output": "No.", "target": []},
]
SCRIPT = """
import json, os, sys
text = sys.stdin.read()
assert json.load(open(os.environ["TOOLPARSE_TOOLS"]))[0]["name"] == "f"
body = text.partition("<tool_call>")[2].partition("</tool_call>")[0]
print(json.dumps([json.loads(body)] if body else []))
"""


@pytest.fixture
def lab(tmp_path: Path) -> tp.Lab:
    return tp.Lab(tmp_path / "runs.db")


@pytest.fixture
def run(lab: tp.Lab) -> Any:
    rows = [{**row, "case_id": row["id"]} for row in ROWS]
    return lab.ingest(rows, tools=TOOLS, model="m", protocol="hermes")


def strict_json(text: str) -> list[Any]:
    body = text.partition("<tool_call>")[2].partition("</tool_call>")[0]
    return [json.loads(body)] if body else []


def command_of(tmp_path: Path, script: str) -> list[str]:
    path = tmp_path / "parse.py"
    path.write_text(script, "utf-8")
    return [sys.executable, str(path)]


def test_a_function_against_a_protocol(lab: tp.Lab, run: Any) -> None:
    diff = lab.diff(strict_json, "hermes", answers=run)
    row = diff.frame.iloc[0]
    assert row["difference"] == pytest.approx(1 / 3)
    assert (row["reader_a"], row["reader_b"]) == ("strict_json", "hermes")
    assert row["version_b"] == tp.__version__
    assert row["version_a"]
    assert diff.flips["case_id"].tolist() == ["broken"]
    assert diff.a.startswith("strict_json ")
    assert any("read by" in note for note in diff.notes)
    flip = diff.flip(0)
    assert [trial.score and trial.score.success for trial in (flip.a, flip.b)] == [False, True]
    # Both read the same answer, so that a page shows the two readings side by side.
    assert "rows end with another value" in flip._repr_html_()
    protocols = lab.diff("kimi_k2", "hermes", answers=run)
    assert len(protocols.flips)
    assert protocols._repr_html_().count("rows end with another value") == len(protocols.flips)
    # A run on one side: the reader reads its answers.
    assert lab.diff(run, strict_json).frame["difference"].iloc[0] == pytest.approx(-1 / 3)
    # Names alone are runs, as ever; readers alone read the latest.
    assert lab.diff(strict_json, strict_json).frame["difference"].iloc[0] == 0
    assert lab.diff(None, "hermes", answers="latest").frame["difference"].iloc[0] == 0


def test_a_frame_is_read_too(lab: tp.Lab, run: Any) -> None:
    frame = run.frame(policies=("safe", "middleware"))
    assert set(frame["parse_version"]) == {tp.__version__}
    diff = lab.diff("hermes", strict_json, answers=frame)
    assert diff.frame["difference"].iloc[0] == pytest.approx(-1 / 3)
    again = lab.reparse(run, [reader(strict_json, version="7")], engine="serial", progress=False)
    assert again["parse_version"].tolist() == ["7"] * 3


def test_a_command_gives_what_its_function_gives(lab: tp.Lab, run: Any, tmp_path: Path) -> None:
    command = command_of(tmp_path, SCRIPT)
    diff = lab.diff(strict_json, command, answers=run)
    row = diff.frame.iloc[0]
    assert row["difference"] == 0
    assert row["reader_b"] == "parse.py"
    assert len(row["version_b"]) == 8
    frame = run.frame(protocol=reader(command, name="mine", version="2"))
    assert set(frame["parse_protocol"]) == {"mine"}
    assert set(frame["parse_version"]) == {"2"}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import time; time.sleep(60)", "no answer within"),
        ("import sys; sys.exit('broken pipe organ')", "broken pipe organ"),
        ("print('no json')", "JSONDecodeError"),
        ("print('7')", "no list of calls"),
    ],
)
def test_what_goes_wrong_with_a_command_is_that_answer_s(
    script: str, message: str, tmp_path: Path
) -> None:
    chosen = reader(command_of(tmp_path, script), timeout=1.5)
    result = tp.parse(RIGHT, chosen, TOOLS)
    assert [p.code for p in result.problems] == ["parser.failed"]
    assert message in result.problems[0].message


def test_a_reader_that_fails_is_no_abstention(lab: tp.Lab, run: Any) -> None:
    def failing(text: str) -> Any:
        raise RuntimeError("no")

    trials = run.trials(protocol=reader(failing))
    assert not any(
        trial.score and trial.score.success for trial in trials if trial.case_id != "silent"
    )
    assert not (run.frame(protocol=reader(failing))["outcome"] == "abstained_wrongly").any()


def test_functions_of_every_signature() -> None:
    def with_tools(text: str, tools: Any) -> Any:
        return [{"name": tools[0]["name"], "arguments": {"a": 1}}]

    def with_option(text: str, strict: bool = True) -> Any:
        return {"name": "f", "arguments": {"a": int(strict)}}

    for function in (with_tools, with_option, lambda *texts: with_option(*texts)):
        assert tp.parse("x f", reader(function), TOOLS).calls[0].arguments_json == '{"a":1}'
    endless = reader(lambda text: ({"name": "f"} for _ in iter(int, 1)))
    assert len(tp.parse("f", endless, TOOLS).calls) <= 1000
    assert tp.parse("x", reader(json.loads), TOOLS).problems[0].code == "parser.failed"
    chosen = reader(strict_json)
    assert isinstance(chosen, ForeignProtocol)
    assert isinstance(chosen.subject, FunctionReader)
    assert version_of("hermes") == tp.__version__
    assert version_of("custom:x") is None


def test_names_protocols_and_what_is_none(lab: tp.Lab, run: Any) -> None:
    assert reader("hermes").id == "hermes"
    one = reader(reader(strict_json), name="again", version="3")
    assert (one.id, version_of(one)) == ("again", "3")
    for bad in ([], [1], None):
        with pytest.raises(BadOptions):
            reader(bad)
    with pytest.raises(UnknownProtocol):
        reader("no such protocol")
    with pytest.raises(BadOptions, match="seconds"):
        reader(["cat"], timeout=0)
    with pytest.raises(BadOptions, match="two sides"):
        lab.diff(None, run)
    with pytest.raises(BadOptions, match="those of a run"):
        lab.diff("hermes", strict_json, answers=5)


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_provider_s_own_calls_have_no_text_to_read(lab: tp.Lab, as_frame: bool) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[Any] = [
        {"content": None, "tool_calls": [call]}, {"content": BROKEN}, {"content": "No."}
    ]  # fmt: skip
    rows = [
        {"custom_id": str(n), "response": {"body": {"choices": [{"message": message}]}}}
        for n, message in enumerate(messages)
    ]
    run = lab.ingest(rows, tools=TOOLS, progress=False)
    diff = lab.diff("hermes", strict_json, source=run.frame() if as_frame else run)
    assert (list(diff.frame["raw"]), diff.left_out) == ([BROKEN, "No."], 1)
    assert "1 left out: the provider's calls, without their text" in str(diff)
