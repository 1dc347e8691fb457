"""Without any extra every verb works or names what to install; Ctrl-C is one line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chat_templates import FAMILIES
from toolparse_lab.cli import app, main
from toolparse_lab.cli.verbs import verbs

ROOT = Path(__file__).parents[2]

# One process for all of them: what counts is what a verb imports before it complains.
PROGRAM = """
import contextlib, io, json, sys
from importlib.machinery import PathFinder

HIDDEN = ("pandas", "numpy", "scipy", "pyarrow", "sqlalchemy", "litellm", "httpx", "anywidget",
          "IPython", "tqdm")
really = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in HIDDEN else really(name, path, target)

PathFinder.find_spec = find_spec
from toolparse_lab.cli import main

ends = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words.split())
    ends.append([words, code, err.getvalue()])
print(json.dumps(ends))
"""
WORKING = (
    "parse answer.txt", "parse answer.txt --html page.html", "test answer.txt", "list protocols",
    "list models", "template check chat_template.jinja", "init made", "config", "reader list",
)  # fmt: skip
LACKING = (
    "ingest answer.txt", "list runs", "view latest", "view --html page.html", "open",
    "report --score", "blame", "endpoints", "serve --upstream http://127.0.0.1:9/v1",
    "sft --out rows.jsonl", "export --out rows.jsonl",
    "run --cases cases.jsonl --models a/b --protocols hermes --dry-run", "run --retry",
    "check --models a/b", "report", "report trials.parquet", "report --out page.html",
    "compare latest a b", "compare", "power", "report --ladder", "reparse",
    "reparse trials.parquet", "validate cases.jsonl", "demo",
)  # fmt: skip


def test_without_extras_a_verb_works_or_names_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("no call", "utf-8")
    (tmp_path / "chat_template.jinja").write_text(FAMILIES["slots"], "utf-8")
    (tmp_path / "cases.jsonl").write_text('{"id": "a", "input": "hi", "target": []}\n', "utf-8")
    (tmp_path / "trials.parquet").write_text("", "utf-8")
    # Those of an extension are there if it is.
    working, lacking = (
        [words for words in lines if words.split()[0] in verbs()] for lines in (WORKING, LACKING)
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(working + lacking)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout)
    for words, code, complaint in ends[: len(working)]:
        assert code == 0, (words, complaint)
    assert "</html>" in (tmp_path / "page.html").read_text("utf-8")
    for words, code, complaint in ends[len(working) :]:
        assert code == 2, (words, complaint)
        assert complaint.startswith("toolparse: this command needs "), (words, complaint)
        assert "pip install '.[" in complaint
    tried = {words.split()[0] for words in WORKING + LACKING}
    untried = verbs().keys() - tried
    assert not untried, "add its words to WORKING if the base package runs it, else to LACKING"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [("parse -", "interrupted"), ("ingest x", "interrupted; what was recorded is kept")],
)
def test_ctrl_c_is_one_line_that_is_true(
    words: str, complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "_exit_code", interrupted)
    assert main(words.split()) == 130
    assert capsys.readouterr().err == f"\ntoolparse: {complaint}\n"


def test_ctrl_c_while_a_verb_loads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(self: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("toolparse_lab.cli.parser.VerbParser.load", load)
    assert main(["run"]) == 130
    assert capsys.readouterr().err == "\ntoolparse: interrupted\n"
