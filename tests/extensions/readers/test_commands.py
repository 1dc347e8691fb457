"""Commands as readers, and what a stream diff leaves out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.extensions.readers import reader, stream_diff

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


def test_a_command_gives_what_its_function_gives(lab: tp.Lab, run: Any, tmp_path: Path) -> None:
    command = command_of(tmp_path, SCRIPT)
    diff = lab.diff(strict_json, reader(command), answers=run)
    row = diff.frame.iloc[0]
    assert row["difference"] == 0
    assert row["reader_b"] == "parse.py"
    assert len(row["version_b"]) == 8
    frame = run.frame(protocol=reader(command, name="mine", version="2"))
    assert set(frame["parse_protocol"]) == {"mine"}
    assert set(frame["parse_version"]) == {"2"}


@each_case
def test_what_goes_wrong_with_a_command_is_that_answer_s(
    script: str, message: str, tmp_path: Path
) -> None:
    chosen = reader(command_of(tmp_path, script), timeout=1.5)
    result = tp.parse(RIGHT, chosen, TOOLS)
    assert [p.code for p in result.problems] == ["parser.failed"]
    assert message in result.problems[0].message


def test_a_limit_is_a_number_of_seconds() -> None:
    with pytest.raises(BadOptions, match="seconds"):
        reader(["cat"], timeout=0)


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
    diff = stream_diff("hermes", strict_json, run.frame() if as_frame else run)
    assert (set(diff.frame["raw"]), diff.left_out) == ({BROKEN, "No."}, 1)
    assert "1 left out: the provider's calls, without their text" in str(diff)
