"""A log read by several processes: the same store as by one process."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.core.errors import BadCase, BadOptions, IncompleteError, UnreadableInput
from toolparse_lab.experiments.ingest import build, pieces

TOOL = {"name": "add", "parameters": {"properties": {"n": {"type": "integer"}}}}
TEXT = '<tool_call>{"name": "add", "arguments": {"n": "7"}}</tool_call>'
POOL = {"engine": "processes", "workers": 2}


def row(n: int) -> dict[str, Any]:
    """An answer; those of one question follow one another, and some rows are like no other."""
    request = {"model": "m", "messages": [{"role": "user", "content": f"Add {n // 3}"}], "seed": n}
    rows: dict[int, dict[str, Any]] = {
        5: {"raw": TEXT, "request": request, "input": "Add 1", "trial": 4},
        11: {"model": "m", "raw": 11},  # refused: a text is wanted
        12: {"id": "g1", "type": "GENERATION", "traceId": "t", "model": "e", "output": TEXT},
        13: {"id": "g2", "type": "GENERATION", "traceId": "t", "model": "e", "output": TEXT},
        17: {"case_id": "same", "raw": "a", "input": "one"},
        18: {"case_id": "same", "raw": "b", "input": "another"},  # another question
        21: {"raw": "x", "error": "timeout", "password": "hunter2hunter2"},
        23: {"raw": TEXT, "input": "Add?", "target": "seven, I think"},
        25: {"raw": TEXT, "prompt_protocol": "morph_xml", "arm": "other"},
        27: {"raw": TEXT, "prompt_protocol": "no such format"},
        29: {"response": {"object": "chat.completion", "choices": [
            {"index": i, "message": {"role": "assistant", "content": f"{i}"}} for i in range(3)]}},
    }  # fmt: skip
    usual = {"input": f"Add {n // 3}", "raw": f"{TEXT} {n % 3}", "request": request, "user": n}
    return rows.get(n, {**usual, "model": f"m{n % 2}", "tools": [TOOL], "latency": n / 8})


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(pieces, "_ROWS", 4)
    lines = [json.dumps(row(n)) for n in range(120)]
    lines[7] += "}"  # no JSON
    lines[9] = " "
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    return path


def stored(folder: Path, name: str, source: Any, **options: Any) -> list[Any]:
    """Everything in the store after a log was ingested, but for times."""
    path = folder / f"{name}.db"
    with tp.Lab(path) as lab:
        lab.ingest(source, protocol="hermes", errors="skip", progress=False, **options)
    with closing(sqlite3.connect(path)) as database:
        completions = database.execute("SELECT * FROM completions").fetchall()
        runs = database.execute("SELECT run_id, plan, items_digest FROM runs").fetchall()
        items = database.execute("SELECT * FROM plan_items").fetchall()
        requests = database.execute("SELECT * FROM requests").fetchall()
    return [[c[:19] + c[20:] for c in completions], runs, items, requests]


def test_processes_record_what_one_does(log: Path, tmp_path: Path) -> None:
    """Also rows that no other process can be given, and rows of shapes between those of none."""
    serial = stored(tmp_path, "serial", log, engine="serial")
    assert len(serial[0]) > 100
    skipped = json.loads(serial[1][0][1])["ingested"]["skipped"]
    counts: Counter[str] = Counter()
    for one in skipped:
        counts[one["name"]] += one["count"]
    assert counts["rows that cannot be read"] == 3
    assert counts["column password"] == counts["targets"] == 1
    assert stored(tmp_path, "pool", log, **POOL) == serial
    rows: list[Any] = [row(n) for n in range(120)]
    rows[30]["metadata_odd"] = lambda: None
    one = stored(tmp_path, "one", rows, engine="serial")
    assert stored(tmp_path, "rows", rows, **{**POOL, "workers": 1}) == one


def test_refused_rows_are_told_alike(log: Path, tmp_path: Path) -> None:
    told = []
    with tp.Lab(tmp_path / "runs.db") as lab:
        for who in ({"engine": "serial"}, {**POOL, "workers": 1}):
            with pytest.raises(BadCase) as e:
                lab.ingest(log, protocol="hermes", progress=False, errors="raise", **who)
            told.append((str(e.value), [str(one) for one in e.value.rows]))
        assert lab.runs() == []
    assert told[0] == told[1]
    assert "3 of 119 rows cannot be read" in told[0][0]


def test_a_source_that_ends_in_an_error_is_refused(tmp_path: Path) -> None:
    def rows() -> Any:
        yield from map(row, range(3))
        raise UnreadableInput("gone")

    with tp.Lab(tmp_path / "runs.db") as lab, pytest.raises(UnreadableInput, match="gone"):
        lab.ingest(rows(), progress=False, errors="skip")


@pytest.mark.parametrize("end", [KeyboardInterrupt, None])
def test_an_interrupt_and_a_lost_process_leave_nothing(
    end: type[BaseException] | None, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, count = build._Building.add, 0

    def ending(self: Any, answer: Any) -> None:
        nonlocal count
        count += 1
        if count == 13:
            if end is not None:
                raise end
            os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)
        add(self, answer)

    with tp.Lab(tmp_path / "runs.db") as lab:
        with monkeypatch.context() as m:
            m.setattr(build._Building, "add", ending)
            with pytest.raises(end or IncompleteError, match=None if end else "killed by signal"):
                lab.ingest(log, progress=False, errors="skip", **POOL)  # type: ignore[arg-type]
        assert multiprocessing.active_children() == []
        assert lab.runs() == []
        assert lab.store.newest_row() == 0


def test_all_cores_read_many_rows_only(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = []
    read = pieces.results_of  # type: ignore[attr-defined]  # as the module itself imports it

    def note(work: Any, works: Any, engine: Any, *options: Any) -> Any:
        engines.append(engine)
        return read(work, works, "serial", *options)

    monkeypatch.setattr(pieces, "results_of", note)
    monkeypatch.setattr(pieces, "available_processes", lambda: 2)
    serial = stored(tmp_path, "serial", log, engine="serial")
    assert stored(tmp_path, "few", log) == serial
    assert engines == []
    monkeypatch.setattr(pieces, "MANY", 80)
    assert stored(tmp_path, "many", log) == serial
    assert engines == ["processes"]
    stored(tmp_path, "requests", log, requests=[])
    assert engines == ["processes", "processes"]
    stored(tmp_path, "of a batch", log, requests=[{"custom_id": "x"}])
    assert engines == ["processes", "processes"]


def test_what_cannot_be_done_elsewhere_says_so(log: Path, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        for options, words in (
            ({"engine": "threads"}, "no engine of this name"),
            ({"workers": 0}, "workers is a number of processes"),
            (
                {**POOL, "requests": [{"custom_id": "x"}]},
                "a batch is read with its requests by one",
            ),
        ):
            with pytest.raises(BadOptions, match=words):
                lab.ingest(log, progress=False, **options)
        assert lab.runs() == []
