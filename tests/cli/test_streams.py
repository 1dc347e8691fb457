"""Standard streams that are closed, full, or without a reader, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.tables import each_case

CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
PARSE = [sys.executable, "-m", "toolparse_lab.cli", "parse"]


def shell(words: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "answer.txt").write_text(CALL, "utf-8")
    return subprocess.run(
        ["sh", "-c", f'"$@" {words}', "sh", *PARSE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )


@each_case
def test_a_stream_that_is_not_there_is_told(
    words: str, code: int, message: str, tmp_path: Path
) -> None:
    ended = shell(words, tmp_path)
    assert ended.returncode == code, ended.stderr
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


def test_a_reader_that_went_away_is_no_fault(tmp_path: Path) -> None:
    ended = shell("answer.txt --json | true; exit ${PIPESTATUS:-0}", tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_store_never_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(
        '{"case_id": "c", "model": "m", "output": "hello"}\n', "utf-8"
    )
    ended = subprocess.run(
        ["sh", "-c", '"$@" ingest log.jsonl --store a.db >&- 2>&-', "sh", *PARSE[:-1]],
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert ended.returncode in (0, 3)
    assert (tmp_path / "a.db").read_bytes().startswith(b"SQLite format 3\x00")
