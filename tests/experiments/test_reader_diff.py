"""Readers of every kind in a diff: protocols, and functions over the same answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.core.errors import BadOptions, UnknownProtocol
from toolparse_lab.entry.foreign.protocol import ForeignProtocol
from toolparse_lab.evals.parsers.outside import FunctionParser, parser_of, version_of

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
RIGHT = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
BROKEN = '<tool_call>{"name": "f", "arguments": {"a": 1,}}</tool_call>'
TARGET = [{"name": "f", "arguments": {"a": 1}}]
ROWS: list[dict[str, Any]] = [
    {"id": "right", "output": RIGHT, "target": TARGET},
    {"id": "broken", "output": BROKEN, "target": TARGET},
    {"id": "silent", "output": "No.", "target": []},
]


@pytest.fixture
def run(lab: tp.Lab) -> Any:
    rows = [{**row, "case_id": row["id"]} for row in ROWS]
    return lab.ingest(rows, tools=TOOLS, model="m", protocol="hermes")


def strict_json(text: str) -> list[Any]:
    body = text.partition("<tool_call>")[2].partition("</tool_call>")[0]
    return [json.loads(body)] if body else []


def test_a_function_against_a_protocol(lab: tp.Lab, run: Any) -> None:
    diff = lab.diff(strict_json, "hermes", answers=run)
    row = diff.frame.iloc[0]
    assert row["difference"] == pytest.approx(1 / 3)
    assert (row["reader_a"], row["reader_b"]) == ("strict_json", "hermes")
    assert row["version_b"] == tp.__version__
    assert row["version_a"]
    assert diff.flips["case_id"].tolist() == ["broken"]
    assert diff.a.startswith("strict_json ")
    assert any("read by" in note for note in diff.notes)
    flip = diff.flip(0)
    assert [trial.score and trial.score.success for trial in (flip.a, flip.b)] == [False, True]
    # Both read the same answer, so that a page shows the two readings side by side.
    assert "values differ" in flip._repr_html_()
    protocols = lab.diff("kimi_k2", "hermes", answers=run)
    assert len(protocols.flips)
    assert protocols._repr_html_().count("values differ") == len(protocols.flips)
    # A run on one side: the reader reads its answers.
    assert lab.diff(run, strict_json).frame["difference"].iloc[0] == pytest.approx(-1 / 3)
    # Names alone are runs, as ever; readers alone read the latest.
    assert lab.diff(strict_json, strict_json).frame["difference"].iloc[0] == 0
    assert lab.diff(None, "hermes", answers="latest").frame["difference"].iloc[0] == 0


def test_a_frame_is_read_too(lab: tp.Lab, run: Any) -> None:
    frame = run.frame(policies=("safe", "middleware"))
    assert set(frame["parse_version"]) == {tp.__version__}
    diff = lab.diff("hermes", strict_json, answers=frame)
    assert diff.frame["difference"].iloc[0] == pytest.approx(-1 / 3)
    again = lab.reparse(run, [parser_of(strict_json, version="7")], engine="serial", progress=False)
    assert again["parse_version"].tolist() == ["7"] * 3


def test_a_reader_that_fails_is_no_abstention(lab: tp.Lab, run: Any) -> None:
    def failing(text: str) -> Any:
        raise RuntimeError("no")

    trials = run.trials(protocol=parser_of(failing))
    assert not any(
        trial.score and trial.score.success for trial in trials if trial.case_id != "silent"
    )
    assert not (run.frame(protocol=parser_of(failing))["outcome"] == "abstained_wrongly").any()


def test_functions_of_every_signature() -> None:
    def with_tools(text: str, tools: Any) -> Any:
        return [{"name": tools[0]["name"], "arguments": {"a": 1}}]

    def with_option(text: str, strict: bool = True) -> Any:
        return {"name": "f", "arguments": {"a": int(strict)}}

    for function in (with_tools, with_option, lambda *texts: with_option(*texts)):
        assert tp.parse("x f", parser_of(function), TOOLS).calls[0].arguments_json == '{"a":1}'
    endless = parser_of(lambda text: ({"name": "f"} for _ in iter(int, 1)))
    assert len(tp.parse("f", endless, TOOLS).calls) <= 1000
    assert tp.parse("x", parser_of(json.loads), TOOLS).problems[0].code == "parser.failed"
    chosen = parser_of(strict_json)
    assert isinstance(chosen, ForeignProtocol)
    assert isinstance(chosen.subject, FunctionParser)
    assert version_of("hermes") == tp.__version__
    assert version_of("custom:x") is None


def test_names_protocols_and_what_is_none(lab: tp.Lab, run: Any) -> None:
    assert parser_of("hermes").id == "hermes"
    one = parser_of(parser_of(strict_json), name="again", version="3")
    assert (one.id, version_of(one)) == ("again", "3")
    for bad in ([], [1], None):
        with pytest.raises(BadOptions):
            parser_of(bad)
    with pytest.raises(UnknownProtocol):
        parser_of("no such protocol")
    with pytest.raises(BadOptions, match="two sides"):
        lab.diff(None, run)
    with pytest.raises(BadOptions, match="those of a run"):
        lab.diff("hermes", strict_json, answers=5)
