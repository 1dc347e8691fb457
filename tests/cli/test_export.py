"""`toolparse export` writes the frames of a run, by the suffix of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from toolparse_lab.cli.app import main

# Repaired, so that there is an event.
ANSWER = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'


@pytest.mark.parametrize(("frame", "file"), [
    ("trials", "t.parquet"), ("calls", "c.csv"), ("events", "e.jsonl"),
])  # fmt: skip
def test_frames_are_exported(tmp_path: Path, capsys: Any, frame: str, file: str) -> None:
    store, out = str(tmp_path / "runs.db"), tmp_path / file
    with tp.Lab(store) as lab:
        rows = [{"raw": ANSWER}, {"raw": ANSWER.replace("1", "2")}]
        lab.ingest(rows, tools=[{"name": "f"}], protocol="hermes", progress=False)
    assert main(["export", "--frame", frame, "--out", str(out), "--store", store, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    read: dict[str, Any] = {
        ".parquet": pd.read_parquet, ".csv": pd.read_csv,
        ".jsonl": lambda path: pd.read_json(path, lines=True),
    }  # fmt: skip
    assert len(read[out.suffix](out)) == said["rows"] > 0


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    assert main(["export", "--out", "x.xlsx", "--store", str(tmp_path / "runs.db")]) == 2
