"""The tables of formats: ids in the registry, and what holds for each row."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.laws import check_all
from tests.tools import tool_named
from toolparse_lab.formats import registry


def test_each_id_and_alias_names_one_protocol() -> None:
    names = [name for p in tp.protocols().values() for name in {p.id, *p.aliases}]
    assert len(names) == len(set(names))


TOOLS: list[dict[str, Any]] = [
    tool_named("lookup_tide", required=["port"], port="string", days="integer"),
    tool_named("save_log", required=["text"], text="string", urgent="boolean"),
    {"name": "ping", "parameters": {"type": "object", "properties": {}}},
]
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
    for end in range(0, len(text), 3):
        for name in (protocol, "auto"):
            calls = calls_of(tp.parse(text[:end], name, TOOLS))
            assert calls == CALLS[: len(calls)], text[:end]


@pytest.mark.parametrize("protocol", ROWS)
def test_without_special_tokens_there_are_the_same_calls_or_fewer(protocol: str) -> None:
    text = _SPECIAL.sub("", written(protocol))
    for name in (protocol, "auto"):
        for call in calls_of(tp.parse(text, name, TOOLS)):
            assert call in CALLS, text


@pytest.mark.parametrize("case", rows("tag_rows.jsonl"))
def test_a_text_of_a_row_holds_these_calls(case: dict[str, Any]) -> None:
    for name in (case["format"], "auto"):
        result = check_all(case["raw"], name, TOOLS)
        calls = [{"name": c.name, "arguments": c.arguments} for c in result.calls if c.ok]
        assert calls == case["calls"], name
