"""The commands around runs: asked of the shipped recording, so that no model is needed; and of a
mock over HTTP."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.tables import each_case, every_case
from tests.tools import tool_named
from tests.waiting import PATIENCE, running, wait_until
from toolparse_lab.cli import main
from toolparse_lab.evals.cases import row_files
from toolparse_lab.experiments.ingest import build, sources
from toolparse_lab.runner import progress
from toolparse_lab.runner.store.recording import export_recording

ROOT = Path(__file__).parents[2]
ID = r"\b[0-9a-f]{11,12}\b|\b\d{8}T\d{6}-\w+"
RECORDING = ROOT / "datasets" / "recordings" / "smollm2-135m.jsonl"
SETTINGS = """
store = "runs.db"

[models]
small = "toolparse-local/smollm2-135m"
"""
PLAN = f"""
cases = "{ROOT.as_posix()}/datasets/cases.jsonl"
sample = 6
models = ["small"]
protocols = ["hermes", "morph_xml"]
baseline = "hermes"

[settings]
decoding = "grammar"
wording = "brief"
max_tokens = 128
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "toolparse.toml").write_text(SETTINGS, "utf-8")
    (tmp_path / "plan.toml").write_text(PLAN, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the run of the plan."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "toolparse.toml").write_text(SETTINGS, "utf-8")
    (folder / "plan.toml").write_text(PLAN, "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["run", "plan.toml", "--replay", str(RECORDING), "--quiet"]) == 0
    return folder / "runs.db"


@pytest.fixture
def recorded(project: Path, store: Path) -> Path:
    shutil.copy(store, project / "runs.db")
    return project


def out_of(capsys: pytest.CaptureFixture[str], words: str | list[str], code: int = 0) -> Any:
    """The JSON that a command writes, and nothing else."""
    arguments = words.split() if isinstance(words, str) else words
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


# run


def test_a_plan_file_is_run_and_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["report.html", "report.md", "report.xml"]
    written = [part for file in files for part in ("--out", file)]
    assert (
        main(["run", "plan.toml", "--replay", str(RECORDING), "--recording", "r.jsonl", *written])
        == 0
    )
    out, err = capsys.readouterr()
    assert "small  morph_xml" in out
    assert "6 cases × 1 model × 2 arms × 1 trial = 12 calls" in err
    assert "12 recorded" in err
    assert "\x1b" not in out + err
    assert all((project / file).stat().st_size for file in files)
    assert main(["run", "plan.toml", "--replay", "r.jsonl", "--quiet", "--store", "other.db"]) == 0
    again = capsys.readouterr().out
    assert re.sub(ID, "", again) == re.sub(ID, "", out)  # the ids of trials hold the run's


def test_flags_go_before_the_plan(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "run", "plan.toml", "--sample", "3", "--protocols", "morph_xml", "--trials", "2",
        "--dry-run",
    ]  # fmt: skip
    arguments += ["--baseline", "morph_xml few_shot=0"]
    found = out_of(
        capsys,
        [*arguments, "--set", "max_tokens=64", "--set", "few_shot=0,2", "--set", "top_p=0.5"],
    )
    assert found["cases"] == 3
    assert found["calls"] == 3 * 2 * 2
    assert [a["name"] for a in found["arms"]] == ["morph_xml few_shot=0", "morph_xml few_shot=2"]
    assert found["params"] == {"max_tokens": 64, "top_p": 0.5}
    assert {a["decoding"] for a in found["arms"]} == {"grammar"}
    assert not (project / "runs.db").exists() or tp.Lab(project / "runs.db").runs() == []


def test_all_of_a_plan_may_be_given_by_hand(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand = [
        "--cases",
        str(ROOT / "datasets" / "cases.jsonl"),
        "--models",
        "small,openai/x",
        "--protocols",
        "gemma",
    ]
    found = out_of(
        capsys, ["run", *by_hand, "--sample", "2", "--dry-run", "--seed", "3", "--stream"]
    )
    assert sorted(found["models"]) == ["openai/x", "small"]
    assert (found["calls"], found["seed"], found["stream"]) == (4, 3, True)


def test_cases_are_chosen_by_what_they_have(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "plan.toml", "--dry-run", "--protocols", "hermes"]
    ids = [c.id for c in tp.example_cases()[:2]]
    assert out_of(capsys, [*arguments, "--where", f"id={','.join(ids)}"])["cases"] == 2
    kinds = tp.example_cases().categories()
    assert (
        out_of(capsys, [*arguments, "--sample", "1000", "--where", "category=nested"])["cases"]
        == kinds["nested"]
    )
    assert main([*arguments, "--where", "category=none"]) == 2
    assert "no case has all of this" in capsys.readouterr().err


def test_a_file_with_names_of_its_own_is_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = [{"name": "f"}]
    rows = [{"id": "a", "question": "x", "tools": tools}, {"id": "b", "question": "y", "tools": 3}]
    (project / "own.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    run = ["run", "plan.toml", "--cases", "own.jsonl", "--dry-run"]
    assert main(run) == 2
    err = capsys.readouterr().err
    assert "--columns 'question=input', or 'question=' to leave it out" in err
    assert "columns={" not in err
    assert main([*run, "--columns", "question=input"]) == 2
    assert "own.jsonl, line 2" in capsys.readouterr().err
    assert out_of(capsys, [*run, "--columns", "question=input", "--skip-bad"])["cases"] == 1
    plan = PLAN.replace("sample = 6", "sample = 6\ncolumns = {question = 'input', notes = ''}")
    (project / "plan.toml").write_text(plan, "utf-8")
    rows[1] = {"id": "b", "question": "y", "notes": "z", "tools": tools}
    (project / "own.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert out_of(capsys, run)["cases"] == 2
    (project / "plan.toml").write_text(plan.replace("''", "3"), "utf-8")
    assert main(run) == 2
    assert "plan.toml:4: `columns` is a table" in capsys.readouterr().err


def test_a_limit_that_cannot_be_kept_names_flags(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "plan.toml", "--models", "hosted_vllm/x", "--max-cost", "1"]) == 2
    err = capsys.readouterr().err
    assert "--max-calls" in err
    assert "price = [input, output]" in err


def test_a_conversation_is_run_from_its_recording(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = ROOT / "datasets" / "conversations.jsonl"
    recording = RECORDING.with_name("smollm2-135m-conversations.jsonl")
    arguments = [
        "run",
        "plan.toml",
        "--cases",
        str(cases),
        "--where",
        "demo=true",
        "--set",
        "max_turns=3",
    ]
    assert main([*arguments, "--replay", str(recording), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["view", "--arm", "morph_xml"]) == 0
    assert "all turns:" in capsys.readouterr().out


def test_json_holds_run_cells_and_gate(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "run",
        "plan.toml",
        "--replay",
        str(RECORDING),
        "--fail-under",
        "0",
        "--gate",
        "coercion_rate=1",
    ]
    found = out_of(capsys, arguments)
    assert found["summary"]["done"] == 12
    assert [c["n"] for c in found["cells"]] == [6, 6]
    assert found["gate"]["ok"] is True
    assert len(found["gate"]["checks"]) == 4
    assert tp.Lab(project / "runs.db").open(found["run_id"]).run_id == found["run_id"]


@each_case
@pytest.mark.exhaustive(2)
def test_exit_codes_of_a_run(
    project: Path, capsys: pytest.CaptureFixture[str], gate: list[str], code: int
) -> None:
    assert main(["run", "plan.toml", "--replay", str(RECORDING), "--quiet", *gate]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_gate_of_the_plan_holds(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (project / "plan.toml").open("a") as f:
        f.write("\n[gate]\nsuccess = 0.99\n[limits]\nmax_calls = 12\n")
    assert main(["run", "plan.toml", "--replay", str(RECORDING), "--quiet"]) == 1
    assert "gate failed" in capsys.readouterr().out


@every_case
def test_a_plan_that_cannot_be_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    (project / "plan.toml").write_text(text.replace("{root}", ROOT.as_posix()), "utf-8")
    assert main(["run", "plan.toml"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert "0123456789ab" not in err


def test_a_missing_file_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "none.toml"]) == 2
    err = capsys.readouterr().err
    assert "none.toml" in err
    assert "No such file" in err
    assert "`toolparse init` writes plan.toml" in err
    assert len(err.splitlines()) <= 3


@every_case
def test_flags_that_cannot_be_are_named_before_anything_is_asked(
    project: Path, capsys: pytest.CaptureFixture[str], flags: list[str], says: str
) -> None:
    assert main(["run", "plan.toml", *flags]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    if (project / "runs.db").exists():
        assert {r["status"] for r in out_of(capsys, "list")} <= {"incomplete"}


@each_case
@pytest.mark.exhaustive(3)
def test_what_a_report_cannot_be_asked_is_found_before_a_model_is(
    project: Path, capsys: pytest.CaptureFixture[str], flags: list[str], plan: str, says: str
) -> None:
    with (project / "plan.toml").open("a") as f:
        f.write(f"\n{plan}\n")
    asked = ["run", "plan.toml", "--sample", "100", *flags]
    for how in (["--dry-run"], ["--quiet"]):
        if says or how == ["--dry-run"]:
            assert main([*asked, *how]) == (2 if says else 0)
            assert says in capsys.readouterr().err
    assert out_of(capsys, "list") == []


# providers


def write_endpoint(project: Path, url: str, more: str = "") -> None:
    table = f'[models.mock]\nname = "openai/mock"\napi_base = "{url}"\napi_key_env = "OPENAI_MOCK_KEY"\nprice = [0, 0]\n{more}'
    (project / "toolparse.toml").write_text('store = "runs.db"\n' + table, "utf-8")
    cases = [
        {"id": f"c{i}", "input": f"say=hello {i}", "tools": [{"name": "f"}], "target": []}
        for i in range(6)
    ]
    (project / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), "utf-8")


ASK = ["run", "--cases", "cases.jsonl", "--models", "mock", "--protocols", "hermes", "--quiet"]


def test_a_dead_provider_is_incomplete_and_retry_goes_on(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MOCK_KEY", "planted-0123456789")
    write_endpoint(project, "http://127.0.0.1:9/v1", "max_retries = 0\ntimeout = 5\n")
    dead = out_of(capsys, ASK, code=3)
    assert dead["summary"]["done"] == 0
    with MockOpenAI() as mock:
        write_endpoint(project, mock.url)
        # Another address is another question, so the run that failed asks where it asked then, and
        # says so.
        assert main(["run", "--retry", "--quiet", "--json"]) == 3
        assert "mock is configured otherwise" in capsys.readouterr().err
        live = out_of(capsys, [*ASK, "--max-calls", "2"], code=3)
        assert live["summary"]["done"] == 2
        healed = out_of(capsys, "run --retry latest --quiet")
        assert (healed["summary"]["cached"], healed["summary"]["done"]) == (2, 4)
        assert mock.calls == 6
        assert {h["authorization"] for h in mock.headers} == {"Bearer planted-0123456789"}
        # The run that reached its limit lacks nothing either, since its answers are there now.
        assert (
            out_of(capsys, ["run", "--retry", live["run_id"], "--quiet"])["run_id"]
            == live["run_id"]
        )
        assert (
            out_of(capsys, ["run", "--retry", healed["run_id"], "--quiet"])["run_id"]
            == healed["run_id"]
        )
    rows = out_of(capsys, "list")
    assert [r["status"] for r in rows] == ["complete", "complete", "incomplete", "incomplete"]
    for file in project.iterdir():
        assert b"planted-0123456789" not in file.read_bytes()


def test_canaries_are_asked(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MOCK_KEY", "none")
    with MockOpenAI() as mock:  # it says what it was asked, delimiters and all
        write_endpoint(project, mock.url)
        rows = out_of(capsys, "check --protocols hermes,gemma")
    assert [(r["model"], r["protocol"]) for r in rows] == [("mock", "hermes"), ("mock", "gemma")]
    assert {r["verdict"] for r in rows} <= {"ok", "uncertain"}
    write_endpoint(project, "http://127.0.0.1:9/v1", "max_retries = 0\ntimeout = 5\n")
    assert main(["check", "--models", "mock", "--protocols", "hermes"]) == 3
    (project / "toolparse.toml").write_text("")
    assert main(["check"]) == 2


@pytest.mark.slow
def test_ctrl_c_leaves_with_130_and_says_how_to_go_on(project: Path) -> None:
    with MockOpenAI(latency=0.3) as mock:
        write_endpoint(project, mock.url, "max_connections = 1\n")
        env = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_MOCK_KEY": "none"}
        command = [sys.executable, "-m", "toolparse_lab.cli", *ASK]
        with running(command, cwd=project, env=env) as process:
            wait_until(lambda: mock.calls >= 2, process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert out == ""
    assert "toolparse run --retry" in err
    assert "Traceback" not in err
    with tp.Lab(project / "runs.db") as lab:
        assert lab.runs()[0].status == "interrupted"
        assert lab.runs()[0].done >= 1


# what is recorded


def test_runs_protocols_and_models_are_listed(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = out_of(capsys, "list")
    assert (row["status"], row["items"], row["done"], row["models"]) == (
        "complete",
        12,
        12,
        "small",
    )
    assert {"hermes", "morph_xml"} <= {r["protocol"] for r in out_of(capsys, "list protocols")}
    assert out_of(capsys, "list models")[0]["name"] == "toolparse-local/smollm2-135m"
    assert main(["list"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[:2] == ["run_id", "created"]


def test_every_trial_is_scored(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = out_of(capsys, "report --score")
    assert len(rows) == 12
    failed = out_of(capsys, "report --score --failed")
    assert failed == [r for r in rows if r["score_success"] is False]
    outcome = failed[0]["outcome"]
    assert {r["outcome"] for r in out_of(capsys, ["report", "--score", "--outcome", outcome])} == {
        outcome
    }
    assert main(["report", "--score", "--out", "trials.parquet", "--policy", "none"]) == 0
    assert f"{len(rows)}" not in capsys.readouterr().err
    assert (recorded / "trials.parquet").stat().st_size > 0
    assert main(["report", "--score", "--out", "trials.doc"]) == 2


def test_a_run_is_reported_and_gated_again(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--by", "model", "--out", "r.html", "--fail-under", "0.99"]) == 1
    assert "gate failed" in capsys.readouterr().out
    by_auto = out_of(capsys, "report --protocol auto --policy middleware --baseline hermes")
    assert len(by_auto["cells"]) == 2
    assert by_auto["cells"][1]["difference"] is not None
    assert main(["report", "--by", "modle"]) == 2


def test_a_pipe_gets_every_column(
    recorded: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # which may ask for fewer
    assert main(["report", "--by", "model,prompt_protocol,category", "--baseline", "hermes"]) == 0
    head = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("model"))
    assert len(head) > 120
    for column in ("coercion rate", "Δ hermes", "Δ interval", "p Holm"):
        assert column in head


@every_case
def test_figures_that_cannot_be_told_say_why(
    words: str, complaint: str, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err


def test_a_ladder_is_told_and_written(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["ladder.csv", "ladder.parquet"]
    assert main(["report", "--ladder", *(word for file in files for word in ("--out", file))]) == 0
    lines = capsys.readouterr().out.splitlines()
    with tp.Lab("runs.db") as lab:
        ladder = lab.open().report().ladder
    assert len(lines) == len(ladder) + 1
    assert pd.read_parquet("ladder.parquet").equals(ladder)
    assert len(pd.read_csv("ladder.csv")) == len(ladder)
    rows = out_of(capsys, "report --ladder")
    assert [row["level"] for row in rows] == ladder["level"].tolist()


def test_arms_and_runs_are_compared(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = out_of(capsys, "compare latest hermes morph_xml --within model --out c.html")
    assert found["rows"][0]["n_cases"] == 6
    assert (recorded / "c.html").read_text("utf-8").startswith("<!")
    assert main(["run", "plan.toml", "--replay", str(RECORDING), "--quiet"]) == 0
    capsys.readouterr()
    same = out_of(capsys, "compare latest~1 latest --fail-on-regression")
    assert same["regression"]["ok"] is True
    assert same["flips"] == []
    assert main(["compare"]) == 0
    assert "nothing changed" in capsys.readouterr().out


def test_what_became_worse_fails(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run_of(value: int) -> str:
        raw = f'<tool_call>{{"name": "f", "arguments": {{"a": {value}}}}}</tool_call>'
        row = {
            "raw": raw, "model": "m", "target": [{"name": "f", "arguments": {"a": 1}}],
        }  # fmt: skip
        rows = [{**row, "case_id": f"c{i}", "input": f"{i}"} for i in range(12)]
        with tp.Lab(project / "runs.db") as lab:
            tools = [tool_named("f", a="integer")]
            return lab.ingest(rows, tools=tools, protocol="hermes", progress=False).run_id

    good, bad = run_of(1), run_of(2)
    assert main(["compare", good, bad, "--fail-on-regression"]) == 1
    assert "success fell from 100 % to 0 %" in capsys.readouterr().out
    assert main(["compare", good, bad]) == 0
    assert main(["compare", bad, good, "--fail-on-regression"]) == 0


@pytest.fixture
def halted(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run beside the recorded one that reached its limit."""
    limits = ["--trials", "2", "--max-calls", "3", "--replay", str(RECORDING), "--quiet"]
    assert main(["run", "plan.toml", *limits]) == 3
    capsys.readouterr()


@every_case
def test_no_gate_holds_over_a_run_that_is_not_whole(
    halted: None, capsys: pytest.CaptureFixture[str], gated: list[str]
) -> None:
    assert main(gated) == 3
    assert "of 24 trials have no answer" in capsys.readouterr().err
    gates = ("--fail-on-regression", "--fail-under", "0", "0.99")
    assert main([word for word in gated if word not in gates]) == 0
    capsys.readouterr()


def test_one_trial_is_shown(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = out_of(capsys, "view")
    assert out_of(capsys, ["view", "latest", first["trial_id"][:8]])["case"] == first["case"]
    of_case = out_of(
        capsys, ["view", "--case", first["case"]["id"], "--arm", "morph_xml", "--model", "small"]
    )
    assert (of_case["case"]["id"], of_case["prompt_protocol"]) == (first["case"]["id"], "morph_xml")
    assert out_of(capsys, ["view", "--code", first["outcome"]])["outcome"] == first["outcome"]
    assert main(["view", "--html", "v.html", "--color", "always"]) == 0
    assert "\x1b[" in capsys.readouterr().out
    assert (recorded / "v.html").stat().st_size > 0
    for _ in range(2):
        assert main(["view", "--pytest", "test_pinned.py"]) == 0
    assert (recorded / "test_pinned.py").read_text("utf-8").count("def test_") == 1
    assert "wrote test_pinned.py" in capsys.readouterr().err
    assert main(["view", "latest", "zzz"]) == 2
    for flag, slip, known in (
        ("--case", first["case"]["id"] + "x", first["case"]["id"]),
        ("--model", "smal", "small"),
    ):
        capsys.readouterr()
        assert main(["view", flag, slip]) == 2
        assert f"did you mean {known}" in capsys.readouterr().err
    assert main(["view", "nope"]) == 2


def test_a_store_that_is_not_there_is_not_made(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["list"], ["view"], ["report"], ["run", "--retry"], ["compare"]):
        assert main(command) == 2
        assert "there is no store here" in capsys.readouterr().err
    assert not (project / "runs.db").exists()
    tp.Lab(project / "new.db").close()
    for verb in ("view", "report", "compare"):
        assert main([verb, "--store", "new.db"]) == 2
        err = capsys.readouterr().err
        assert "there are no runs in it" in err
        assert "`toolparse ingest`" in err
    (project / "text.db").write_text("this is no database " * 50)
    assert main(["list", "--store", "text.db"]) == 2
    assert "this file is no store" in capsys.readouterr().err


def test_a_file_of_trials_is_reported_by_policy(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["reparse", "--policies", "none,safe", "--out", "again.parquet", "--engine", "serial"])
        == 0
    )
    capsys.readouterr()
    cells = out_of(capsys, "report again.parquet")["cells"]
    assert [c["policy"] for c in cells] == ["safe", "safe", "none", "none"]
    assert {c["n"] for c in cells} == {6}
    assert {c["policy"] for c in out_of(capsys, "report again.parquet --policy none")["cells"]} == {
        "none"
    }
    assert main(["report", "again.parquet", "--fail-under", "0.99", "--out", "r.html"]) == 1
    assert capsys.readouterr().out.count("answers judged") == 2
    assert main(["report", "none.parquet"]) == 2


@every_case
def test_a_folder_that_is_not_there_is_found_first(
    recorded: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "there is no such folder to write into" in err


def write_outputs(project: Path) -> None:
    rows = [
        {
            "text": '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>',
            "model": "mine",
            "case_id": "x",
        },
        {"text": "I cannot.", "model": "mine", "case_id": "y"},
    ]
    (project / "out.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    (project / "tools.json").write_text(json.dumps([{"name": "f"}]), "utf-8")


INGEST = [
    "ingest", "out.jsonl", "--tools", "tools.json", "--protocol", "hermes", "--columns", "text=raw",
]  # fmt: skip


def test_outputs_from_elsewhere_become_a_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_outputs(project)
    found = out_of(capsys, INGEST)
    assert (found["answers"], found["outcomes"]) == (2, {"ungraded": 2})
    assert out_of(capsys, INGEST)["run_id"] == found["run_id"]
    assert out_of(capsys, "list")[0]["run_id"] == found["run_id"]
    assert out_of(capsys, "view latest --case x")["result"]["calls"][0]["name"] == "f"
    assert main(["report"]) == 0
    with (project / "out.jsonl").open("a") as f:
        f.write("\n[1]\n")
    assert main([*INGEST, "--strict"]) == 2
    assert "line 3" in capsys.readouterr().err
    assert main(INGEST) == 0
    assert "warning: left out: rows that cannot be read 1: line 3" in capsys.readouterr().err
    assert out_of(capsys, INGEST)["skipped"][0]["count"] == 1
    assert main(["run", "--retry"]) == 0
    assert main(["run", "--retry", "--fresh"]) == 2
    assert "from elsewhere" in capsys.readouterr().err
    assert main(["ingest", "none.jsonl"]) == 2


def test_a_refused_source_leaves_no_store(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "bad.jsonl").write_text('{"nothing": 1}\n', "utf-8")
    (project / "good.jsonl").write_text('{"raw": "hi"}\n', "utf-8")
    new = ["--store", "new/new.db"]
    (project / "new").mkdir()
    assert main(["ingest", "bad.jsonl", *new]) == 2
    assert list((project / "new").iterdir()) == []
    assert out_of(capsys, ["ingest", "good.jsonl", *new])["answers"] == 1
    assert main(["ingest", "bad.jsonl", *new]) == 2
    assert len(out_of(capsys, ["list", *new])) == 1


def test_a_small_packed_file_of_many_rows_is_refused_at_once(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_PACKED_ROWS", 10)
    rows = [json.dumps({"case_id": f"c{i}", "raw": "hi"}) for i in range(30)]
    text = "\n".join(rows).encode()
    (project / "many.jsonl.gz").write_bytes(gzip.compress(text))
    (project / "many.jsonl").write_bytes(text)
    assert main(["ingest", "many.jsonl.gz", "--store", "n.db"]) == 2
    assert "--max-rows 100 reads more" in capsys.readouterr().err
    assert not (project / "n.db").exists()
    assert main(["ingest", "many.jsonl", "--store", "n.db", "--max-rows", "29"]) == 2
    assert not (project / "n.db").exists()
    for source in (["many.jsonl.gz", "--max-rows", "30"], ["many.jsonl"]):
        assert out_of(capsys, ["ingest", *source, "--store", "n.db"])["answers"] == 30
    (project / "many.csv").write_text("raw\n" + "hi\n" * 12, "utf-8")
    assert main(["ingest", "many.csv", "--store", "n.db", "--max-rows", "11"]) == 2
    assert main(["ingest", "many.csv", "--store", "n.db", "--max-rows", "0"]) == 2
    assert "--max-rows" in capsys.readouterr().err


def test_a_packed_file_has_a_size(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "MAX_UNPACKED", 1000)
    row = {"raw": "x" * 2000}
    (project / "large.json.gz").write_bytes(gzip.compress(json.dumps([row]).encode()))
    assert main(["ingest", "large.json.gz", "--store", "n.db"]) == 2
    assert "more than 1,000 bytes" in capsys.readouterr().err


def test_progress_is_told_where_nobody_sees_a_bar(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_INTERVAL", 0.0)
    monkeypatch.setattr(build, "_PER_STEP", 2)
    (project / "rows.jsonl").write_text('{"raw": "hi"}\n' * 4, "utf-8")
    assert main(["ingest", "rows.jsonl", "--store", "n.db"]) == 0
    told = capsys.readouterr().err
    assert "2 rows\n4 rows\n" in told
    assert "of 4 answers" in told


def test_an_exported_recording_is_imported(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_outputs(project)
    run_id = out_of(capsys, INGEST)["run_id"]
    with tp.Lab("runs.db") as lab:
        export_recording(lab.store, "recording.jsonl", run_id=run_id)
        answers = lab.store.answers([item.key for item in lab.store.items(run_id)])
    there = ["ingest", "recording.jsonl", "--store", "there.db"]
    assert out_of(capsys, there)["new"] == 2
    assert out_of(capsys, there)["new"] == 0
    with tp.Lab("there.db") as lab:
        assert lab.store.answers(answers) == answers
    assert main([*there, "--model", "m"]) == 2
    assert "says itself" in capsys.readouterr().err


def test_recorded_answers_are_read_again(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = out_of(capsys, "reparse latest --protocols hermes,auto --policies none,safe")
    totals: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row["parse_protocol"], row["policy"]
        totals[key] = totals.get(key, 0) + row["n"]
    assert totals == {(p, policy): 12 for p in ("hermes", "auto") for policy in ("none", "safe")}
    assert main(["report", "--score", "--out", "trials.parquet"]) == 0
    capsys.readouterr()
    (recorded / "runs.db").unlink()
    capsys.readouterr()
    assert out_of(capsys, "reparse trials.parquet --engine serial --out again.parquet") == {
        "path": "again.parquet"
    }
    assert sum(r["n"] for r in out_of(capsys, "reparse again.parquet")) == 12
    assert main(["reparse", "trials.parquet", "--out", "again.parquet"]) == 2
    assert "overwrite" in capsys.readouterr().err
    assert main(["reparse", "trials.parquet", "--out", "again.parquet", "--overwrite"]) == 0
    assert main(["reparse", "trials.parquet", "--engine", "magic"]) == 2
    assert main(["reparse", "nothing"]) == 2
    capsys.readouterr()
    assert main(["reparse", "nothing.parquet"]) == 2
    assert "nothing.parquet: there is no such file" in capsys.readouterr().err
    assert not (recorded / "runs.db").exists()  # files need no store, and none is made


# cases and settings


def test_cases_are_validated(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = ROOT / "datasets" / "cases.jsonl"
    assert main(["validate", str(cases), "--strict"]) == 0
    assert "cases" in capsys.readouterr().out
    bad = project / "bad.jsonl"
    bad.write_text('{"id": "a", "input": "x"}\n{"id": "a"}\n[\n', "utf-8")
    found = out_of(capsys, ["validate", str(bad)], code=2)
    assert found["n_errors"] == 2
    doubtful = project / "doubtful.jsonl"
    doubtful.write_text(
        '{"id": "a", "input": "x", "tools": [{"name": "f"}], "target": [{"name": "g"}]}\n', "utf-8"
    )
    assert main(["validate", str(doubtful)]) == 0
    assert main(["validate", str(doubtful), "--strict"]) == 1
    renamed = project / "renamed.jsonl"
    renamed.write_text('{"nr": 1, "question": "x"}\n', "utf-8")
    assert main(["validate", str(renamed), "--columns", "nr=id,question=input"]) == 0
    assert main(["validate"]) == 2


def test_settings_are_shown_with_their_origins_and_without_keys(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MOCK_KEY", "planted-0123456789")
    monkeypatch.setenv("TOOLPARSE_STORE", "postgresql://me:planted-0123456789@host/db")
    monkeypatch.setenv("TOOLPARSE_POLICI", "none")
    write_endpoint(project, "http://127.0.0.1:9/v1")
    assert main(["config"]) == 0
    out, err = capsys.readouterr()
    assert "OPENAI_MOCK_KEY (set)" in out
    assert "environment variable TOOLPARSE_STORE" in out
    assert "did you mean TOOLPARSE_POLICY" in err
    found = out_of(capsys, "config")
    assert found["models"][0]["api_key"] == "OPENAI_MOCK_KEY (set)"
    assert "planted" not in out + json.dumps(found)


def test_no_color_and_a_pipe_mean_no_color(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolparse_lab.cli.options import color
    from toolparse_lab.runner.settings import load_settings

    class Terminal:
        def isatty(self) -> bool:
            return True

    terminal: Any = Terminal()
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert color(load_settings(), terminal)
    monkeypatch.setenv("NO_COLOR", "")
    assert color(load_settings(), terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not color(load_settings(), terminal)
    assert color(load_settings(flags={"color": "always"}), terminal)


@pytest.mark.slow
def test_the_pipeline_of_the_page(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded once; then read again from the recording, and asked anew and compared with it."""
    monkeypatch.setenv("OPENAI_MOCK_KEY", "none")
    with MockOpenAI() as mock:
        write_endpoint(project, mock.url)
        (project / "plan.toml").write_text(
            'cases = "cases.jsonl"\nmodels = ["mock"]\nprotocols = ["hermes"]\n'
        )
        assert main(["run", "plan.toml", "--quiet", "--recording", "main.jsonl"]) == 0
        (project / "runs.db").unlink()
        assert main(["validate", "cases.jsonl", "--strict"]) == 0
        gate = ["--fail-under", "0.9", "--gate", "coercion_rate=0.2"]
        replay = ["run", "plan.toml", "--replay", "main.jsonl", "--quiet"]
        # No answer holds a call, so no share of coerced calls is known: that is no pass.
        assert main([*replay, *gate, "--out", "report.html", "--out", "report.xml"]) == 1
        assert main([*replay, *gate[:2], "--out", "report.xml"]) == 0
        assert "<testsuites" in (project / "report.xml").read_text("utf-8")
        calls = mock.calls
        assert (
            main(
                [
                    "run", "plan.toml", "--fresh", "--max-cost", "5", "--quiet", "--recording",
                    "new.jsonl",
                ]
            )
            == 0
        )  # fmt: skip
        assert mock.calls == calls + 6
        assert (
            main(["compare", "latest~1", "latest", "--fail-on-regression", "--out", "diff.html"])
            == 0
        )
    assert (project / "diff.html").stat().st_size > 0
    capsys.readouterr()


def test_a_report_goes_by_clusters(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A category as the unit: fewer units, and an interval that is not narrower."""
    alone = out_of(capsys, "report")["cells"][0]
    coarse = out_of(capsys, "report --cluster category")["cells"][0]
    assert coarse["success"] == alone["success"]
    assert coarse["ci_high"] - coarse["ci_low"] >= alone["ci_high"] - alone["ci_low"]
    assert main(["report", "--cluster", "categori"]) == 2
    assert "did you mean category" in capsys.readouterr().err


def test_a_view_asks_what_the_user_said_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = [("user", "A?"), ("assistant", "No."), ("user", "B?"), ("assistant", "No.")]
    messages = [{"role": role, "content": text} for role, text in said]
    Path("log.jsonl").write_text(json.dumps({"messages": messages}), "utf-8")
    assert main(["ingest", "log.jsonl"]) == 0
    assert main(["view", "--case", "row-1#1"]) == 0
    assert "asked:  turn 2: B?\n" in capsys.readouterr().out
