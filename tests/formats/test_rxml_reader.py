"""The tolerant element reader: values, repairs, places, and its cost on hostile text."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from tests.core_cases import CORE, rows
from tests.growth import grows_linearly
from tests.tables import each_case
from toolparse_lab.arguments.rjson.damage import Refusal
from toolparse_lab.arguments.rjson.positions import apply_edits
from toolparse_lab.arguments.schema.view import view_of
from toolparse_lab.core.errors import UnwritableCall
from toolparse_lab.formats.rxml import ElementReader, write_element
from toolparse_lab.formats.rxml.element import unescape, unescape_offsets
from toolparse_lab.formats.rxml.reader import text_params, wrapper_name

SCHEMA = json.loads((CORE / "rxml_schema.json").read_text("utf-8"))


def reader(case: dict[str, Any], body: str | None = None) -> ElementReader:
    text = case["body"] if body is None else body
    return ElementReader(
        text, view_of(SCHEMA), repair=case.get("repair", True), closed=case.get("closed", True)
    )


@pytest.mark.parametrize("case", rows("rxml_reader.jsonl"))
def test_read(case: dict[str, Any]) -> None:
    r = reader(case)
    if "refuse" in case:
        with pytest.raises(Refusal) as caught:
            r.read()
        assert caught.value.code == case["refuse"]
        return
    assert r.read() == case["value"]
    assert sorted(e.rule for e in r.edits) == case["rules"]
    for path, text in case.get("texts", {}).items():
        start, end = r.places[path]
        assert case["body"][start:end] == text, path


@pytest.mark.parametrize("case", [c for c in rows("rxml_reader.jsonl") if c.values[0].get("rules")])
def test_the_edited_body_reads_strictly_to_the_same(case: dict[str, Any]) -> None:
    r = reader(case)
    value = r.read()
    again = ElementReader(
        apply_edits(case["body"], r.edits), view_of(SCHEMA), repair=False, closed=True
    )
    assert again.read() == value
    assert again.edits == []


@pytest.mark.parametrize("case", [c for c in rows("rxml_reader.jsonl") if "value" in c.values[0]])
def test_every_leaf_has_a_place(case: dict[str, Any]) -> None:
    from toolparse_lab.core.values import leaves

    r = reader(case)
    for path, _ in leaves(r.read()):
        start, end = r.places[path]
        assert 0 <= start <= end <= len(case["body"])


@each_case
def test_wrapper_name(body: str, name: str | None) -> None:
    assert wrapper_name(body, view_of(SCHEMA)) == name


@each_case
def test_read_wrapped(body: str, value: Any) -> None:
    r = ElementReader(body, view_of(SCHEMA), wrapper="p")
    assert r.read_wrapped() == value
    if value:
        start, end = r.places["/s"]
        assert body[start:end] == "x"


def test_text_params() -> None:
    assert text_params(view_of(SCHEMA)) == {"s", "t"}


@each_case
def test_unescape_and_its_offsets(raw: str, text: str) -> None:
    assert unescape(raw) == text
    offsets = unescape_offsets(raw)
    assert offsets is not None
    assert len(offsets) == len(text) + 1
    for i in range(len(text)):
        assert unescape(raw[offsets[i] : offsets[i + 1]]) == text[i]


def test_too_deep_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        reader({}, "<any>" * 300 + "</any>" * 300).read()
    assert caught.value.code == "decode.too-deep"


@each_case
def test_hostile_text_stays_linear(piece: str) -> None:

    def read(size: int) -> None:
        with contextlib.suppress(Refusal):
            reader({}, piece * (size // len(piece))).read()

    assert grows_linearly(read, 20_000)


def test_distinct_unclosed_elements_stay_linear() -> None:
    def read(count: int) -> None:
        with pytest.raises(Refusal):
            reader({}, "".join(f"<x{i}>" for i in range(count))).read()

    assert grows_linearly(read, 2_000)


@each_case
def test_write_element(name: str, value: Any, text: str) -> None:
    assert write_element(name, value) == text


@pytest.mark.parametrize("name", ["a b", "", "<", "a/b", "a&b", "x\n"])
def test_a_name_that_is_no_element_name_is_refused(name: str) -> None:
    with pytest.raises(UnwritableCall):
        write_element("f", {name: 1})
