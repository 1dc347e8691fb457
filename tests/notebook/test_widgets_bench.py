"""The workbench without a browser: what it shows of each subject, its replies, what it gives to
keep."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools import tool_named

pytest.importorskip("anywidget", reason="the workbench needs the jupyter extra")

import toolparse_lab as tp
from tests.recorded import recorded_run
from tests.tables import asked_of, every_case
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.notebook.bench import Workbench, next_steps
from toolparse_lab.notebook.bench.view import MOST_STEPS, Setup, setups_of, timeline_of
from toolparse_lab.notebook.bench.workbench import _replayed

TOOL = tool_named("set_timer", required=["minutes"], minutes="integer", label="string")
CALL = (
    "<tool_call>{'name': 'set_timer', 'arguments': {'minutes': '5', 'label': 'tea',}}</tool_call>"
)
TEXT = f"Sure.\n{CALL} done"
# A bracket is missing, which may have stood in two places.
AMBIGUOUS = '<tool_call>{"name": "plot", "arguments": {"series": [[1, 2.5, [3, -4]]}}</tool_call>'
PLOT = tool_named("plot", series={"type": "array", "items": {"type": "array"}})


def bench_of(subject: Any = TEXT, *args: Any, **options: Any) -> tuple[Workbench, list[Any]]:
    """A workbench, and what it sends to its front end."""
    if isinstance(subject, str) and not args:
        args = ("hermes", [TOOL])
    bench = tp.workbench(subject, *args, **options)
    sent: list[Any] = []
    bench.send = sent.append
    return bench, sent


def answer(bench: Workbench, sent: list[Any], kind: str, **more: Any) -> dict[str, Any]:
    """The reply to one message."""
    bench._handle_custom_msg({"kind": kind, "seq": 7, **more}, [])
    reply: dict[str, Any] = sent[-1]
    assert reply["seq"] == 7
    return reply


@asked_of("number", [float("nan"), "\ud800", 10**400, None, {"a": 1}])
def test_the_number_of_a_message_comes_back_only_if_it_is_one(number: object) -> None:
    bench, _ = bench_of()
    reply = bench.reply({"kind": "values", "seq": number})
    assert reply["seq"] == 0


def words_of(html: str) -> str:
    """The text of HTML."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_it_begins_with_the_text_its_marks_and_its_stages() -> None:
    bench, _ = bench_of()
    html = bench._html
    assert re.findall(r'data-tab="(\w+)"', html) == [
        "raw", "repaired", "decoded", "coerced", "checked",
    ]  # fmt: skip
    words = words_of(html)
    assert "✓ Can be executed" in words
    assert "The call can be executed after 16 changes." in words
    assert 'C "5" → 5' in words
    marks = json.loads(unescape(re.search(r'data-marks="([^"]*)"', html)[1]))  # type: ignore[index]
    assert ["name", TEXT.index("set_timer"), TEXT.index("set_timer") + 9] in marks
    assert unescape(re.search(r'data-raw="([^"]*)"', html)[1]) == TEXT  # type: ignore[index]


@every_case
def test_a_value_that_the_model_did_not_write_is_never_offered(
    schema: Any, value: Any, offered: str | None
) -> None:
    tool = {"name": "stay", "parameters": {"type": "object", "properties": {"days": schema}}}
    call = json.dumps({"name": "stay", "arguments": {"days": value}})
    result = tp.parse(f"<tool_call>{call}</tool_call>", "hermes", [tool])
    steps = [s for s in next_steps(setups_of(result)[0], result) if "coerce" in s["values"]]
    assert [step["values"]["coerce"] for step in steps] == ([offered] if offered else [])
    for step in steps:
        assert "is left out" in step["words"] or "may" in step["words"], step["words"]


