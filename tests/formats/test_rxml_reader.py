"""The tolerant element reader: values, repairs, places, and its cost on hostile text."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core_cases import CORE, rows
from tests.growth import grows_linearly
from tests.laws import examples
from tests.tables import asked_of, each_case
from toolparse_lab.arguments.rjson.positions import apply_edits
from toolparse_lab.arguments.rjson.strict import Refusal
from toolparse_lab.arguments.schema.view import view_of
from toolparse_lab.core.errors import UnwritableCall
from toolparse_lab.formats.rxml import ElementReader, write_element
from toolparse_lab.formats.rxml.element import unescape, unescape_offsets
from toolparse_lab.formats.rxml.fast import read_flat
from toolparse_lab.formats.rxml.reader import TEXT_KEY, text_params, wrapper_name

SCHEMA = json.loads((CORE / "rxml_schema.json").read_text("utf-8"))


def reader(case: dict[str, Any], body: str | None = None) -> ElementReader:
    text = case["body"] if body is None else body
    return ElementReader(
        text, view_of(SCHEMA), repair=case.get("repair", True), closed=case.get("closed", True)
    )


@asked_of("case", rows("rxml_reader.jsonl"))
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


@asked_of("case", [c for c in rows("rxml_reader.jsonl") if "value" in c.values[0]])
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


# The reader of flat bodies gives what the tolerant reader gives, or leaves the body to it.


MEMBERS: dict[str, Any] = {
    "s": {"type": "string"},
    "s2": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "e": {"type": "string", "enum": ["a", "b"]},
    "n": {"type": "integer"},
    "z": {"type": ["number", "null"]},
    "u": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "b": {"type": "boolean"},
    "any": {},
    "r": {"$ref": "#/$defs/text"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "list": {"type": "array", "items": {"type": "integer"}},
    "bare": {"type": "array"},
    "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
    "maybe": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    "o": {"type": "object", "properties": {"s": {"type": "string"}, "k": {"type": "number"}}},
    "os": {"type": "array", "items": {"type": "object", "properties": {"s": {"type": "string"}}}},
    "item": {"type": "string"},
    "#text": {"type": "string"},
    "a/b~c": {"type": "string"},
    "é": {"type": "string"},
    "-x": {"type": "string"},
}
SCHEMAS: list[Any] = [
    {"type": "object", "properties": MEMBERS, "$defs": {"text": {"type": "string"}}},
    {"properties": MEMBERS, "required": ["s"], "additionalProperties": {"type": "string"}},
    {"anyOf": [{"type": "object", "properties": MEMBERS}, {"type": "null"}]},
    {"type": "array", "items": {"type": "string"}, "properties": MEMBERS},
    {"type": "string", "items": {"type": "integer"}, "properties": MEMBERS},
    {"type": "object"},
    {},
]
VIEWS = [view_of(s) for s in SCHEMAS]
NAMES = [*MEMBERS, "unknown", "script", "br", "0", "S", "s\u00a0"]
WORDS = [
    "", " ", "\n", "\t", "\r\n", "\u00a0", "\ufeff", "\x1c", "\x85", "x", "a b", "1", "007", "true",
    "null", "[1, 2]",
    '["a"]', '{"k": 1}', "a\nb", "&lt;", "&amp;lt;", "&#65;", "&#0;", "&", "&bad;", ">", "]]>", "-->", "\"", "'", "=",
    "/", "\x00", "\ud83d", "😀",
]  # fmt: skip
MARKUP = [
    "<", "</", "</ ", "<s>", "</s>", "</s >", "< s>", "<s/>", "<s a='1'>", "<n>", "</n>",
    "<item>x</item>", "<o>", "</o>", "<![CDATA[", "]]>", "<!-- c -->", "<!--", "<?x?>",
    "<!DOCTYPE x>", "<b>b</b>",
]  # fmt: skip


def element(name: str, inner: list[str]) -> str:
    return f"<{name}>{''.join(inner)}</{name}>"


FLAT = st.builds(
    element,
    st.sampled_from([*NAMES, "texts", "list"]),
    st.lists(st.sampled_from(WORDS), max_size=3),
)
GAP = st.sampled_from(["", "", "\n", "  ", "\r\n\t", "\u00a0"])
CLEAN = st.lists(GAP | FLAT, max_size=9)
ROUGH = st.lists(FLAT | st.sampled_from(MARKUP) | st.sampled_from(WORDS), max_size=9)


def outcome(body: str, view: Any, repair: bool) -> tuple[Any, ...]:
    reader = ElementReader(body, view, repair=repair)
    value = reader.read()
    return list(value.items()), reader.places, reader.edits


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(500), suppress_health_check=list(HealthCheck))
@given((CLEAN | ROUGH).map("".join), st.sampled_from(VIEWS), st.booleans())
def test_as_the_tolerant_reader(body: str, view: Any, repair: bool) -> None:
    flat = read_flat(body, view, TEXT_KEY)
    if flat is None:
        return
    assert wrapper_name(body, view) is None
    assert list(flat.value) != [TEXT_KEY]
    assert outcome(body, view, repair) == (list(flat.value.items()), flat.places(), [])


def test_a_list_that_repeats_its_element_is_flat() -> None:
    body = "<texts>a</texts><n>1</n>\n<texts> b</texts><list> 1 </list><list>2</list><texts>&lt;</texts>"
    flat = read_flat(body, VIEWS[0], TEXT_KEY)
    assert flat is not None
    assert flat.value == {"texts": ["a", " b", "<"], "n": "1", "list": ["1", "2"]}
    assert outcome(body, VIEWS[0], False) == (list(flat.value.items()), flat.places(), [])


@pytest.mark.parametrize(
    "name", ["s", "s2", "e", "n", "z", "u", "b", "any", "r", "texts", "list", "bare", "o"]
)
def test_a_clean_body_is_flat(name: str) -> None:
    body = f"\n  <{name}> 1 </{name}>\n<n>2</n>\n"
    body = body if name != "n" else body.replace("<n>2</n>", "")
    flat = read_flat(body, VIEWS[0], TEXT_KEY)
    assert flat is not None
    assert outcome(body, VIEWS[0], False) == (list(flat.value.items()), flat.places(), [])


@each_case
def test_what_is_left_to_the_tolerant_reader(body: str) -> None:
    assert read_flat(body, VIEWS[0], TEXT_KEY) is None


@pytest.mark.parametrize(
    "piece",
    ["<s>", "<", "< ", "<s>x</s>", " ", "\n", "<s", "</s>", "<" + "s" * 100, "s>", "<s><n>"],
)
def test_flat_hostile_text_stays_linear(piece: str) -> None:

    def read(size: int) -> None:
        body = piece * (size // len(piece))
        for _ in range(10):
            read_flat(body, VIEWS[0], TEXT_KEY)
            read_flat(body + "<s>x</s>", VIEWS[0], TEXT_KEY)

    assert grows_linearly(read, 2_000)
