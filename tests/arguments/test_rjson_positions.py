"""Places in strict JSON text, and offsets through edits."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.tables import asked_of
from toolparse_lab.arguments.rjson.positions import EditMap, apply_edits, find_places
from toolparse_lab.core.types import Edit, Span
from toolparse_lab.core.values import pointer_get, read_plain

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def pointers(value: Any, path: str = "") -> list[str]:
    """The JSON Pointer of a value and of everything in it."""
    out = [path]
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, member in members:
        out += pointers(member, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return out


@given(JSON, st.sampled_from([None, 1]), st.booleans())
def test_every_value_is_found_where_it_stands(
    value: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    places = find_places(text)
    assert sorted(places.values) == sorted(pointers(value))
    assert places.doubled == []
    for path, (start, end) in places.values.items():
        expected = pointer_get(value, path)
        quoted = isinstance(expected, str)
        assert read_plain(text[start - quoted : end + quoted]) == expected


@asked_of("text", ["[{},{}]", '{"a":{},"b":[[],{}]}', '[{"n":{}},{"n":1}]', "[]", "{}"])
def test_empty_containers_do_not_confuse_what_follows(text: str) -> None:
    assert sorted(find_places(text).values) == sorted(pointers(json.loads(text)))


def test_a_list_of_calls_without_arguments() -> None:
    calls = tp.parse(
        '<tool_call>[{"name":"f","arguments":{}},{"name":"g","arguments":{}}]</tool_call>', "hermes"
    ).calls
    assert [(c.name, c.arguments, c.ok) for c in calls] == [("f", {}, True), ("g", {}, True)]


def test_offsets_go_back_through_edits() -> None:
    text = "{a: 'x',}"
    edits = [
        Edit(Span(1, 2), '"a"', "rjson.unquoted-key"),
        Edit(Span(4, 5), '"', "rjson.single-quotes"),
        Edit(Span(6, 7), '"', "rjson.single-quotes"),
        Edit(Span(7, 8), "", "rjson.trailing-comma"),
    ]
    edited = apply_edits(text, edits)
    assert edited == '{"a": "x"}'
    start, end = find_places(edited).values["/a"]
    assert Span(*EditMap(edits).raw_span(start, end)).of(text) == "x"