def test_a_change_is_read_and_there_for_the_next_cell() -> None:
    bench, sent = bench_of()
    raw = TEXT.replace("'5'", "7")
    reply = answer(bench, sent, "edit", raw=raw)
    assert "raw" not in reply["bench"], "who types has the text"
    answer(bench, sent, "values", values={"protocol": "auto", "coerce": "none"})
    assert (bench.setup.protocol.id, bench.setup.options.coerce) == ("auto", "none")
    assert bench.result.calls[0].arguments == {"minutes": 7, "label": "tea"}
    assert bench.setup.raw == raw
    answer(bench, sent, "undo")
    assert bench.setup.protocol.id == "hermes"
    assert answer(bench, sent, "undo")["bench"]["raw"] == TEXT
    assert answer(bench, sent, "undo")["bench"]["raw"] == TEXT


def test_marks_are_counted_as_a_browser_counts() -> None:
    bench, sent = bench_of("😀" + TEXT)
    marks = answer(bench, sent, "edit", raw="😀😀" + TEXT)["bench"]["marks"]
    (name,) = (mark for mark in marks if mark[0] == "name")
    text = ("😀😀" + TEXT).encode("utf-16-le")
    assert text[2 * name[1] : 2 * name[2]].decode("utf-16-le") == "set_timer"


@every_case
def test_what_cannot_be_is_told_and_nothing_is_lost(values: dict[str, Any], words: str) -> None:
    bench, sent = bench_of()
    result = bench.result
    assert words in answer(bench, sent, "values", values={"raw": "x", **values})["error"]
    assert bench.result is result
    assert bench.setup.raw == TEXT


def test_unknown_messages_are_answered_in_words() -> None:
    bench, sent = bench_of()
    bench._handle_custom_msg({"kind": "boom"}, [])
    bench._handle_custom_msg("text", [])
    assert [reply["status"] for reply in sent] == [400] * 2
    assert all(reply["error"] for reply in sent)


def test_all_protocols_are_compared() -> None:
    bench, sent = bench_of()
    words = words_of(answer(bench, sent, "compare")["html"])
    assert words.startswith("All readings that have executable calls agree. Read as")
    assert 'hermes A set_timer({"minutes":5,"label":"tea"})' in words
    assert "find no call in this text" in words


def test_two_readings_differ_value_by_value() -> None:
    bench, sent = bench_of()

    def beside(other: str) -> dict[str, Any]:
        return answer(bench, sent, "beside", values={"other": other})

    words = words_of(beside("coerce none")["html"])
    assert "as above ✓ after repair read as hermes → policy none ✗ does not fit" in words
    assert "1 of 16 values differ." in words
    assert '≠ call 0 /minutes "5" → 5 coerce.integer-from-string · lossless "5" call 0' in words
    assert "the same values" in beside("coerce safe")["html"]
    assert "did you mean" in beside("protocol hermse")["error"]
    assert bench.setup.options.coerce == "safe"


def test_a_page_that_is_loaded_again_can_go_back_to_what_was_recorded() -> None:
    bench, sent = bench_of()
    answer(bench, sent, "edit", raw="other")
    assert 'data-raw="other"' in bench.page()
    assert answer(bench, sent, "reset")["bench"]["raw"] == TEXT


@pytest.mark.parametrize("kind", ["pytest", "python"])
@pytest.mark.parametrize("raw", [TEXT, "one line", "bidi \u202e and \x1b[31m\nline"])
def test_snippets_run(kind: str, raw: str, capsys: pytest.CaptureFixture[str]) -> None:
    bench, sent = bench_of(raw, "hermes", [TOOL], coerce="lossy")
    html = answer(bench, sent, "keep", **{"as": kind})["html"]
    text = unescape(re.search(r'data-copy="([^"]*)"', html)[1])  # type: ignore[index]
    assert text.replace("\n", "").isprintable()
    names: dict[str, Any] = {}
    exec(compile(text, "snippet.py", "exec"), names)
    if kind == "pytest":
        names["test_answer"]()
    else:
        assert names["result"].raw == raw
        assert capsys.readouterr().out.strip()


def test_a_reading_can_be_taken() -> None:
    bench, sent = bench_of(AMBIGUOUS, "hermes", [PLOT])
    asks = re.findall(r'data-ask="([^"]*take[^"]*)"', bench._html)
    assert len(asks) > 1
    assert [call.valid for call in bench.result.calls] == [False]
    reply = answer(bench, sent, **json.loads(unescape(asks[0])))
    assert [call.valid for call in bench.result.calls] == [True]
    assert reply["bench"]["raw"] == bench.setup.raw
    assert answer(bench, sent, "reset")["bench"]["raw"] == AMBIGUOUS


