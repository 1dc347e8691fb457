"""Short ways through the reading of a call: each says what the long way beside it says."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.quotations import CALLS, TOOLS, formats, written
from tests.tables import asked_of, each_case
from toolparse_lab.arguments.rjson.repair import read_damaged
from toolparse_lab.arguments.schema.coerce import Walk
from toolparse_lab.arguments.schema.scalars import holds_bare_null, is_bare_null
from toolparse_lab.arguments.schema.view import View, _cached_view, view_of
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.types import Edit, ParseOptions, Segment, Span, Step, ToolCall
from toolparse_lab.core.types.spans import maker_of
from toolparse_lab.formats.auto import AUTO
from toolparse_lab.formats.disambiguation import is_doubtful, is_plain_object
from toolparse_lab.formats.json.source import ONE_CALL, BodySource
from toolparse_lab.formats.parameters.form import TagForm, decoded_text
from toolparse_lab.formats.parameters.strict import read_functions, trimmed
from toolparse_lab.formats.reasoning import END_SO_FAR, LONE_ENDS, LONGEST_END
from toolparse_lab.formats.registry import protocol_of
from toolparse_lab.formats.rxml import element as rxml_text
from toolparse_lab.formats.scan import partial_finder, partial_start
from toolparse_lab.parser.recognition.python_calls import PythonCalls, first_signs
from toolparse_lab.parser.resolve import Resolver
from toolparse_lab.parser.state import Setting, _Either
from toolparse_lab.parser.text import TextScanner

FORMATS = dict(formats())


@asked_of(
    "instance",
    [
        Edit(Span(0, 2), "x", "rjson.comment"),
        Segment("call", Span(0, 9), Span(2, 7), False),
        Segment("text", Span(0, 1)),
        Step("coerce", "coerce.json-from-string", "/a", None, "[1]", [1]),
        ToolCall(0, 1, "f", None, "id", "hermes", "ok", 1.0, "{}", "{}"),
    ],
)
def test_a_maker_makes_what_the_class_makes(instance: Any) -> None:
    cls = type(instance)
    names = list(cls.__slots__)
    made = maker_of(cls)(**{name: getattr(instance, name) for name in names})
    assert type(made) is cls
    assert made == instance
    assert repr(made) == repr(instance)
    assert pickle.loads(pickle.dumps(made)) == instance
    with pytest.raises(AttributeError):
        setattr(made, names[0], None)
    with pytest.raises(TypeError):
        maker_of(cls)()


@given(st.lists(st.sampled_from(["&lt;", "&", "amp;", "gt;", "lt;", "&amp;", "#65;", "x"])))
@example(["&", "amp;", "lt;"])
@example(["&amp;", "amp;", "amp;", "#65;"])
def test_references_are_decoded_once(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert rxml_text.unescape(text) == rxml_text._ENTITY.sub(rxml_text._decode, text)


PIECES = ["x", "<", ">", "]", "/", "name", "parameter", " ", "\n", "</name>", "]]>", "."]
SCHEMA = view_of({"properties": {"name": {"type": "string"}, "city": {"type": "string"}}})


@given(
    st.dictionaries(
        st.sampled_from(["name", "city", "nam", "other"]),
        st.lists(st.sampled_from(PIECES)).map("".join) | st.just(["x"]),
    )
)
@example({"city": "x[/name]"})
@example({"city": "x</name> "})
def test_a_plain_object_is_never_doubtful(value: dict[str, Any]) -> None:
    if is_plain_object(value, SCHEMA):
        assert not is_doubtful(value, SCHEMA, str(value), dict, repaired=False)


@given(
    st.dictionaries(st.text("ab"), st.sampled_from(["null", " null\n", "nul", "", 0, "x" * 200]))
)
def test_a_bare_null_is_found_among_others(value: dict[str, Any]) -> None:
    assert holds_bare_null(value) == any(map(is_bare_null, value.values()))


@given(st.text("\r\nx", max_size=6), st.integers(0, 3), st.integers(0, 3))
def test_one_line_break_is_trimmed_at_each_end(text: str, before: int, behind: int) -> None:
    start, end = trimmed("\n" * before + text + "\n" * behind, before, before + len(text))
    inner = text.removeprefix("\n") if text.startswith("\n") else text.removeprefix("\r\n")
    if inner.endswith("\n"):
        inner = inner[: -2 if inner.endswith("\r\n") else -1]
    assert ("\n" * before + text)[start:end] == inner


BEFORE = ["{", "//c\n", " ", "'", '"name":"f",', "name:'f',", '"a":1,', "```json\n", "Sure: "]
BEHIND = ["'n'", "f", '"', "}", "[1", "]", ",", ":", "True", " ", "//c\n", '"name":"f"', "\t"]


@given(
    st.lists(st.sampled_from(BEFORE), max_size=3).map("".join),
    st.sampled_from(['"name": "f"', "'name': 'f'", '"name":"f', 'name": "f"', "name: f"]),
    st.lists(st.sampled_from(BEHIND), max_size=6).map("".join),
)
@example('{"name":"f",', '"name": "f"', "}")
@example("//c\n{", '"name": "f"', ",}")
@example("{", '"name":"f', ',"a":1}')
@example("{", '"name": "f"', '"a":1}')
def test_a_name_has_the_place_that_a_look_at_all_of_it_finds(
    before: str, name: str, behind: str
) -> None:
    body = before + name + behind
    try:
        values, edits = read_damaged(body, closed=True, numbers_end=True, prose=True, max_depth=50)
    except Exception:  # what cannot be read has no places
        return
    if not values or not isinstance(values[0], dict) or not isinstance(values[0].get("name"), str):
        return
    source = BodySource(body, tuple(edits), ONE_CALL)
    assert source.name_span(0, "", "name", values[0]["name"]) == source.span_of(0, "/name")


BETWEEN = ["\n", " ", '"', "'", ">", "`", "words", "Example:", "    ", "\r\n", "\u201c", "```"]


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=30)
@given(between=st.lists(st.sampled_from(BETWEEN), max_size=5).map("".join))
def test_openers_that_need_no_look_are_not_quoted(name: str, between: str) -> None:
    call = written(FORMATS[name], *CALLS[0])
    assert call is not None
    raw = between + call + between + call
    whole = tp.parse(raw, name, TOOLS)
    parser = tp.stream(name, TOOLS)
    for character in raw:
        parser.feed(character)
    assert parser.close() == whole

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextScanner, "_begins_line", lambda *_: False)
        assert tp.parse(raw, name, TOOLS) == whole


@each_case
@pytest.mark.parametrize("value", [{"a": 1}, {"a": "1"}, {"a": [1]}, {"b": {}}])
def test_what_is_looked_at_without_a_budget_spends_none(
    schema: dict[str, Any], value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tp.coerce(value, schema)
    monkeypatch.setattr(View, "only_leaves", False)
    _cached_view.cache_clear()  # views keep what they have worked out
    assert tp.coerce(value, schema) == before


def test_only_plain_members_are_leaves() -> None:
    leaf = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert view_of(leaf).only_leaves
    assert not view_of({**leaf, "additionalProperties": {"type": "string"}}).only_leaves
    assert not view_of({**leaf, "patternProperties": {"b": {"type": "string"}}}).only_leaves
    assert not view_of({"type": "object", "properties": {"a": {"enum": [1]}}}).only_leaves


VALUES = st.lists(st.sampled_from(["\r", "\n", "\r\n", "a", " ", "<", "</b>", "&lt;", "&"]))


@given(VALUES)
@example(["\r\n", "\r\n"])
@example(["\n", "\r", "\r\n"])
@pytest.mark.parametrize("trim", [True, False])
def test_a_strict_parameter_loses_the_line_breaks_that_any_other_loses(
    trim: bool, pieces: list[str]
) -> None:
    value = "".join(pieces)
    head, tail = "<function=f>\n<parameter=a>", "</parameter>\n</function>"
    body = head + value + tail
    place = len(head), len(head) + len(value)
    calls = read_functions(TagForm(trim=trim), body)
    assert calls is not None
    kept = trimmed(body, *place) if trim else place
    assert calls[0].places()["/a"] == kept
    assert calls[0].arguments == {"a": decoded_text(TagForm(), body[slice(*kept)])}


LEAF_TYPES = ("string", "integer", "number", "boolean", "null")
LEAF_TEXTS = st.sampled_from(
    ["", "1", " 07", "2.50", "1e3", "-0", "yes", "True", "0", "null", "NULL", "5 km", "x" * 40]
)


@given(st.lists(st.tuples(st.sampled_from(LEAF_TYPES), LEAF_TEXTS), max_size=6))
@pytest.mark.parametrize("policy", ["safe", "middleware"])
def test_a_text_member_is_read_as_a_value_of_its_own_is(
    policy: str, members: list[tuple[str, str]]
) -> None:
    value = {f"m{i}": text for i, (_, text) in enumerate(members)}
    nodes = {f"m{i}": {"type": name} for i, (name, _) in enumerate(members)}
    view = view_of({"type": "object", "properties": nodes})
    whole = Walk(policy)
    new = whole.members(value, view, "", 0)
    alone = Walk(policy)
    one_by_one = {
        key: alone.value(text, view.properties[key], f"/{key}", 1) for key, text in value.items()
    }
    assert new == one_by_one
    assert whole.steps == alone.steps


@given(st.text(alphabet="[]('\"\\_.fget1=)< \n{", min_size=1, max_size=12), st.booleans())
def test_a_line_that_no_name_of_a_tool_begins_is_no_call_of_python(text: str, final: bool) -> None:
    tools = {spec.name: spec for spec in tool_specs([{"name": "get.f"}, {"name": "_g"}])}
    if text[0] not in first_signs(tuple(tools)):
        protocol = protocol_of("hermes")
        lines = PythonCalls(Resolver(protocol, tools, ParseOptions()), ())
        assert lines.judge(text, final, 0, False) is None


# Tools whose names begin like literals of the formats, and contain what these end with.
_AWKWARD = tool_specs(
    [{"name": name} for name in ("tool", "tool_call", "tool_call>x", "think", "|im", "f", "call:")]
)
_TOKENS = [
    "<", "</", ">", "tool", "_call", "think", "|im", "_end|>", "f", "\n", "```", "[", "x", "s",
]  # fmt: skip


@pytest.mark.parametrize("protocol", [AUTO, *map(protocol_of, ("morph_xml", "yaml_xml"))])
@given(st.lists(st.sampled_from(_TOKENS), max_size=30).map("".join))
@example("<tool_call><tool_call>x<tool")
@example("<|im_end|><|im<|im_end|")
def test_literals_of_tools_are_found_as_in_one_pattern(protocol: Any, text: str) -> None:
    setting = Setting(protocol, _AWKWARD, ParseOptions())
    either = setting.tokens
    assert isinstance(either, _Either)
    whole = either._whole()
    found = [(m.span(), m.lastgroup) for m in either.finditer(text)]
    assert found == [(m.span(), m.lastgroup) for m in whole.finditer(text)]
    closer = partial_finder(LONE_ENDS, END_SO_FAR, LONGEST_END)(text)
    assert setting.partial_start(text) == min(closer, partial_start(text, setting.literals))
    if isinstance(closers := setting.closers, _Either):
        assert closers.sub("", text) == closers._whole().sub("", text)
    for _ in range(1000):
        assert (either.search(text) is None) == (whole.search(text) is None)
