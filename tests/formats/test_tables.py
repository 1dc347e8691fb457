"""The tables of formats: ids in the registry, and what holds for each row."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import EXHAUSTIVE, check_all
from tests.parser.test_texts import TOOLS as TEXT_TOOLS
from tests.tables import asked_of, each_case
from toolparse_lab.formats import registry


def test_each_id_and_alias_names_one_protocol() -> None:
    names = [name for p in tp.protocols().values() for name in {p.id, *p.aliases}]
    assert len(names) == len(set(names))


TOOLS: list[dict[str, Any]] = TEXT_TOOLS["tide"]
NUMBERS = TEXT_TOOLS["numbers"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("lookup_tide", {"port": "Bergen é 港", "days": 3}),
    ("save_log", {"text": 'it\'s "high" at\n02:14, <b>&amp;</b>', "urgent": False}),
    ("ping", {}),
]
ROWS = [id for module in registry.TABLES for id in registry.table(module)]
_SPECIAL = re.compile(r"<\|[^<>|]*\|>|<｜[^<>｜]*｜>|<\|[a-z_]+>|<[a-z_]+\|>")


def calls_of(result: tp.ParseResult) -> list[tuple[str, dict[str, Any]]]:
    """Names and arguments of the calls that may be executed."""
    return [(c.name, c.arguments) for c in result.calls if c.ok]


def written(protocol: str) -> str:
    """The calls of one answer, as the format writes them."""
    writer = tp.protocols()[protocol]
    return writer.join_calls([writer.write_call(n, json.dumps(a)) for n, a in CALLS])


@pytest.mark.parametrize("protocol", ROWS)
def test_several_calls_with_text_around_are_read_under_the_name_and_by_auto(protocol: str) -> None:
    text = written(protocol)
    if len(calls_of(tp.parse(text, protocol, TOOLS))) == 1:
        pytest.skip("a format of one call an answer")
    assert calls_of(tp.parse(text, protocol, TOOLS)) == CALLS
    assert calls_of(tp.parse(text, "auto", TOOLS)) == CALLS
    if protocol == "openai_strict":
        pytest.skip("a message holds the text around its calls itself")
    around = check_all(f"Let me see.\n{text}\nDone.", protocol, TOOLS)
    assert calls_of(around) == CALLS
    assert around.text.split() == ["Let", "me", "see.", "Done."]


@pytest.mark.parametrize("protocol", ROWS)
def test_a_text_that_ends_early_yields_no_other_call(protocol: str) -> None:
    text = written(protocol)
    step = 1 if EXHAUSTIVE else 41
    for end in range(len(text) % step, len(text), step):
        for name in (protocol, "auto"):
            calls = calls_of(tp.parse(text[:end], name, TOOLS))
            assert calls == CALLS[: len(calls)], text[:end]


@asked_of("protocol", ROWS)
def test_without_special_tokens_there_are_the_same_calls_or_fewer(protocol: str) -> None:
    text = _SPECIAL.sub("", written(protocol))
    for name in (protocol, "auto"):
        for call in calls_of(tp.parse(text, name, TOOLS)):
            assert call in CALLS, text


@each_case
def test_a_text_without_its_quote_is_refused_where_it_may_end_elsewhere(body: str) -> None:
    tools = [{"name": "say"}, {"name": "mark"}]
    result = check_all(f"<|tool_call>call:{body}", "gemma4", tools)
    assert not any(call.ok for call in result.calls)


@each_case
def test_calls_of_a_message_keep_their_arguments(call: str, arguments: list[Any]) -> None:
    for protocol in ("openai_json", "auto"):
        result = check_all(f'{{"content": "", "tool_calls": [{call}]}}', protocol, NUMBERS)
        assert [call.arguments for call in result.calls if call.valid] == arguments
        assert result.calls
