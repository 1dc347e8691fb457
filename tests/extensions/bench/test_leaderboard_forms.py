"""The eight return formats of a leaderboard's study of prompt formats, and their relatives."""

from __future__ import annotations

import random
from typing import Any

import pytest

import toolparse_lab as tp
from tests.extensions.bench.leaderboard_forms import (
    FORMS,
    TOOLS,
    Answer,
    abstentions,
    answers,
    damaged,
)
from tests.growth import grows_linearly
from tests.tables import each_case


def runs_of(result: tp.ParseResult) -> list[tuple[str, Any]]:
    """Names and arguments of the calls that may be executed."""
    return [(call.name, call.arguments) for call in result.calls if call.valid]


@pytest.mark.parametrize("answer", list(answers(11, 12)), ids=lambda a: a.form)
def test_an_answer_is_read_by_name_and_by_auto_whole_and_in_pieces(answer: Answer) -> None:
    for name in (FORMS[answer.form], "auto"):
        result = tp.parse(answer.text, name, TOOLS)
        assert runs_of(result) == answer.calls
        assert len(result.calls) == len(answer.calls)
        for size in (1, 4):
            parser = tp.stream(name, TOOLS)
            for at in range(0, len(answer.text), size):
                parser.feed(answer.text[at : at + size])
            assert parser.close() == result


@pytest.mark.parametrize("answer", list(abstentions()), ids=lambda a: f"{a.form}: {a.text}")
def test_an_answer_that_calls_nothing_is_an_abstention(answer: Answer) -> None:
    assert tp.parse(answer.text, "auto", TOOLS).verdict == "none"


def test_one_damaged_sign_makes_no_other_call() -> None:
    rng = random.Random(12)
    for answer in answers(12, 20, plain=True):
        text = damaged(answer.text, rng)
        calls = runs_of(tp.parse(text, "auto", TOOLS))
        assert all(call in answer.calls for call in calls), text


@pytest.mark.parametrize("id", [*FORMS.values(), "function_call_xml", "function_call_xml_tag"])
def test_a_prompt_shows_the_form(id: str) -> None:
    protocol = tp.protocols()[id]
    opener = protocol.write_call("ping", "{}").partition("ping")[0]
    assert opener in protocol.format_tools(TOOLS)


@each_case
@pytest.mark.parametrize(
    "before", ["", '"[log_note(text=', '<functions><function name="log_note">']
)
def test_hostile_text_takes_linear_time(before: str, piece: str) -> None:
    assert grows_linearly(lambda n: tp.parse(before + piece * n, "auto", TOOLS), 100)
