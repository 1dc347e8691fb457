"""The robust-XML API: values, errors with their places, nodes, both readers, and its cost on
hostile text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.core_cases import rows
from tests.growth import grows_linearly
from tests.laws import examples
from tests.tables import asked_of, each_case
from tests.tools import object_schema
from toolparse_lab.arguments.rjson.positions import apply_edits
from toolparse_lab.arguments.schema.view import view_of
from toolparse_lab.core import errors
from toolparse_lab.core.values import leaves
from toolparse_lab.formats import rxml
from toolparse_lab.formats.rxml import fast
from toolparse_lab.formats.rxml.element import Manner
from toolparse_lab.formats.rxml.parsing import VOID

STRING, NUMBER = {"type": "string"}, {"type": "number"}
STRINGS = {"type": "array", "items": STRING}
SCHEMA: dict[str, Any] = object_schema(
    s=STRING,
    link=STRING,
    n="integer",
    b="boolean",
    l=STRINGS,
    m={"type": "array", "items": {"type": "array", "items": NUMBER}},
    o=object_schema(t=STRING, k=NUMBER, l=STRINGS),
    u={"type": "array", "items": object_schema(t=STRING, k=NUMBER)},
    p={"type": "array", "prefixItems": [NUMBER, STRING]},
    z={"anyOf": [STRINGS, {"type": "null"}]},
)
MANNER = Manner(void=VOID, code=True, loose=True, max_depth=1000)


def run(case: dict[str, Any], read: Callable[..., Any]) -> Any:
    heard: list[Any] = []
    options = dict(case.get("options", {}))
    if "heard" in case:
        options["on_error"] = lambda message, about: heard.append([message, dict(about)])
    value = read(case["xml"], SCHEMA, **options)
    assert heard == case.get("heard", [])
    return value


@asked_of("case", rows("rxml_api.jsonl"))
def test_parse_and_read(case: dict[str, Any]) -> None:
    if "error" in case:
        for read in (rxml.parse, rxml.read):
            with pytest.raises(rxml.RXMLError) as caught:
                run(case, read)
            assert type(caught.value).__name__ == case["error"]
            if "at" in case:
                assert isinstance(caught.value, rxml.RXMLParseError)
                assert [caught.value.line, caught.value.column] == case["at"]
        return
    assert run(case, rxml.parse) == case["value"]
    reading = run(case, rxml.read)
    assert reading.value == case["value"]
    assert [e.rule for e in reading.edits] == case.get("rules", [])
    for path, _ in leaves(reading.source):
        span = reading.places[path]
        assert 0 <= span.start <= span.end <= len(case["xml"]), path


def test_the_package_exports_it() -> None:
    assert tp.rxml is rxml
    assert tp.rxml.unescape("&lt;") == "<"


def test_without_a_schema_text_stays_text() -> None:
    assert rxml.parse("<a>1</a><b/>") == {"a": "1", "b": ""}
    assert rxml.parse("<a x='1'/><a>true</a>", True) == {"a": [{"@_x": "1"}, "true"]}


def test_a_list_at_the_root() -> None:
    assert rxml.parse("<item>1</item><item>2</item>", {"type": "array", "items": NUMBER}) == [1, 2]


def test_places_and_steps_say_where_and_how() -> None:
    text = "<n> 12 </n><l>a</l><l>b</l><o><t>x</t></o>"
    reading = rxml.read(text, SCHEMA)
    assert reading.source == {"n": "12", "l": ["a", "b"], "o": {"t": "x"}}
    assert {p: s.of(text) for p, s in reading.places.items() if p} == {
        "/n": "12", "/l": "a</l><l>b", "/l/0": "a", "/l/1": "b", "/o": "<t>x</t>", "/o/t": "x",
    }  # fmt: skip
    assert [(s.rule, s.path) for s in reading.steps] == [("coerce.integer-from-string", "/n")]


def test_places_inside_a_wrapper_and_of_attributes() -> None:
    text = '<args><o u="d">w<k>1</k></o></args>'
    reading = rxml.read(text, SCHEMA)
    assert {p: s.of(text) for p, s in reading.places.items() if p} == {
        "/o": "w<k>1</k>", "/o/#text": "w", "/o/@_u": "d", "/o/k": "1",
    }  # fmt: skip


@pytest.mark.parametrize(
    "schema", ["not json", {"type": "object", "properties": {"n": {"enum": [{1, 2}]}}}]
)
def test_a_schema_that_is_none(schema: Any) -> None:
    with pytest.raises(rxml.RXMLError) as caught:
        rxml.parse("<n>1</n>", schema)
    assert caught.value.cause is not None


@pytest.mark.parametrize(
    "call",
    [
        lambda: rxml.parse(b"<n/>"),  # type: ignore[arg-type]
        lambda: rxml.parse("<n/>", text_node_name=""),
        lambda: rxml.parse("<n/>", no_child_nodes="br"),
        lambda: rxml.parse_without_schema(None),  # type: ignore[arg-type]
    ],
)
def test_arguments_of_a_wrong_type(call: Callable[[], Any]) -> None:
    with pytest.raises(errors.BadOptions):
        call()


# nodes


def node(name: str, *children: Any, **attributes: Any) -> dict[str, Any]:
    return {"tagName": name, "attributes": attributes, "children": list(children)}


@each_case
def test_parse_without_schema(xml: str, options: dict[str, Any], nodes: list[Any]) -> None:
    assert rxml.parse_without_schema(xml, **options) == nodes


def test_parse_node() -> None:
    assert rxml.parse_node("<?xml?><!-- c --><a/><b/>") == node("a")
    for xml in ("<a><b></a>", "text", ""):
        with pytest.raises(rxml.RXMLParseError) as caught:
            rxml.parse_node(xml)
        assert (caught.value.line or 0) >= 1


@each_case
def test_simplify(xml: str, simple: Any) -> None:
    assert rxml.simplify(rxml.parse_without_schema(xml)) == simple


def test_filter() -> None:
    nodes = rxml.parse_without_schema("<r><i k='1'>a<i k='2'/></i><j/></r>")
    assert [n["attributes"]["k"] for n in rxml.filter(nodes, lambda n: n["tagName"] == "i")] == [
        "1",
        "2",
    ]
    seen: list[Any] = []

    def note(n: Any, index: int, depth: int, path: str) -> bool:
        seen.append((n["tagName"], index, depth, path))
        return False

    assert rxml.filter(nodes, note) == []
    assert seen == [("r", 0, 0, ""), ("i", 0, 1, "0.r"), ("i", 1, 2, "0.r.0.i"), ("j", 1, 1, "0.r")]


def test_nodes_as_text() -> None:
    nodes = rxml.parse_without_schema("<r>text <i>nested</i> more</r>")
    assert rxml.to_content_string(nodes) == "text nested more"
    xml = '<?xml version="1.0"?><r k="&lt;" on><i>a &amp; b</i><e/></r>'
    assert rxml.stringify_nodes(rxml.parse_without_schema(xml), format=False) == xml
    assert (
        rxml.stringify_nodes(rxml.parse_without_schema("<r><i>1</i></r>"))
        == "<r>\n  <i>1</i>\n</r>\n"
    )


# both readers

NAMES = st.sampled_from(
    ["s", "n", "l", "m", "o", "u", "p", "z", "t", "k", "x", "item", "br", "script"]
)
TEXTS = st.sampled_from(
    [
        "", " ", "1", "a b", " x\n", "&lt;", "&amp;amp;", "&nope;", "a,b", "é", "]]>", "&#32;",
        "<!-- -->",
    ]
)  # fmt: skip


def element(name: str, children: list[str], attributes: str) -> str:
    inner = "".join(children)
    return f"<{name}{attributes}>{inner}</{name}>" if inner else f"<{name}{attributes}/>"


DOCUMENTS = st.lists(
    st.recursive(
        TEXTS,
        lambda inner: st.builds(
            element,
            NAMES,
            st.lists(inner, max_size=3),
            st.sampled_from(["", "", "", "", "", " k='v'"]),
        ),
        max_leaves=12,
    ),
    max_size=4,
).map("".join)
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def test_both_readers_agree() -> None:
    sure = 0

    @settings(deadline=None, max_examples=examples(200), suppress_health_check=list(HealthCheck))
    @given(
        DOCUMENTS
        | DOCUMENTS.map(lambda d: f"{DECLARATION}<x>{d}</x>\n")
        | DOCUMENTS.map(lambda d: DECLARATION + d),
        st.sampled_from([SCHEMA, None, {"type": "object"}, {"type": "array", "items": STRING}]),
    )
    def agree(xml: str, schema: Any) -> None:
        nonlocal sure
        found = fast.read_well_formed(xml, view_of(schema), "#text", MANNER)
        if found is None:
            return
        sure += 1
        if list(found) == ["#text"]:  # text without an element is refused by both
            for read in (rxml.parse, rxml.read):
                with pytest.raises(rxml.RXMLParseError):
                    read(xml, schema)
            return
        assert found == rxml.read(xml, schema).source

    agree()
    assert sure > 50, "the C-backed reader was hardly ever asked"


@each_case
def test_the_c_backed_reader_leaves_these_to_the_tolerant_one(xml: str) -> None:
    assert fast.read_well_formed(xml, view_of(SCHEMA), "#text", MANNER) is None


PIECES = st.sampled_from(
    ["<s>", "</s>", "<n>", "</n>", "<o>", "</o>", "<l>", "</l>", "<u>", "</u>", "<item>", "</item>", "<x>", "</x>",
     "</ n>", "<br>", "1", "a", "<", ">", "&lt;", " ", "<!--", "-->", "<![CDATA[", "]]>", "<?",
     "<s/>", "</zz>",
     "<a b='"]
)  # fmt: skip


def test_random_text_is_read_or_refused_and_repairs_read_back() -> None:
    repaired = 0

    @settings(deadline=None, max_examples=examples(400), suppress_health_check=list(HealthCheck))
    @given(st.lists(PIECES, max_size=14).map("".join))
    def law(xml: str) -> None:
        nonlocal repaired
        try:
            reading = rxml.read(xml, SCHEMA, repair=True)
        except rxml.RXMLError:
            with pytest.raises(rxml.RXMLError):
                rxml.parse(xml, SCHEMA)
            return
        again = rxml.read(apply_edits(xml, reading.edits), SCHEMA)
        assert (again.source, again.edits) == (reading.source, ())
        if reading.edits:
            repaired += 1
        else:
            assert rxml.parse(xml, SCHEMA) == reading.value

    law()
    assert repaired > 50, "hardly anything was repaired"


# cost

HOSTILE: dict[str, Callable[[int], str]] = {
    "nested": lambda n: "<x>" * n,
    "nested and closed": lambda n: "<x>" * n + "</x>" * n,
    "nested 900 deep": lambda n: ("<x>" * 900 + "</x>" * 900) * (n // 900),
    "nested items": lambda n: "<m>" + "<item>" * n,
    "unclosed CDATA": lambda n: "<n><![CDATA[" * n,
    "unclosed CDATA in strings": lambda n: "<l><![CDATA[</l>" * n,
    "unclosed comments": lambda n: "<x><!--" * n,
    "instructions": lambda n: "<?" * n,
    "declarations": lambda n: "<!a [" * n,
    "declarations with quotes": lambda n: '<!a "' * n,
    "entity bomb": lambda n: entity_bomb(n // 100),
    "entities": lambda n: "<s>" + "&amp;" * n + "</s>",
    "one string": lambda n: "<s>" + "line <b>of</b> text\n" * n + "</s>",
    "openers in a string": lambda n: "<s>" + "<s>" * n,
    "openers and closers in strings": lambda n: "<l>a <l> b</l>" * n,
    "closers in a string": lambda n: "<s>" + "</s> a" * n,
    "attributes": lambda n: "<zz a='" * n,
    "attribute names": lambda n: "<zz" + " a" * n,
    "white space": lambda n: "<x>" * 900 + " " * (5 * n),
    "stray closers": lambda n: "</x>" * n,
    "distinct names": lambda n: "".join(f"<x{i}>" for i in range(n)),
    "distinct fields": lambda n: "".join(f"<x{i}>1</x{i}><x{i}>2</x{i}>" for i in range(n // 2)),
    "lists of another name": lambda n: "<l><q>" * n,
    "signs": lambda n: "<" * (5 * n),
}


def entity_bomb(depth: int) -> str:
    """Entities each of which stands for two of the one before: 2 ** depth, were they expanded."""
    entities = "".join(f'<!ENTITY e{i} "&e{i - 1};&e{i - 1};">' for i in range(depth))
    return f"<!DOCTYPE a [{entities}]>&e{depth - 1};"


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.exhaustive(3)
def test_hostile_text_takes_linear_time(kind: str, repair: bool) -> None:
    for read in (partial(rxml.parse, schema=SCHEMA), rxml.parse_without_schema):

        def work(size: int, read: Any = read) -> None:
            with suppress(rxml.RXMLError):
                read(HOSTILE[kind](size), repair=repair)

        assert grows_linearly(work, 4_000)


MARKS = (
    "<a>", "</a>", "<b k='1'>", "</b>", "<br>", "</br>", " ", "\n", "x", "<!-- c -->", "<!--",
    "<![CDATA[ <a> ]]>", "<?xml v='1'?>", "<!DOCTYPE a>", "<script>", "</script>", "if (a<b) ",
    '<d k="<a>"/>', "a < b", "<", "é", '<a k="', '">', "-->",
)  # fmt: skip


@given(st.lists(st.sampled_from(MARKS), max_size=10), st.booleans(), st.integers(1, 9))
def test_a_stream_gives_the_nodes_of_the_whole_text(
    words: list[str], wrapped: bool, size: int
) -> None:
    text = "".join(words)
    text = f"<r>{text}</r>{text}" if wrapped else text
    cut = [text[i : i + size] for i in range(0, len(text), size)]

    def found(read: Callable[[], Any]) -> Any:
        try:
            return list(read())
        except errors.RXMLParseError as e:
            return e.line, e.column, e.position

    whole = found(lambda: rxml.parse_without_schema(text))
    assert found(lambda: rxml.stream_nodes(cut)) == whole


def test_a_node_comes_once_it_is_whole() -> None:
    pieces = iter(["<a>1</a> <b", "/>", "<c>"])
    nodes = rxml.stream_nodes(pieces)
    assert next(nodes) == {"tagName": "a", "attributes": {}, "children": ["1"]}
    assert next(pieces) == "/>"  # which the stream has not asked for yet


def test_what_a_stream_is_not_for() -> None:
    with pytest.raises(rxml.RXMLStreamError, match="not bytes"):
        list(rxml.stream_nodes([b"<a/>"]))  # type: ignore[list-item]
    with pytest.raises(errors.BadOptions):
        list(rxml.stream_nodes([], repair=True))
