"""What the command line reads: files, standard input, pasted text; what it says of guesses; and the
exit code of `parse`."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tables import asked_of, each_case, every_case
from toolparse_lab.cli import main
from toolparse_lab.cli.console import read_text, read_tools
from toolparse_lab.core.errors import BadToolSpec, UnreadableInput

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


def call(body: str = '{"name": "f", "arguments": {"a": 1}}') -> str:
    return f"<tool_call>{body}</tool_call>"


@asked_of(
    ("content", "text", "notice"),
    [
        ("déjà 💥".encode(), "déjà 💥", ""),
        ("déjà".encode("latin-1"), "déjà", "guessed and read as windows-1252"),
        ("“a” – b".encode("cp1252"), "“a” – b", "guessed and read as windows-1252"),
        ("a ü".encode("utf-16"), "a ü", "guessed and read as utf-16"),
        # UTF-8 that was cut inside a character, or damaged, is no other encoding.
        ("a dé".encode()[:-1], "a d\udcc3", "such bytes are kept"),
        ("é".encode() + b" \xff", "é \udcff", "such bytes are kept"),
        (b"\x00\xff\x01", "\x00\udcff\x01", "such bytes are kept"),
    ],
    ids=["utf-8", "latin", "quotes", "utf-16", "cut", "damaged", "binary"],
)
def test_a_guessed_encoding_is_told(
    content: bytes, text: str, notice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answer.txt"
    path.write_bytes(content)
    assert read_text(str(path)) == text
    message = capsys.readouterr().err
    assert (notice in message) if notice else message == ""


@asked_of(
    "text",
    [call(), '{"name": "f"}', '[{"name": "f"}]', "f(a=1)", "two\nlines", '  [{"name": "f"}]'],
)
def test_what_looks_like_an_answer_may_be_pasted(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_text(text) == text
    assert "read as the text itself" in capsys.readouterr().err


def test_a_file_goes_before_pasted_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("<a>").write_text("inside", "utf-8")
    assert read_text("<a>") == "inside"
    assert capsys.readouterr().err == ""


@asked_of("name", ["no-such-file", "a\x00b", "x" * 5000, "."])
def test_what_is_no_file_is_said(name: str) -> None:
    with pytest.raises(UnreadableInput):
        read_text(name)


def test_tools_may_be_pasted_too() -> None:
    assert read_tools(json.dumps(TOOLS)) == TOOLS
    with pytest.raises(BadToolSpec, match="no JSON"):
        read_tools("{")
    with pytest.raises(BadToolSpec, match="nested"):
        read_tools("[" * 100_000)


@every_case
def test_parse_exits_0_only_where_every_call_may_be_executed(
    text: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(text, "utf-8")
    words = ["parse", str(path), "--protocol", "hermes", "--tools", json.dumps(TOOLS)]
    assert main(words) == code, capsys.readouterr().out


def test_standard_input_is_one_thing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(call().encode())))
    assert main(["parse", "-", "--tools", "-"]) == 2
    assert "not both" in capsys.readouterr().err
    assert main(["parse", "-"]) == 0


# Standard streams that are closed, full, or without a reader, in processes of their own.


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
