"""`rjson.repair`: what is mended, by which rule, and what is refused because it would have to be
invented."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.cases.check import decode, eq
from tests.core_cases import SHIPPED, rows
from tests.tables import each_case
from toolparse_lab.arguments.rjson.damage import Refusal
from toolparse_lab.arguments.rjson.positions import apply_edits
from toolparse_lab.arguments.rjson.repair import read_damaged
from toolparse_lab.arguments.rjson.strict import depth, read_if_strict, read_sequence
from toolparse_lab.core.rules import RULES
from toolparse_lab.core.values import same, write_canonical


@pytest.mark.parametrize("case", rows("rjson_repair.jsonl"))
def test_repair(case: dict[str, Any]) -> None:
    found = tp.rjson.repair(case["text"])
    if "refuse" in case:
        assert not found.ok
        assert found.values == ()
        assert found.edits == ()
        assert [p.code for p in found.problems] == [case["refuse"]]
        assert found.value is None
        return
    assert found.ok, found.problems
    assert same(list(found.values), case["values"]), found.values
    assert sorted(e.rule for e in found.edits) == case["rules"]
    assert {e.rule for e in found.edits} <= RULES.keys(), "add it to core/rules.py"


@pytest.mark.parametrize(
    "case", [c for c in rows("rjson_repair.jsonl") if "refuse" not in c.values[0]]
)
def test_edits_make_strict_json(case: dict[str, Any]) -> None:
    """The edited text reads strictly to the same values, and repairing it again changes nothing."""
    found = tp.rjson.repair(case["text"])
    edited = apply_edits(case["text"], found.edits)
    assert same(read_sequence(edited), list(found.values))
    again = tp.rjson.repair(edited)
    assert again.edits == ()
    for a, b in zip(found.edits, found.edits[1:], strict=False):
        assert a.span.end <= b.span.start


CONTAINERS = [
    c
    for c in rows("rjson_repair.jsonl")
    if isinstance(c.values[0].get("values", [0])[0], (dict, list))
    and "missing opener" not in c.values[0]["title"]
]


@pytest.mark.parametrize("case", CONTAINERS)
def test_nothing_is_invented_when_the_text_is_cut(case: dict[str, Any]) -> None:
    """Where the text may be cut off, a piece of it gives whole values or a refusal, never half a
    value."""
    for cut in range(len(case["text"])):
        try:
            values, _ = read_damaged(
                case["text"][:cut], closed=False, numbers_end=False, prose=True, max_depth=9
            )
        except Refusal:
            continue
        assert same(values, case["values"][: len(values)]), (cut, values)


@pytest.mark.parametrize("case", rows("damaged_json.jsonl", SHIPPED))
def test_damaged_json(case: dict[str, Any]) -> None:
    found = tp.rjson.repair(case["text"])
    if case["refuse"]:
        assert not found.ok, found.values
    else:
        assert eq(decode(case["right"]), found.value), found


def test_value_is_none_unless_there_is_just_one() -> None:
    assert tp.rjson.repair("1 [2]").value is None
    assert tp.rjson.repair("[2]").value == [2]


def test_a_problem_says_where() -> None:
    (problem,) = tp.rjson.repair('{"a": "x').problems
    assert problem.span is not None
    assert problem.span.start == 6
    assert problem.stage == "repair"


def test_depth_is_a_problem_and_no_error() -> None:
    assert [p.code for p in tp.rjson.repair("[" * 100_000).problems] == ["decode.too-deep"]
    assert tp.rjson.repair("[" * 900 + "]" * 900).ok
    assert not tp.rjson.repair("[" * 6 + "]" * 6, max_depth=5).ok
    assert tp.rjson.repair("[" * 5 + "]" * 5, max_depth=5).ok


@pytest.mark.parametrize(
    ("text", "levels"), [("1", 0), ("[]", 1), ('{"a": [1]}', 2), ("[[], [[1]]]", 3)]
)
def test_depth_counts_levels(text: str, levels: int) -> None:
    values = read_if_strict(text, 1000)
    assert values is not None
    assert depth(values) == levels


def test_long_numbers_survive() -> None:
    digits = "7" * 5000
    value = tp.rjson.repair(f"{{'n': {digits}, 'f': 1.{digits}e5}}").value
    assert write_canonical(value) == f'{{"n":{digits},"f":1.{digits}e5}}'


@each_case
def test_what_may_be_closed(text: str, closed: bool, numbers_end: bool, code: str | None) -> None:
    if code is None:
        values, edits = read_damaged(
            text, closed=closed, numbers_end=numbers_end, prose=True, max_depth=9
        )
        assert len(values) == 1
        assert [e.rule for e in edits] == ["rjson.missing-bracket"]
        return
    with pytest.raises(Refusal) as caught:
        read_damaged(text, closed=closed, numbers_end=numbers_end, prose=True, max_depth=9)
    assert caught.value.code == code


def test_prose_is_dropped_only_where_allowed() -> None:
    with pytest.raises(Refusal):
        read_damaged("so: {}", closed=True, numbers_end=True, prose=False, max_depth=9)
    with pytest.raises(Refusal):
        read_damaged("{} so", closed=True, numbers_end=True, prose=False, max_depth=9)


def test_strict_text_is_read_as_json_loads_reads_it() -> None:
    text = '{"a": [1, -2.5, true, null, "\\u00e9\\n"], "b": {}}'
    found = tp.rjson.repair(text)
    assert found.value == json.loads(text)
    assert found.edits == ()
