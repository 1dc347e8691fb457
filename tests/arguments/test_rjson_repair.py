"""`rjson.repair`: what is mended, by which rule, and what is refused because it would have to be
invented."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.cases.check import decode, eq
from tests.core_cases import SHIPPED, rows
from tests.tables import asked_of, every_case
from tests.tools import tool_named
from toolparse_lab.arguments.rjson.nearest import nearest_readings
from toolparse_lab.arguments.rjson.positions import apply_edits
from toolparse_lab.arguments.rjson.repair import read_damaged
from toolparse_lab.arguments.rjson.strict import Refusal, depth, read_if_strict, read_sequence
from toolparse_lab.core.rules import RULES
from toolparse_lab.core.values import same, write_canonical


@asked_of("case", rows("rjson_repair.jsonl"))
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


@asked_of("case", [c for c in rows("rjson_repair.jsonl") if "refuse" not in c.values[0]])
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


@asked_of("case", CONTAINERS)
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


@asked_of("case", rows("damaged_json.jsonl", SHIPPED))
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


@asked_of(("text", "levels"), [("1", 0), ("[]", 1), ('{"a": [1]}', 2), ("[[], [[1]]]", 3)])
def test_depth_counts_levels(text: str, levels: int) -> None:
    values = read_if_strict(text, 1000)
    assert values is not None
    assert depth(values) == levels


def test_long_numbers_survive() -> None:
    digits = "7" * 5000
    value = tp.rjson.repair(f"{{'n': {digits}, 'f': 1.{digits}e5}}").value
    assert write_canonical(value) == f'{{"n":{digits},"f":1.{digits}e5}}'


@every_case
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


# An escaped quote that is damaged: read by the pairs of quotes in its string, or refused.


TOOLS = [tool_named("keep", required=["text"], text="string")]
MEANT = 'the "Gull" lay\nat pier (7)'


def calls_of(inner: str) -> tp.ToolCall:
    """Return the call whose text stands in JSON as `inner`."""
    body = '{"name": "keep", "arguments": {"text": "' + inner + '"}}'
    (call,) = tp.parse(f"<tool_call>{body}</tool_call>", "hermes", TOOLS).calls
    return call


@every_case
def test_a_quote_that_lacks_its_partner_is_put_right(inner: str) -> None:
    call = calls_of(inner)
    assert call.valid
    assert call.arguments == {"text": MEANT}
    assert len(call.edits) == 1


@every_case
def test_a_backslash_that_may_be_meant_stays(inner: str, text: str) -> None:
    assert calls_of(inner).arguments == {"text": text}


@every_case
def test_what_may_be_either_is_refused(inner: str) -> None:
    call = calls_of(inner)
    assert not call.readable
    assert "decode.ambiguous" in {problem.code for problem in call.problems}


def test_an_escaped_quote_lost_at_any_place_is_never_read_wrong() -> None:
    sound = json.dumps(MEANT)[1:-1]
    for at, character in enumerate(sound):
        if character == '"':
            call = calls_of(sound[:at] + sound[at + 1 :])
            assert not call.readable or call.arguments == {"text": MEANT}


# The nearest readings of damaged JSON text.


words = st.text("abc xyz0,", max_size=8)
scalars = words | st.integers(-9, 99) | st.booleans() | st.none()
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(words, trees, min_size=1, max_size=4)


@given(objects, st.integers(0), st.sampled_from(["delete", "double", "swap"]))
@settings(deadline=None)
def test_every_reading_is_what_its_edits_make(value: dict[str, Any], place: int, way: str) -> None:
    text = json.dumps(value)
    signs = [at for at, ch in enumerate(text) if ch in '{}[],:"']
    at = signs[place % len(signs)]
    middle = {"delete": "", "double": text[at] * 2, "swap": text[at + 1 : at + 2] + text[at]}[way]
    damaged = text[:at] + middle + text[at + 1 + (way == "swap") :]

    readings = nearest_readings(damaged, 3, 1000)
    costs = [reading.cost for reading in readings]
    assert costs == sorted(costs)
    meanings = [write_canonical(reading.values) for reading in readings]
    assert len(set(meanings)) == len(meanings)
    for reading in readings:
        starts = [edit.span.start for edit in reading.edits]
        assert starts == sorted(starts)
        edited = apply_edits(damaged, reading.edits)
        assert write_canonical(read_sequence(edited)) == write_canonical(reading.values)


def test_strict_text_has_itself_at_no_cost() -> None:
    (first, *_) = nearest_readings('{"a": [1, "b"]}', 3, 1000)
    assert (first.cost, first.values, first.edits) == (0, [{"a": [1, "b"]}], ())


def test_two_signs_cost_more_than_one() -> None:
    text = '{"a" 1, "b" 2}'
    assert nearest_readings(text, 3, 1000) == []
    assert [reading.values for reading in nearest_readings(text, 4, 1000)] == [[{"a": 1, "b": 2}]]


def test_a_text_too_long_for_all_its_readings_has_none() -> None:
    text = "[" + ", ".join(['{"a": 1}'] * 20_000)
    assert nearest_readings(text, 3, 1000) == []


def test_depth_is_bounded() -> None:
    readings = nearest_readings("[[[1]]", 3, 2)
    assert [reading.values for reading in readings] == [[[[1]]], [[1]]]


@asked_of(
    "text", ['{"a": "b}', '{"a": ["b]}', '{"a": ...}', '{"a": -}', "", '{"a": 15:30}', '{"a": 50%}']
)
def test_nothing_is_invented(text: str) -> None:
    assert nearest_readings(text, 3, 1000) == []