@given(
    st.text(alphabet="<>{}[]\"':,ab 1\n/", max_size=60),
    st.integers(1, 70),
    st.sampled_from(["hermes", "auto", "morph_xml", "qwen3_coder_xml"]),
)
def test_a_replay_settles_the_whole_text(raw: str, size: int, protocol: str) -> None:
    text = f"{raw}{CALL}{raw}"
    (setup,) = setups_of(text, protocol, [TOOL])
    replay = timeline_of(setup, size)
    assert replay["ends"][-1] == replay["settled"][-1] == len(text)
    assert all(s <= e for s, e in zip(replay["settled"], replay["ends"], strict=True))
    covered = 0
    for events in replay["events"]:
        for kind, start, end, _ in events:
            if kind == "Retract":
                covered = start
            elif end > start:
                assert start == covered
                covered = end
    assert covered == len(text)
    # What is drawn of it is the text, each character once.
    for step in range(len(replay["ends"])):
        drawn = _replayed(text, replay, step)["pieces"]
        assert "".join(piece for _, _, piece in drawn) == text


def test_long_texts_come_in_larger_chunks() -> None:
    replay = timeline_of(setups_of("x" * 10_000, "hermes")[0], 1)
    assert len(replay["ends"]) <= MOST_STEPS + 1
    assert timeline_of(setups_of("", "hermes")[0])["ends"] == [0]


def test_a_recorded_stream_is_replayed_as_it_came() -> None:
    (setup,) = setups_of("abcdef", "hermes")
    recorded = Setup(setup.raw, setup.protocol, chunks=("ab", "cdef"))
    assert timeline_of(recorded)["ends"] == [2, 6, 6]
    assert timeline_of(recorded, 3)["ends"] == [3, 6, 6]
    # A changed text was never streamed.
    assert timeline_of(recorded.changed({"raw": "abc"}))["recorded"] is False


def test_the_failures_of_a_run_one_after_the_other(tmp_path: Path) -> None:
    run = recorded_run(tmp_path, every=4)
    bench, sent = bench_of(run)
    failures = [trial for trial in run.failures() if trial.result is not None]
    words = words_of(bench._html)
    assert f"Workbench · {failures[0].case_id}" in words
    assert f"1 of {len(failures)}" in words
    assert "≠" in words, "what was expected"
    assert "What was asked" in words
    assert f"Workbench · {failures[1].case_id}" in words_of(answer(bench, sent, "go", by=1)["html"])
    html = answer(bench, sent, "keep", **{"as": "curl"})["html"]
    assert html.count("$OPENAI_BASE_URL/chat/completions")
    assert "$OPENAI_API_KEY" in html
    assert f"{len(failures)} of" in words_of(answer(bench, sent, "go", by=-2)["html"])
    assert failures[0].debug().result == failures[0].result
    html = failures[0]._repr_html_()
    assert "expected" in html
    assert "toolparse-raw" in html


def test_a_text_has_no_request_to_repeat() -> None:
    bench, sent = bench_of()
    assert "no request is recorded" in answer(bench, sent, "keep", **{"as": "curl"})["error"]


@asked_of("subject", [3, None, [], [1]])
def test_other_subjects_are_refused(subject: Any) -> None:
    with pytest.raises(BadOptions):
        tp.workbench(subject)


def test_options_are_those_of_a_text() -> None:
    result = tp.parse(TEXT, "hermes")
    with pytest.raises(BadOptions, match="has been read already"):
        tp.workbench(result, coerce="none")
    assert tp.workbench(result).result == result


def test_a_page_from_disk_holds_its_text_safely(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script>\u2028<!-- " + CALL
    bench, _ = bench_of(hostile)
    page = bench.export_html(tmp_path / "bench.html").read_text("utf-8")
    for html in (page, bench._html):
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert(1)" in html
