"""The nearest readings of damaged JSON text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolparse_lab.arguments.rjson.nearest import nearest_readings
from toolparse_lab.arguments.rjson.positions import apply_edits
from toolparse_lab.arguments.rjson.strict import read_sequence
from toolparse_lab.core.values import write_canonical

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


@pytest.mark.parametrize(
    "text", ['{"a": "b}', '{"a": ["b]}', '{"a": ...}', '{"a": -}', "", '{"a": 15:30}', '{"a": 50%}']
)
def test_nothing_is_invented(text: str) -> None:
    assert nearest_readings(text, 3, 1000) == []
