"""Notes and outcomes that a person sets by hand: kept beside the score, which stays."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tools import tool_named
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.scoring.exports import curl_of
from toolparse_lab.evals.scoring.trial import Trial

TOOL = tool_named("f", required=["x"], x="integer")
RAW = '<tool_call>{"name": "f", "arguments": {"x": 2}}</tool_call>'
ROWS = [
    {
        "id": f"c{i}",
        "input": "do",
        "tools": [TOOL],
        "target": [{"name": "f", "arguments": {"x": i}}],
        "raw": RAW,
        "model": "m",
        "protocol": "hermes",
    }
    for i in (1, 2)
]
HOSTILE = "pasted \x00\x1b[31m \ud800 <script>window.pwned=1</script> 'quote'"


def test_remarks_stay_beside_the_score(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with tp.Lab(store) as lab:
        run = lab.ingest(ROWS)
        trial = run.trials()[0]
        assert trial.outcome == "wrong_call"
        assert trial.note(HOSTILE).remarks.note == HOSTILE
        # An object from before the note keeps it as well.
        changed = trial.override("correct", why="2 is as good")
        assert (changed.outcome, changed.remarks.outcome) == ("wrong_call", "correct")
        run_id = run.run_id
    with tp.Lab(store) as lab:
        run = lab.open(run_id)
        again = run.trial(trial.trial_id)
        assert again.remarks == replace(changed.remarks, note=HOSTILE)
        row = run.frame().set_index("trial_id").loc[trial.trial_id]
        assert (row["override"], row["override_why"]) == ("correct", "2 is as good")
        assert row["outcome"] == "wrong_call"
        assert row["score_success"] == False  # noqa: E712 - a numpy value
        assert run.report().frame["success"].tolist() == [0.5]
        assert any(note.startswith("1 outcome overridden by hand") for note in run.report().notes)
        again.override(None)
        assert not any("overridden" in note for note in run.report().notes)
        with pytest.raises(BadOptions, match="no such outcome"):
            again.override("corect")
    with pytest.raises(BadOptions, match="no store"):
        Trial.of(again.case, None).note("x")


def call_facts(call: Any) -> list[Any]:
    return [call.name, call.status, call.arguments_json, call.edits, call.steps]


def test_a_trial_can_be_carried_elsewhere(tmp_path: Path) -> None:
    raw = RAW.replace("2}", f'2, "note": {json.dumps(HOSTILE)}' + "}").replace(
        '"x": 2,', '"x": "2",'
    )
    with tp.Lab(tmp_path / "runs.db") as lab:
        trial = lab.ingest([{**ROWS[0], "raw": raw}]).trials(policies=["middleware"])[0]
    source = trial.as_python()
    assert source.isascii()
    assert source.replace("\n", "").isprintable()
    printed = io.StringIO()
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "snippet", "exec"), names)
    assert trial.result is not None
    # All but what the question alone can say of origins.
    assert [call_facts(call) for call in names["result"].calls] == [
        call_facts(call) for call in trial.result.calls
    ]
    page = trial.as_html(tmp_path / "one.html").read_text("utf-8")
    assert "<script" not in page
    assert "default-src &#x27;none&#x27;" in page
    with pytest.raises(BadOptions, match="cannot be written as curl"):
        Trial.of(trial.case, None).as_curl()


@pytest.mark.parametrize(
    "text", [HOSTILE, "'; echo pwned; '", '$(echo pwned) `id` \\ " \n\t\x7f é']
)
def test_curl_says_what_was_asked(text: str, tmp_path: Path) -> None:
    request = {
        "model": {"name": "hosted_vllm/org/model", "api_base": "http://127.0.0.1:9/v1"},
        "messages": [{"role": "user", "content": text}],
        "params": {"temperature": 0, "api_key": "sk-secret"},
        "tools": [{"type": "function", "function": TOOL}],
        "stream": False,
    }
    command = curl_of("t", request)
    assert command.replace("\n", "").isprintable()
    assert command.isascii()
    assert "sk-secret" not in command
    # The shell itself says what a program of that name would be called with.
    script = f'curl() {{ for a in "$@"; do printf "%s\\0" "$a"; done; }}\n{command}'
    output = subprocess.run(
        ["sh", "-c", script], capture_output=True, env={"API_KEY": "k"}, check=True
    ).stdout.decode("ascii")
    words = output.split("\0")[:-1]
    assert words[0] == "http://127.0.0.1:9/v1/chat/completions"
    assert words[4] == "Authorization: Bearer k"
    body = json.loads(words[-1])
    assert body["messages"] == [{"role": "user", "content": text}]
    assert (body["model"], body["temperature"]) == ("org/model", 0)
