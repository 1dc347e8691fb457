"""Debugging output: levels, styles, tags, and the summary that is handed over instead."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

import toolparse_lab as tp
from tests.middleware.test_transform import HERMES, TOOLS
from tests.tables import each_case
from toolparse_lab.middleware import debug

CALL = '<tool_call>{"name":"get_loc","arguments":{}}</tool_call>'
TURN = HERMES.transform_params({"messages": [], "tools": TOOLS})
FORCED = HERMES.transform_params({"messages": [], "tools": TOOLS, "tool_choice": "required"})
SUMMARY = {
    "original_text": f"{CALL}\n\n{CALL}",
    "tool_calls": '[{"toolName":"get_loc","input":"{}"},{"toolName":"get_loc","input":"{}"}]',
}


@each_case
def test_levels(value: str | None, level: str) -> None:
    assert debug.level_of(value) == level


@each_case
def test_styles(value: str | None, style: str) -> None:
    assert debug.style_of(value) == style


@pytest.mark.parametrize(
    ("style", "code"), [("bg", 42), ("inverse", 7), ("underline", 4), ("bold", 1)]
)
def test_each_line_is_highlighted(style: Any, code: int) -> None:
    origin, summary = debug.render_summary("a\r\n\nb", [1], style)
    assert (
        origin == f"\x1b[90m[debug:mw:origin]\x1b[0m \n\x1b[{code}ma\x1b[0m\n\n\x1b[{code}mb\x1b[0m"
    )
    assert (
        summary == "\x1b[90m[debug:mw:summary]\x1b[0m \n\x1b[44m[\x1b[0m\n\x1b[44m  "
        "1\x1b[0m\n\x1b[44m]\x1b[0m"
    )
    assert debug.render_summary("", []) == []


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "toolparse_lab.middleware"]


def tags(lines: list[str]) -> list[str]:
    return [line.split("]", 1)[0].rsplit(":", 1)[1] for line in lines]


def run_both(turn: Any, text: str, summary: dict[str, str] | None = None) -> None:
    HERMES.wrap_generate(turn, text, debug_summary=summary)
    stream = HERMES.wrap_stream(turn, debug_summary=summary)
    stream.feed(text[:5])
    stream.feed(text[5:])
    stream.close("stop")


@pytest.mark.parametrize(
    ("level", "turn", "text", "expected"),
    [
        ("off", TURN, CALL, []),
        ("stream", TURN, CALL, ["raw", "out", "raw", "raw", "out"]),
        ("parse", TURN, CALL, ["origin", "summary"] * 2),
        ("parse", TURN, "no call", []),
        ("parse", TURN, "<tool_call>{</tool_call>", ["origin"] * 2),
        ("parse", FORCED, CALL[11:-12], ["raw", "origin", "summary", "origin", "summary"]),
        ("stream", FORCED, CALL[11:-12], ["raw", "out", "raw", "raw", "out"]),
    ],
)
def test_what_is_logged(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    level: str,
    turn: Any,
    text: str,
    expected: list[str],
) -> None:
    monkeypatch.setenv("DEBUG_PARSER_MW", level)
    run_both(turn, text)
    assert tags(said(caplog)) == expected


def test_raw_and_out_lines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DEBUG_PARSER_MW", "1")
    HERMES.wrap_generate(TURN, "hi")
    raw, out = said(caplog)
    assert raw == "\x1b[90m[debug:mw:raw]\x1b[0m \x1b[33m\nhi\x1b[0m"
    assert out.startswith('\x1b[90m[debug:mw:out]\x1b[0m \x1b[36m\n{\n  "role": "assistant",')


def test_model_text_sends_no_escape_sequence(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    evil = "\x1b[2J\x07"
    for level in ("stream", "parse"):
        monkeypatch.setenv("DEBUG_PARSER_MW", level)
        run_both(TURN, f"{evil}<tool_call>{evil}</tool_call>")
    lines = said(caplog)
    assert lines
    for line in lines:
        assert "\x1b[2J" not in line
        assert "\x07" not in line


def test_the_style_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DEBUG_PARSER_MW", "parse")
    monkeypatch.setenv("DEBUG_PARSER_MW_STYLE", "ul")
    HERMES.wrap_generate(TURN, CALL)
    assert f"\x1b[4m{CALL}\x1b[0m" in said(caplog)[0]


def test_the_summary_is_handed_over_instead(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DEBUG_PARSER_MW", "parse")
    text = f"{CALL}\n{CALL}"
    whole: dict[str, str] = {}
    HERMES.wrap_generate(TURN, text, debug_summary=whole)
    pieces: dict[str, str] = {}
    stream = HERMES.wrap_stream(TURN, debug_summary=pieces)
    stream.feed(text)
    stream.close("stop")
    assert whole == pieces == SUMMARY
    assert json.loads(whole["tool_calls"])[0]["toolName"] == "get_loc"
    forced: dict[str, str] = {}
    HERMES.wrap_generate(FORCED, CALL[11:-12], debug_summary=forced)
    assert forced == {
        "original_text": CALL[11:-12],
        "tool_calls": '[{"toolName":"get_loc","input":"{}"}]',
    }
    assert said(caplog) == []


def test_it_goes_to_stderr_where_no_handler_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEBUG_PARSER_MW", "parse")
    logger = logging.getLogger("toolparse_lab.middleware")
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "handlers", [])
    tp.hermes_tool_middleware.wrap_generate(TURN, CALL)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("[debug:mw:origin]") == 1
