"""Recorded texts as tests: `toolparse test`, the hook and the action that run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

import toolparse_lab as tp
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import GateFailed
from toolparse_lab.integrations.testing import assert_parses

ROOT = Path(__file__).parents[2]
TOOL = tool_named("find_berth", port="string", nights="integer")
RIGHT = (
    '<tool_call>{"name": "find_berth", "arguments": {"port": "Ystad", "nights": "2"}}</tool_call>'
)
WANTED = [{"name": "find_berth", "arguments": {"port": "Ystad", "nights": 2}}]
ROWS: list[dict[str, Any]] = [
    {"id": "right", "raw": RIGHT, "tools": [TOOL], "protocol": "hermes", "target": WANTED},
    {"id": "none", "raw": "Hello!", "tools": [TOOL], "target": []},
    {"id": "no-target", "raw": RIGHT, "tools": [TOOL]},
    {"id": "wrong", "raw": RIGHT.replace("Ystad", "Kiel"), "tools": [TOOL], "target": WANTED},
    {"id": "broken", "raw": RIGHT[:40] + "</tool_call>", "tools": [TOOL], "finish_reason": "stop"},
]


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


@pytest.mark.parametrize(("rows", "code"), [(ROWS[:3], 0), (ROWS, 1)])
def test_the_exit_code_says_whether_all_passed(
    rows: list[dict[str, Any]], code: int, tmp_path: Path, capsys: Any
) -> None:
    assert main(["test", written(tmp_path / "a.jsonl", rows)]) == code
    out = capsys.readouterr().out
    assert f"3 of {len(rows)} passed" in out
    assert [line.split()[2] for line in out.splitlines() if line.startswith("FAILED")] == (
        ["wrong:", "broken:"] if code else []
    )


@each_case
@pytest.mark.exhaustive(2)
def test_a_failure_says_the_same_in_all_four_places(
    raw: str, target: Any, says: list[str], tmp_path: Path, capsys: Any
) -> None:
    """Which call and argument, what was wanted, what was got and what is nearest: in a case, by
    a gate, in `toolparse test` and from pytest's function. It is right where the score says so."""
    row = {"id": "x", "raw": raw, "tools": [TOOL], "target": target, "protocol": "hermes"}
    path, code = written(tmp_path / "a.jsonl", [row]), int(bool(says))
    lines = [f"  {line}" for line in says]

    run = tp.Lab(tmp_path / "runs.db").ingest([{**row, "case_id": "x"}], progress=False)
    (trial,) = run.trials()
    assert trial.score is not None
    assert (trial.score.why[1:], trial.score.success) == (lines, not says)
    assert trial.why().splitlines()[1 : 1 + len(lines)] == lines

    gate = run.report().gate(success=1)
    assert bool(gate) != bool(says)
    assert list(gate.answers[0].why[1:] if says else gate.answers) == lines
    if says:
        with pytest.raises(GateFailed, match=re.escape("\n    ".join(["", *says]))):
            gate.raise_()
    store = ["--store", str(tmp_path / "runs.db")]
    assert main(["report", "latest", "--fail-under", "1", *store]) == code
    assert all(f"  {line}\n" in capsys.readouterr().out for line in lines[:1])

    assert main(["test", path, "--junit", str(tmp_path / "j.xml")]) == code
    out = capsys.readouterr().out
    texts = [e.text or "" for e in ET.parse(tmp_path / "j.xml").getroot().iter("failure")]
    saved = ET.parse(run.report().save(tmp_path / "r.xml", gate=gate)).getroot()
    texts += [e.text or "" for e in saved.iter("failure")]
    for line in lines:
        assert f"{line}\n" in out
        assert [line in text.splitlines() for text in texts] == [True] * 3
    assert main(["test", path, "--json"]) == code
    assert len(
        [m for f in json.loads(capsys.readouterr().out)["failed"] for m in f["mismatches"]]
    ) == len(says)

    if not says:
        assert assert_parses(raw, "hermes", [TOOL], target=target).ok
        return
    with pytest.raises(AssertionError, match=re.escape(says[0])):
        assert_parses(raw, "hermes", [TOOL], target=target)


def test_a_text_is_a_test_of_its_own(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([TOOL]), "utf-8")
    for number, (text, code) in enumerate([(RIGHT, 0), ("Hello!", 0), (ROWS[4]["raw"], 1)]):
        path = tmp_path / f"{number}.txt"
        path.write_text(text, "utf-8")
        assert main(["test", str(path), "--tools", str(tools)]) == code


def test_reports(tmp_path: Path, capsys: Any) -> None:
    path = written(tmp_path / "a.jsonl", [*ROWS, {"id": "<b>|", "raw": "x", "target": WANTED}])
    files = {name: tmp_path / name for name in ("junit.xml", "summary.md")}
    flags = [f"--{file.stem}={file}" for file in files.values()]
    assert main(["test", path, *flags]) == 1
    capsys.readouterr()
    root = ET.parse(files["junit.xml"]).getroot()
    assert (root.get("tests"), root.get("failures")) == ("6", "3")
    summary = files["summary.md"].read_text("utf-8")
    assert "3 of 6 passed" in summary
    assert r"a.jsonl:&lt;b\>\|" in summary


def test_a_baseline_lets_fail_what_failed_before(tmp_path: Path, capsys: Any) -> None:
    path, baseline = written(tmp_path / "a.jsonl", ROWS), tmp_path / "baseline.json"
    assert main(["test", path, "--json"]) == 1
    baseline.write_text(capsys.readouterr().out, "utf-8")
    assert main(["test", path, "--baseline", str(baseline)]) == 0
    assert "2 failed before as well" in capsys.readouterr().out
    assert main(["test", path, "--fail-under", "0.6"]) == 0
    assert main(["test", path, "--fail-under", "0.61"]) == 1
    worse = written(tmp_path / "a.jsonl", [{**ROWS[0], "raw": "No."}, *ROWS[1:]])
    assert main(["test", worse, "--baseline", str(baseline)]) == 1


@each_case
def test_what_cannot_be_a_test_is_refused(
    rows: list[Any], flags: list[str], words: str, tmp_path: Path, capsys: Any
) -> None:
    flags = [flag.replace("{root}", str(ROOT)) for flag in flags]
    assert main(["test", written(tmp_path / "a.jsonl", rows), *flags]) == 2
    assert words in capsys.readouterr().err


def test_hook_and_action_run_it(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert (hook["entry"], hook["language"]) == ("toolparse test", "python")
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    step = action["runs"]["steps"][-1]
    written(tmp_path / "a.jsonl", ROWS)
    binary = str(Path(sys.executable).parent)
    environment = {
        **os.environ, "PATH": f"{binary}:{os.environ['PATH']}", "FILES": "*.jsonl",
        "FAIL_UNDER": "0.5", "BASELINE": "", "GITHUB_STEP_SUMMARY": str(tmp_path / "s.md"),
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0
    assert "3 of 5 passed" in (tmp_path / "s.md").read_text("utf-8")
    assert (tmp_path / "toolparse.xml").exists()
