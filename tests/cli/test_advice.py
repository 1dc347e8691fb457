"""What commands advise: the cause of missing answers, the next step, the likely word, the fix."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.tables import every_case
from tests.tools import tool_named
from toolparse_lab.cli import main
from toolparse_lab.cli.console import as_flags
from toolparse_lab.cli.demo import left_out
from toolparse_lab.cli.verbs.asking import fix_of
from toolparse_lab.experiments.run import Run
from toolparse_lab.runner.exchange.summary import Summary

LAMP = tool_named("set_lamp", required=["on"], on="boolean")
GOOD = '<tool_call>{"name": "set_lamp", "arguments": {"on": true}}</tool_call>'
ASK_GOOD = "Say nothing of lamps. say=Hello."
PLAN = """\
cases = "cases.jsonl"
models = ["mock"]
protocols = ["hermes", "morph_xml"]
baseline = "hermes"
"""


def write_cases(*texts: str) -> None:
    """Cases that want no call, whose questions tell the mock what to answer."""
    rows = [
        {"id": f"lamp-{i}", "input": text, "tools": [LAMP], "target": []}
        for i, text in enumerate(texts)
    ]
    Path("cases.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockOpenAI]:
    """A folder with a plan whose model is a mock."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    with MockOpenAI() as mock:
        (tmp_path / "toolparse.toml").write_text(
            f'[models.mock]\nname = "openai/mock"\napi_base = "{mock.url}"\nprice = [0, 0]\n'
            "max_retries = 0\napi_key_env = 'OPENAI_LAMP_KEY'\n",
            "utf-8",
        )
        monkeypatch.setenv("OPENAI_LAMP_KEY", "none")
        (tmp_path / "plan.toml").write_text(PLAN, "utf-8")
        write_cases(ASK_GOOD)
        yield mock


def test_causes_stand_at_the_end_and_no_table_is_empty(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    for status, kind, fix in (
        (401, "auth", "name its variable by `api_key_env` in [models.NAME]"),
        (404, "not_found", "`toolparse check --models mock` asks one question"),
        (500, "server_error", "`toolparse run --retry` asks again"),
    ):
        write_cases(f"status={status}")
        assert main(["run", "plan.toml"]) == 3
        out, err = capsys.readouterr()
        assert out == ""
        assert "no answer was recorded, so there is nothing to report" in err
        assert f"mock: 2 questions have no answer ({kind})" in err
        assert fix in err
        assert "tp." not in err
        assert err.endswith("next: toolparse run --retry latest\n")
    assert main(["run", "plan.toml", "--trust"]) == 3
    assert capsys.readouterr().err.endswith("next: toolparse run --retry latest --trust\n")


def test_a_server_that_is_away_is_checked_by_one_question() -> None:
    fix = fix_of("my model", "connection")
    assert "`api_base` of [models.NAME]" in fix
    assert "`toolparse check --models 'my model'` asks one question" in fix


def test_a_run_names_its_next_step_where_something_failed(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "plan.toml", "--protocols", "hermes"]) == 0
    assert "next:" not in capsys.readouterr().err
    # A copy of a call is no call, but it is tried one where none is wanted.
    write_cases(f"say={GOOD[:-20]}")
    assert main(["run", "plan.toml", "--store", "my runs.db"]) == 0
    assert capsys.readouterr().err.endswith("next: toolparse view latest --store 'my runs.db'\n")


def test_the_baseline_of_a_plan_is_that_of_later_reports(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "plan.toml", "--quiet"]) == 0
    for words in (["report"], ["report", "--protocol", "hermes"], ["run", "--retry", "--quiet"]):
        capsys.readouterr()
        assert main(words) == 0
        assert ("Δ hermes" in capsys.readouterr().out) is ("--protocol" not in words)
    assert main(["report", "--by", "model"]) == 0
    assert "Δ" not in capsys.readouterr().out


def test_retry_says_once_what_it_does(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cases(ASK_GOOD, "status=500")
    assert main(["run", "plan.toml", "--quiet"]) == 3
    capsys.readouterr()
    assert main(["run", "--retry"]) == 3
    err = capsys.readouterr().err
    assert ": 2 of 4 answers are missing and asked for" in err
    assert err.count("Run ") == 1
    write_cases(ASK_GOOD)
    assert main(["run", "plan.toml", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["run", "--retry"]) == 0
    err = capsys.readouterr().err
    assert "lacks no answer, so nothing is asked" in err
    assert err.count("Run ") == 1


def test_a_pipe_has_the_columns_that_are_wished(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["run", "plan.toml", "--quiet"]) == 0
    wide = capsys.readouterr().out
    head = next(line for line in wide.splitlines() if line.startswith("model"))
    assert "asked in" in head
    assert f"0{'100 %':>19}" in head
    assert "repaired: edits allowed" in wide
    assert "1 case · " in wide
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["report"]) == 0
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.split("\n\nWhat goes wrong")[0].splitlines())) <= 80
    assert "repaired" not in narrow
    assert "strict: as written" in narrow


