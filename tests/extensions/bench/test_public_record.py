"""The command that reads published answers again counts each gain with its cause."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from lxml import etree

from benchmarks.public_record import BARS, CAUSES, chart_of, count, results_of, rows_of
from tests.extensions.bench.test_bfcl import write_wheel
from tests.tables import each_case

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}


@each_case
def test_causes(text: str, cause: str | None, tmp_path: Path) -> None:
    row = {
        "id": "x", "model": "m", "raw_text": text, "tools": [TOOL],
        "truth": [{"name": "f", "arguments": {"a": [1]}}], "truth_kind": "bfcl_alternatives",
    }  # fmt: skip
    path = tmp_path / "outputs.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps({"truth_kind": None}), "utf-8")
    counts = count(rows_of(path))["m"]
    assert counts["n"] == 1
    assert counts["as written"] == (cause is None)
    assert counts["explained"] == (cause != "")
    assert [name for name in CAUSES if counts[name]] == ([cause] if cause else [])


def test_result_files(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "b.whl")
    folder = tmp_path / "results" / "some-model"
    folder.mkdir(parents=True)
    calls = [
        {"port_ship": json.dumps({"name": "Anne", "berth": [3, "b"], "crew": {"cook": "Ida"}})}
    ]
    rows = [{"id": "multiple_0", "result": calls}, {"id": "other", "result": ""}]
    text = "\n".join(map(json.dumps, rows))
    (folder / "BFCL_v4_multiple_result.json").write_text(text, "utf-8")
    table = count(results_of(tmp_path / "results", wheel, "multiple"))
    assert dict(table["some-model"]) == {"n": 1, "as written": 1, "read": 1, "explained": 1}


def test_the_chart_shows_every_answer_once() -> None:
    table = {"<m>": Counter({"n": 10, "as written": 4, "read": 7, "explained": 8})}
    svg = etree.fromstring(chart_of(table).encode())
    titles = [str(title.text) for title in svg.iter("{*}title")]
    pieces = zip(BARS, (4, 3, 1, 2), strict=True)
    assert titles[1:] == [f"{label}: {share} of 10" for label, share in pieces]
    assert "<m> (10)" in [text.text for text in svg.iter("{*}text")]
