"""What of a correction is taken: edits at the fields that were named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolparse_lab.core.values import same
from toolparse_lab.middleware.correction import Issue, edits_between, merged

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "a/b", "~"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "a/b", "~x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c/d"]), JSON, max_size=3)


@given(old=OBJECTS, new=OBJECTS)
def test_all_edits_make_the_new_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    edits = edits_between(old, new)
    assert (edits == []) == same(old, new)
    result, taken, left = merged(old, new, [Issue(edit.path) for edit in edits])
    assert same(result, new)
    assert (list(taken), left) == (edits, ())


@given(old=OBJECTS, new=OBJECTS)
def test_without_a_named_field_nothing_or_all_is_taken(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert same(merged(old, new, [])[0], old)
    assert merged(old, new, [Issue(None)])[0] == new


@pytest.mark.parametrize(
    ("issue", "new", "result", "left"),
    [
        (Issue("/a"), {"a": 2, "b": {"c": 2}}, {"a": 2, "b": {"c": 1}}, ["/b/c"]),
        (Issue("/b"), {"a": 2, "b": {"c": 2}}, {"a": 1, "b": {"c": 2}}, ["/a"]),
        (Issue("/b/c"), {"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 2}}, ["/b/d"]),
        # A missing member may be added to its object, and nothing else there may change.
        (
            Issue("", "required"),
            {"a": 2, "b": {"c": 1}, "d": 4},
            {"a": 1, "b": {"c": 1}, "d": 4},
            ["/a"],
        ),
        (
            Issue("/d", "missing"),
            {"a": 2, "b": {"c": 1}, "d": 4},
            {"a": 1, "b": {"c": 1}, "d": 4},
            ["/a"],
        ),
        # One that may not be there may go, under another name too.
        (Issue("", "additionalProperties"), {"b": {"c": 1}}, {"b": {"c": 1}}, []),
        (Issue("", "additional"), {"x": 1, "b": {"c": 1}}, {"x": 1, "b": {"c": 1}}, []),
        # The whole may be replaced where the whole is wrong.
        (Issue("", "anyOf"), {"a": 2, "b": {"c": 2}}, {"a": 2, "b": {"c": 2}}, []),
        # An object that is replaced by a text where a field of it was named.
        (Issue("/b/c"), {"a": 1, "b": "c"}, {"a": 1, "b": "c"}, []),
        (Issue("/zzz"), {"a": 2, "b": {"c": 1}}, {"a": 1, "b": {"c": 1}}, ["/a"]),
    ],
)
def test_only_named_places_change(
    issue: Issue, new: dict[str, Any], result: dict[str, Any], left: list[str]
) -> None:
    old = {"a": 1, "b": {"c": 1}}
    taken, _, collateral = merged(old, new, [issue])
    assert taken == result
    assert [edit.path for edit in collateral] == left
    assert old == {"a": 1, "b": {"c": 1}}


def test_items_of_a_list_are_told_apart_where_none_is_added() -> None:
    old, new = {"a": [1, 2, 3]}, {"a": [1, "2", 4]}
    assert merged(old, new, [Issue("/a/1")])[0] == {"a": [1, "2", 3]}
    assert [edit.path for edit in edits_between(old, {"a": [1, 2]})] == ["/a"]


def test_values_of_any_depth_are_compared() -> None:
    deep: Any = 1
    other: Any = 2
    for _ in range(5000):
        deep, other = {"a": deep}, {"a": other}
    (edit,) = edits_between(deep, other)
    assert edit.kind == "changed"
