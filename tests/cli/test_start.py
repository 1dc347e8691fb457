"""The first hour: the files of a new project, and the store that nobody has to name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolparse_lab as tp
from toolparse_lab.cli import main
from toolparse_lab.cli.demo import next_command
from toolparse_lab.cli.options import nearest_store

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {}}}]


def store_with_run(path: Path) -> str:
    """Return the id of a run of one failed answer in a new store."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tp.Lab(path) as lab:
        rows = [{"input": "x", "raw": "<tool_call>{", "id": "a"}]
        return lab.ingest(rows, tools=TOOLS).run_id


def test_a_new_project_validates_and_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert "next: toolparse validate cases.jsonl" in capsys.readouterr().out
    assert main(["config"]) == 0
    assert main(["validate", "cases.jsonl", "--strict"]) == 0
    assert main(["run", "plan.toml", "--dry-run"]) == 0
    assert "4 cases × 1 model × 2 arms × 1 trial = 8 calls" in "".join(capsys.readouterr())


def test_init_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "plan.toml").write_text("mine")
    # A link to nowhere counts as there: writing through it would make a file elsewhere.
    (tmp_path / "new" / "cases.jsonl").symlink_to(tmp_path / "elsewhere")
    assert main(["init", "new", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["written"]
    assert written == {"toolparse.toml": True, "plan.toml": False, "cases.jsonl": False}
    assert (tmp_path / "new" / "plan.toml").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "file").write_text("")
    assert main(["init", "file"]) in (2, 3)
    assert "cannot be begun here" in capsys.readouterr().err


def test_the_demo_s_store_is_looked_at_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = store_with_run(tmp_path / ".demo" / "runs.db")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / ".demo", below):
        monkeypatch.chdir(folder)
        assert main(["view", run]) == 0
        err = capsys.readouterr().err
        assert "the store is" in err, folder
        assert "no store here" not in err, folder
        assert main(["list"]) == 0
        assert run in capsys.readouterr().out
    # A store that somebody names is meant, and none is looked for in its place.
    assert main(["list", "--store", "other.db"]) == 2
    assert "there is no store here" in capsys.readouterr().err


def test_a_store_beyond_the_project_belongs_to_other_work(tmp_path: Path) -> None:
    (tmp_path / "runs.db").touch()
    project = tmp_path / "project"
    (project / "deep").mkdir(parents=True)
    assert nearest_store(project / "deep") == tmp_path / "runs.db"
    (project / "pyproject.toml").touch()
    assert nearest_store(project / "deep") is None
    (project / "toolparse.db").touch()
    assert nearest_store(project / "deep") == project / "toolparse.db"
    assert nearest_store(project) == Path("toolparse.db")


def test_the_next_command_works_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert next_command(Path(".demo")) == "toolparse view latest"
    assert next_command(Path("my demo")) == "toolparse view latest --store 'my demo/runs.db'"
    (tmp_path / "toolparse.db").touch()
    assert next_command(Path(".demo")).endswith("--store .demo/runs.db")
