"""The correction prompt, ours and the Go orchestrator's, and arguments read from any answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_case
from toolparse_lab.core.errors import CorrectionFailed
from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.core.values import same
from toolparse_lab.middleware.correction import (
    CorrectionContext,
    Issue,
    edits_between,
    merged,
    read_correction,
)
from toolparse_lab.middleware.correction.prompt import correction_messages

TOOL = ToolSpec.of(
    {"name": "weather", "parameters": {"type": "object", "properties": {"lat": {"type": "number"}}}}
)
CONTEXT = CorrectionContext(
    TOOL,
    {"lat": "north", "city": "Zürich"},
    "cannot unmarshal string",
    '{"field": "lat"}',
    (Issue("/lat", "type", "expected number, got string"),),
    ({"role": "user", "content": "How warm is it?"},),
    agent="weather-tool",
)


def test_the_orchestrator_s_prompt_is_kept() -> None:
    prompt = Path(__file__).with_name("orchestrator_prompt.txt").read_text("utf-8")
    assert CONTEXT.prompt("go-orchestrator") == prompt


def test_our_prompt_names_fields_body_schema_and_rules_and_follows_the_conversation() -> None:
    first, last = correction_messages(CONTEXT)
    assert first == {"role": "user", "content": "How warm is it?"}
    for part in (
        "The call of weather was refused.",
        '{"field": "lat"}',
        "- /lat: expected number, got string",
        '"lat": "north"',
        '"type": "number"',
        "CORRECT",
    ):
        assert part in last["content"]
    # A body that the message says already is not said twice.
    plain = CorrectionContext(TOOL, {}, "refused: no", "no")
    assert "Details" not in plain.prompt()


@each_case
def test_arguments_are_read_from_any_answer(raw: str) -> None:
    assert read_correction(raw, TOOL) == {"lat": 1.5}


@pytest.mark.parametrize(
    "raw", ["", "I cannot do that.", "[1, 2]", '"lat"', '{"lat": 1.5', "{" * 50_000]
)
def test_an_answer_without_arguments_is_an_error(raw: str) -> None:
    with pytest.raises(CorrectionFailed, match="no JSON object"):
        read_correction(raw, TOOL)


@pytest.mark.parametrize("name", ["arguments", "parameters", "args", "input"])
def test_a_parameter_that_is_called_like_a_wrapper_is_a_parameter(name: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": "object"}}}
    tool = ToolSpec.of({"name": "f", "parameters": schema})
    assert read_correction(f'{{"{name}": {{"a": 1}}}}', tool) == {name: {"a": 1}}


# What of a correction is taken: edits at the fields that were named.


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


@each_case
def test_only_named_places_change(
    path: str, keyword: str, new: dict[str, Any], result: dict[str, Any], left: list[str]
) -> None:
    old = {"a": 1, "b": {"c": 1}}
    taken, _, collateral = merged(old, new, [Issue(path, keyword)])
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
