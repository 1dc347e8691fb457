"""The command line: what it prints, and with which code it leaves."""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from tests.tables import asked_of, every_case
from toolparse_lab import ParseResult, __version__
from toolparse_lab.cli import build_parser, verbs
from toolparse_lab.cli.app import main
from toolparse_lab.cli.demo import run_demo
from toolparse_lab.cli.options import DECLARED, Option, options_of, parameters
from toolparse_lab.evals.reports.figures.comparison import ArmComparison
from toolparse_lab.experiments.run import Run
from toolparse_lab.runner.ledger import RunLimits

RAW = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


@pytest.fixture
def answer(tmp_path: Path) -> str:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), "utf-8")
    path = tmp_path / "answer.txt"
    path.write_text(RAW, "utf-8")
    return str(path)


def test_parse_shows_call_repair_and_coercion(
    answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "parse",
                answer,
                "--tools",
                str(Path(answer).with_name("tools.json")),
                "--protocol",
                "hermes",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "rjson.trailing-comma" in out
    assert "coerce.integer-from-string" in out
    assert "\x1b" not in out  # no colour where nobody looks


def test_parse_as_json_reads_back(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", answer, "--protocol", "hermes", "--json"]) == 0
    result = ParseResult.from_dict(json.loads(capsys.readouterr().out))
    assert result.raw == RAW
    assert result.calls[0].arguments == {"a": "1"}


def test_parse_reads_standard_input_whatever_its_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe " + RAW.encode()), encoding="utf-8")
    )
    assert main(["parse", "-", "--color", "always"]) == 0
    out = capsys.readouterr().out
    assert "\x1b[" in out
    assert "trailing-comma" in out


def test_switches_change_what_is_allowed(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", answer, "--protocol", "hermes", "--no-repair", "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["calls"][0]["status"] == "undecodable"
    assert result["options"]["repair"] is False


@every_case
def test_bad_input_leaves_with_2_and_says_what_to_do(
    arguments: list[str], says: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([a.replace("{answer}", answer) for a in arguments]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert "Traceback" not in err


@asked_of("arguments", [["nope"], ["parse"], ["demo", "--budget", "soon"]])
def test_wrong_usage_leaves_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as e:
        main(arguments)
    assert e.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "parse" in capsys.readouterr().out
    with pytest.raises(SystemExit) as e:
        main(["--version"])
    assert e.value.code == 0
    assert __version__ in capsys.readouterr().out


def test_a_missing_model_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolparse_lab.cli import demo
    from toolparse_lab.core.errors import SetupError

    def missing() -> Any:
        raise SetupError(
            "the embedded model is not installed",
            hint="toolparse demo --install-only",
            code="missing-model-package",
        )

    monkeypatch.setattr(demo, "local_model_path", missing)
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "toolparse demo --install-only" in capsys.readouterr().err


def test_a_full_disk_leaves_with_3(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolparse_lab.cli import demo
    from toolparse_lab.core.errors import StoreError

    def full(*_: Any, **__: Any) -> Any:
        raise StoreError(
            "the store cannot be written",
            got="disk full",
            hint="free some space; what was recorded is kept",
        )

    monkeypatch.setattr(demo, "local_model_path", lambda: None)
    monkeypatch.setattr(demo, "demo_plan", full)
    assert main(["demo", "--out", str(tmp_path)]) == 3
    assert "kept" in capsys.readouterr().err


def test_a_missing_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", str(tmp_path / "none.txt")]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"toolparse: {tmp_path / 'none.txt'}: No such file or directory\n")


def test_a_file_that_cannot_be_written_leaves_with_3(
    answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["parse", answer, "--html", str(tmp_path / "none" / "x.html")]) == 3
    err = capsys.readouterr().err
    assert "x.html" in err
    assert "Traceback" not in err


def test_a_defect_is_no_failed_gate(
    answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("planted")

    monkeypatch.setattr("toolparse_lab.cli.verbs.texts.render_ansi", broken)
    assert main(["parse", answer]) == 3
    err = capsys.readouterr().err
    assert "RuntimeError: planted" in err
    assert "please report it" in err


def test_a_terminal_that_cannot_show_a_character_ends_no_command(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ä ⟨ \u2028", "utf-8")
    command = [sys.executable, "-m", "toolparse_lab.cli", "parse", str(tmp_path / "a.txt")]
    env = {**_env(), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert "\\xe4" in done.stdout


def commands() -> dict[str, argparse.ArgumentParser]:
    (sub,) = (a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(sub.choices)


def test_every_command_of_the_contract_is_there() -> None:
    wanted = (
        "parse test ingest list view open run report compare reparse check export init validate "
        "config demo"
    )
    assert set(wanted.split()) <= commands().keys()


def test_every_verb_has_its_file_and_every_file_its_verb() -> None:
    files = {path.stem for path in Path(verbs.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == {file for group in verbs.GROUPS.values() for file, _ in group.values()}
    assert commands().keys() == DECLARED.keys() == verbs.verbs().keys()


def test_the_help_of_the_program_loads_no_verb() -> None:
    program = (
        "import sys\nfrom toolparse_lab.cli import main\nmain([])\n"
        "sys.exit(any(m.startswith('toolparse_lab.cli.verbs.') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=_env())
    assert done.returncode == 0, done.stderr


@asked_of("name", commands())
def test_every_command_explains_itself_with_examples_that_can_be_typed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as e:
        main([name, "--help"])
    assert e.value.code == 0
    said = capsys.readouterr().out
    assert f"  toolparse {name}" in said or f"| toolparse {name}" in said
    command, parser = commands()[name], build_parser()
    assert all(a.help for a in command._actions), "an option without a word"
    for line in str(command.epilog).splitlines()[1:]:
        parser.parse_args(shlex.split(line.rpartition("toolparse ")[2]))


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


# Options are those of the functions that verbs call.


@asked_of(
    ("path", "function"),
    [
        ("lab.Lab.ingest", tp.Lab.ingest),
        ("lab.Lab.reparse", tp.Lab.reparse),
        ("experiments.run.Run.compare", Run.compare),
        ("evals.reports.figures.comparison.ArmComparison.regression", ArmComparison.regression),
        ("cli.demo.run_demo", run_demo),
    ],
)
def test_a_signature_is_read_as_python_reads_it(path: str, function: object) -> None:
    real = inspect.signature(function).parameters  # type: ignore[arg-type]
    named = {n: p for n, p in real.items() if p.kind is not inspect.Parameter.VAR_KEYWORD}
    read = parameters(path)
    assert read.keys() == named.keys()
    for name, parameter in named.items():
        if isinstance(read[name].default, str | bool | int) and name != "budget":
            assert read[name].default == parameter.default


def test_members_of_a_type_are_parameters() -> None:
    assert parameters("runner.ledger.RunLimits").keys() == RunLimits.__annotations__.keys()
    with pytest.raises(LookupError):
        parameters("lab.Lab.nothing")


def test_an_option_has_type_default_and_help_of_its_parameter() -> None:
    rows, columns, stream = options_of("lab.Lab.ingest", "--max-rows", "--columns", "--protocol ID")
    assert isinstance(rows, Option)
    assert (rows.members["type"], rows.members["metavar"]) == (int, "N")
    assert columns.members["metavar"] == "A=B,..."
    assert stream.members["help"].endswith("(default: auto)")
    assert rows.members["help"].startswith("refuse a source with more rows")
    (switch,) = options_of("lab.Lab.plan", "--stream")
    assert switch.members["action"] == "store_true"


# `toolparse export` writes the frames of a run, by the suffix of the file.


# Repaired, so that there is an event.
ANSWER = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'


def test_frames_are_exported(tmp_path: Path, capsys: Any) -> None:
    store = str(tmp_path / "runs.db")
    with tp.Lab(store) as lab:
        rows = [{"raw": ANSWER}, {"raw": ANSWER.replace("1", "2")}]
        lab.ingest(rows, tools=[{"name": "f"}], protocol="hermes", progress=False)
    readers: dict[str, tuple[str, Any]] = {
        "trials": ("t.parquet", pd.read_parquet),
        "calls": ("c.csv", pd.read_csv),
        "events": ("e.jsonl", lambda path: pd.read_json(path, lines=True)),
    }
    for frame, (file, read) in readers.items():
        out = tmp_path / file
        words = ["export", "--frame", frame, "--out", str(out), "--store", store, "--json"]
        assert main(words) == 0
        assert len(read(out)) == json.loads(capsys.readouterr().out)["rows"] > 0


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    assert main(["export", "--out", "x.xlsx", "--store", str(tmp_path / "runs.db")]) == 2