def test_a_replay_names_the_case_that_is_another_question_now(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "plan.toml", "--quiet", "--recording", "r.jsonl"]) == 0
    write_cases(f"changed {ASK_GOOD}")
    capsys.readouterr()
    assert main(["run", "plan.toml", "--quiet", "--replay", "r.jsonl"]) == 3
    err = capsys.readouterr().err
    assert "2 answers of 2 that this plan needs were never recorded: lamp-0 (hermes), lamp-0" in err
    assert "a changed case, tool or setting is another question" in err


def test_a_key_that_is_not_set_is_named_before_anyone_is_asked(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    words = ["run", "plan.toml", "--dry-run", "--models"]
    assert main([*words, "mistral/some-model"]) == 0
    out, err = capsys.readouterr()
    assert "MISTRAL_API_KEY is not set" in err
    assert "give `price = [input, output]` in [models.NAME]" in out
    assert main([*words, "mock"]) == 0
    assert "is not set" not in capsys.readouterr().err
    assert project.calls == 0


def test_a_package_that_is_not_installed_is_named_before_anyone_is_asked(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    assert main(["run", "plan.toml", "--dry-run", "--models", "sagemaker/some-model"]) == 0
    assert "what to do: pip install boto3" in capsys.readouterr().err


def test_a_trial_in_the_place_of_a_run_is_known(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "plan.toml", "--quiet"]) == 0
    with tp.Lab() as lab:
        trial = lab.open().trials()[0].trial_id
    capsys.readouterr()
    assert main(["view", trial]) == 2
    assert f"what to do: toolparse view latest {trial}" in capsys.readouterr().err
    assert main(["view", "latest", trial]) == 0


@pytest.fixture
def asked(project: MockOpenAI, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of the plan."""
    assert main(["run", "plan.toml", "--quiet"]) == 0
    capsys.readouterr()


@every_case
def test_every_error_has_its_fix(
    asked: None, capsys: pytest.CaptureFixture[str], words: str, fix: str
) -> None:
    assert main(words.split()) == 2
    err = capsys.readouterr().err
    assert "what to do: " in err
    assert fix in err


@every_case
def test_a_plan_is_refused_when_it_is_read(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str], line: str, complaint: str
) -> None:
    Path("plan.toml").write_text(f"{PLAN}{line}\n", "utf-8")
    assert main(["run", "plan.toml", "--dry-run"]) == 2
    assert complaint in capsys.readouterr().err


@every_case
def test_a_slip_of_the_pen_is_understood(
    words: str, parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(words.split())
    assert end.value.code == 2
    err = capsys.readouterr().err
    for part in parts:
        assert part in err


def test_the_likely_name_stands_before_a_short_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "x{", "--protocol", "hermess"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2].endswith("did you mean hermes?")
    assert lines[-1].endswith(", …")
    assert len(lines[-1]) < 90


def test_a_parse_without_tools_says_that_nothing_was_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["parse", GOOD]) == 0
    assert "no tools were given, so names and arguments were not checked" in capsys.readouterr().err
    assert main(["parse", GOOD, "--tools", json.dumps([LAMP])]) == 0
    assert "not checked" not in capsys.readouterr().err


def test_validation_speaks_of_flags(
    project: MockOpenAI, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("cases.jsonl").write_text('{"id": "a", "inptu": "Lamp on."}\n', "utf-8")
    assert main(["validate", "cases.jsonl"]) == 2
    out = capsys.readouterr().out
    assert "--columns 'inptu=input'" in out
    assert "Cases(" not in out
    assert ".skipped" not in out
    assert "1 row cannot be read" in out


@every_case
def test_advice_of_python_becomes_that_of_a_shell(text: str) -> None:
    advice = as_flags(text)
    for python in ("Model(", "tp.", "lab.", "None", "run.", "=True", "=...", "toolparse_lab"):
        assert python not in advice


@pytest.mark.parametrize(
    ("stopped", "reason"),
    [("interrupted", "the demo was interrupted"), ("deadline", "150 s were over")],
)
def test_a_demo_that_ended_early_says_why_and_how_to_go_on(
    stopped: str, reason: str, tmp_path: Path
) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        cases = [{"id": "a", "input": "Lamp on.", "tools": [LAMP], "target": []}]
        run = lab.ingest([{"case_id": "a", "input": "Lamp on.", "raw": GOOD}], cases=cases)
        summary = Summary(planned=2, done=1, stopped=stopped)  # type: ignore[arg-type]
        (sentence,) = left_out(Run(run.store, run.run_id, run.plan, summary), 150.0)
    assert reason in sentence
    assert "`toolparse demo` again asks the rest" in sentence
