"""Readers by name, on small trees with the module names of vLLM: the process, its stand-ins, its
limits, and what differs between two of them.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.outside_tree import NEW, OLD, add_by_hand
from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions, SetupError, ToolparseError, UnknownName
from toolparse_lab.entry.foreign.protocol import ForeignProtocol
from toolparse_lab.extensions.readers import process, reader, released, stream_diff
from toolparse_lab.extensions.readers.worker.standins import StandInTokenizer

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
RAW = 'Hi [f {"a": 1}]'
OLD_NAME, NEW_NAME = "vllm==1.0:brackets", "vllm==2.0:brackets"
ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    call = {"name": "f", "arguments": json.dumps({"a": len(asked["raw"])})}
    said = {"content": "", "calls": [call]}
    stream = {"content": "", "calls": []} if "chunks" in asked else None
    print(json.dumps({"id": asked["id"], "batch": said, "stream": stream, "error": None}), flush=True)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    add_by_hand(folder, "1.0", OLD)
    add_by_hand(folder, "2.0", NEW)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLPARSE_CACHE", str(folder))
        # The trees need no package, so that this interpreter will do.
        patch.setattr(released, "python_of_readers", lambda: sys.executable)
        yield folder
    for parser in process._parsers.values():
        parser.close()


def read_by(name: str, **options: Any) -> ForeignProtocol:
    chosen = reader(name, **options)
    assert isinstance(chosen, ForeignProtocol)
    return chosen


def calls_of(result: Any) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments if call.readable else None) for call in result.calls]


def failure(result: Any) -> str:
    (problem,) = [p for p in result.problems if p.code == "parser.failed"]
    return str(problem.message)


@pytest.mark.parametrize("name", [OLD_NAME, NEW_NAME])
def test_a_reader_has_name_version_parse_and_stream(cache: Path, name: str) -> None:
    one = read_by(name)
    assert (one.name, one.version) == (name, name[6:9])
    for result in (one.parse(RAW, TOOLS), one.stream([RAW[:3], RAW[3:6], RAW[6:], "\n"], TOOLS)):
        assert calls_of(result) == [("f", {"a": 1})]
        assert result.text.strip() == "Hi"
    assert calls_of(tp.parse(RAW, one, TOOLS)) == [("f", {"a": 1})]


def test_a_name_without_a_version_is_the_newest(cache: Path) -> None:
    assert read_by("vllm:brackets").name == NEW_NAME


def test_one_process_reads_all_texts(cache: Path) -> None:
    first, second = read_by(OLD_NAME), read_by(OLD_NAME)
    assert first == second
    assert pickle.loads(pickle.dumps(first)) == first
    first.parse(RAW, TOOLS)
    running = first.subject._running
    second.parse("again", TOOLS)
    assert second.subject._running is running


def test_the_server_ends_a_stream(cache: Path) -> None:
    # The last step of vLLM 0.10 replaces the last delta, with what the deltas before did not send:
    # a call that came in the last one has lost its name.
    one = read_by(OLD_NAME)
    assert one.stream([RAW[:-1], RAW[-1:]], TOOLS).calls[0].name == ""
    assert calls_of(one.stream([RAW, " "], TOOLS)) == [("f", {"a": 1})]


@each_case
def test_what_goes_wrong_is_one_outcome(cache: Path, word: str, why: str, tmp_path: Path) -> None:
    one = read_by(NEW_NAME, timeout=0.5)
    assert why in failure(one.parse(word, TOOLS))
    assert why in failure(one.stream([word], TOOLS))
    # Nothing else is lost: the texts before and after are read.
    rows = [{"raw": raw, "case_id": raw, "target": []} for raw in (RAW, word, "no call")]
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows, tools=TOOLS, protocol="hermes")
        frame = lab.reparse(run, [one], engine="serial", progress=False)
        assert frame["outcome"].tolist() == ["wrong_call", "reader_error", "abstained_correctly"]
        assert set(frame["parse_version"]) == {"2.0"}


def test_the_process_sees_an_empty_folder_and_no_secrets(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-1")
    one = read_by(NEW_NAME, timeout=9)
    said = failure(one.parse("FOLDER", TOOLS))
    assert "[]" in said
    assert "MY_API_KEY" not in said
    assert calls_of(one.parse("PRINT " + RAW, TOOLS)) == [("f", {"a": 1})]


def test_a_child_after_a_fork_starts_its_own(cache: Path) -> None:
    one = read_by(NEW_NAME)
    one.parse(RAW, TOOLS)
    running = one.subject._running
    running.owner = -1  # as a child sees it
    assert calls_of(one.parse(RAW, TOOLS)) == [("f", {"a": 1})]
    assert one.subject._running is not running
    running.owner = os.getpid()
    running.end()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("vllm==3.0:brackets", SetupError, "toolparse reader add vllm==3.0"),
        ("sglang==0.5.23:qwen25", SetupError, "toolparse reader add sglang==0.5.23"),
        ("sglang:qwen25", SetupError, "toolparse reader add sglang==VERSION"),
        ("vllm==1.0:bracket", UnknownName, "did you mean brackets"),
        ("tgi==1.0:x", UnknownName, "PACKAGE==VERSION:PARSER"),
        ("vllm==1.0:", UnknownName, "PACKAGE==VERSION:PARSER"),
        ("hf==9:hermes", SetupError, "toolparse reader add transformers==9"),
    ],
)
def test_what_was_not_added_says_how(
    cache: Path, name: str, kind: type[ToolparseError], words: str
) -> None:
    with pytest.raises(kind) as error:
        reader(name)
    assert words in str(error.value)


def test_an_interpreter_without_the_package(cache: Path, tmp_path: Path) -> None:
    for python in (sys.executable, tmp_path / "none"):
        with pytest.raises(SetupError, match="not installed for this interpreter"):
            reader("vllm==1.0:brackets", python=python)


def test_an_interpreter_with_the_package(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = str(cache / "readers" / "vllm-2.0")
    monkeypatch.setattr(released, "installed_version", lambda python, package: ("2.0", tree))
    one = read_by("vllm:brackets", python=sys.executable)
    assert calls_of(one.parse(RAW, TOOLS)) == [("f", {"a": 1})]
    with pytest.raises(SetupError, match="another version"):
        reader("vllm==1.0:brackets", python=sys.executable)


def test_a_program_that_speaks_the_lines(tmp_path: Path) -> None:
    script = tmp_path / "echo.py"
    script.write_text(ECHO, "utf-8")
    one = reader(command=[sys.executable, script], name="mine", version="3")
    assert isinstance(one, ForeignProtocol)
    assert (one.name, one.version) == ("mine", "3")
    assert calls_of(one.parse("f four", TOOLS)) == [("f", {"a": 6})]
    # A text that fills the pipe, and characters that UTF-8 has not.
    assert calls_of(one.parse("f" + "\ud800" * 200_000, TOOLS)) == [("f", {"a": 200_001})]
    assert calls_of(one.stream(["f ", "x"], TOOLS)) == []


@each_case
def test_a_program_that_does_not(script: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "START_SECONDS", 1.0)
    if "input()[:8]" in script:
        script = "import json; print(json.dumps({'id': json.loads(input())['id']}))"
    one = reader(command=[sys.executable, "-c", script], timeout=1)
    assert why in failure(one.parse("x"))  # type: ignore[union-attr]
    assert isinstance(one, ForeignProtocol)
    one.subject.close()


def test_options_that_do_not_go_together(cache: Path) -> None:
    wrong: tuple[dict[str, Any], ...] = (
        {"x": "hermes", "python": "python"},
        {"x": "hermes", "template": {}},
        {"x": "hermes", "command": ["cat"]},
        {"command": []},
        {"x": OLD_NAME, "timeout": 0},
    )
    for options in wrong:
        with pytest.raises(BadOptions):
            reader(**options)
    with pytest.raises(SetupError, match="cannot be started"):
        tp.parse("x", reader(command=["/no/such/program"]))


def test_readers_beside_ours(cache: Path) -> None:
    text = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    compared = tp.compare(text + RAW, TOOLS, ["hermes"], also=[reader(OLD_NAME), reader(NEW_NAME)])
    assert [r.name for r in compared.readings] == ["hermes", OLD_NAME, NEW_NAME]
    assert {r.agrees for r in compared.readings} == {"A"}
    failed = tp.compare("RAISE", TOOLS, ["hermes"], also={"mine": reader(NEW_NAME)})["mine"]
    assert "no such luck" in str(failed.failure)


def test_a_diff_says_batch_and_stream_apart(cache: Path, tmp_path: Path) -> None:
    target = [{"name": "f", "arguments": {"a": 1}}]
    rows = [
        {"raw": RAW, "case_id": "call", "target": target},
        {"raw": "no call", "case_id": "none", "target": []},
        {"raw": "RAISE", "case_id": "raises", "target": []},
        {
            "case_id": "recorded",
            "target": target,
            "response": [
                {"choices": [{"delta": {"content": "Hi "}}]},
                {"choices": [{"delta": {"content": RAW[3:]}, "finish_reason": "stop"}]},
            ],
        },
    ]
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows, tools=TOOLS, protocol="hermes")
        diff = stream_diff(OLD_NAME, NEW_NAME, run)
        frame: Any = diff.frame.set_index("case_id")
        assert frame["batch"].to_dict() == {
            "call": "same", "none": "same", "raises": "reader_error", "recorded": "same",
        }  # fmt: skip
        assert frame.loc["call", ["chunking", "stream", "stream_evidence"]].tolist() == [
            "4 characters", "mended", "possible",
        ]  # fmt: skip
        assert frame.loc["recorded", ["chunking", "stream", "stream_evidence"]].tolist() == [
            "recorded", "mended", "found",
        ]  # fmt: skip
        assert frame["stream_differs_a"].sum() == 2
        assert not frame["stream_differs_b"].any()
        assert "no such luck" in frame.loc["raises", "error_a"]
        assert "2 mended" in str(diff)
        assert "possible" in str(diff)
        assert "<table" in diff._repr_html_()
        assert len(diff.changed) == 3

        whole = stream_diff(OLD_NAME, NEW_NAME, run, chunks="all").frame
        assert set(whole["chunking"]) == {"all"}
        assert whole["stream_differs_b"].sum() == 2
        # Ours, and a function, which has no stream; a frame has no chunks.
        ours = stream_diff("hermes", lambda text: [], run.frame(), chunks=7)
        assert set(ours.frame["chunking"]) == {"7 characters"}
        assert set(ours.frame["stream"]) == {"no stream"}
        assert stream_diff("hermes", "hermes", run).count("stream", "same") == 4
        # The lab's diff takes them, too.
        flips = lab.diff(reader(OLD_NAME), "hermes", answers=run)
        assert flips.frame["version_a"].tolist() == ["1.0"]
        bad: Any
        for bad in (0, True, "some", -4):
            with pytest.raises(BadOptions, match="chunks"):
                stream_diff("hermes", "hermes", run, chunks=bad)
        with pytest.raises(BadOptions, match="recorded answers"):
            stream_diff("hermes", "hermes", [RAW])


@given(st.lists(st.text("[]<call>ab", max_size=9)))
def test_no_chunk_ends_in_a_marker(chunks: list[str]) -> None:
    tokenizer = StandInTokenizer()
    marker = tokenizer.get_vocab()["<call>"]
    tokenizer.end_of_set_up()
    whole = tokenizer.whole_markers(chunks)
    text = "".join(chunks)
    assert "".join(whole) == text
    assert all(whole)
    ids = [id for chunk in whole for id in tokenizer.encode(chunk)]
    assert tokenizer.decode(ids) == text
    assert ids.count(marker) == text.count("<call>")
