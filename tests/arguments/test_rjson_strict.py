"""Containers of damaged text that are read whole by the C-backed reader: nothing may differ from
the walk."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core_cases import rows
from tests.growth import grows_linearly
from tests.tables import asked_of, each_case
from toolparse_lab.arguments.rjson import strict
from toolparse_lab.arguments.rjson.repair import Damage, read_damaged
from toolparse_lab.arguments.rjson.strict import Refusal
from toolparse_lab.core.values import write_canonical

JSON = st.recursive(
    st.sampled_from([None, True, 1, -0.5, "", "a", "it's", 'q"q', "é😀", "x, y: z"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["a", "b", "c d"]), inner, max_size=3)
    ),
    max_leaves=30,
)
PIECES = [
    "'", '"', ",", ":", "{", "}", "[", "]", "\\", "True", "NaN", "-0", "007", "// c\n", "/* c */",
    "“", "\n", "abc", '"a": ', "```", "so: ", "\xa0", ".5", '"""', "{x} ",
]  # fmt: skip
DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["cut", *PIECES])), max_size=4)


def damaged(value: Any, damage: list[tuple[float, str]]) -> str:
    text = json.dumps(value, ensure_ascii=False)
    for share, piece in damage:
        at = int(share * len(text))
        text = text[:at] + (text[at + 1 :] if piece == "cut" else piece + text[at:])
    return text


def outcome(text: str, **options: Any) -> Any:
    try:
        values, edits = read_damaged(text, **options)
    except Refusal as no:
        return no.code, no.message, no.position
    return [write_canonical(v) for v in values], edits


def both(text: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, Any]:
    """What is found with the C-backed reader's help, and by the walk alone: no container fits a
    window of nothing."""
    helped = outcome(text, **options)
    with monkeypatch.context() as patch:
        patch.setattr(strict, "WINDOW", 0)
        return helped, outcome(text, **options)


@given(
    JSON,
    DAMAGE,
    st.booleans(),
    st.booleans(),
    st.sampled_from([2, 3, 1000]),
    st.sampled_from([8, 1024]),
)
def test_the_walk_alone_finds_the_same(
    value: Any,
    damage: list[tuple[float, str]],
    closed: bool,
    prose: bool,
    max_depth: int,
    window: int,
) -> None:
    text = damaged(value, damage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strict, "WINDOW", window)
        helped, alone = both(
            text, patch, closed=closed, numbers_end=False, prose=prose, max_depth=max_depth
        )
    assert helped == alone


@asked_of("case", rows("rjson_repair.jsonl"))
def test_the_walk_alone_finds_the_same_in_cases(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"[[1, 2], {case['text']}, [3]]" if "refuse" not in case else case["text"]
    helped, alone = both(
        text, monkeypatch, closed=True, numbers_end=False, prose=True, max_depth=1000
    )
    assert helped == alone


@each_case
@pytest.mark.parametrize("max_depth", [3, 5, 1000])
def test_what_was_kept_is_read_as_the_whole_is(
    text: str, max_depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    helped, alone = both(
        text, monkeypatch, closed=True, numbers_end=False, prose=True, max_depth=max_depth
    )
    assert helped == alone


def test_clean_containers_are_kept() -> None:
    damage = Damage('[{"a": [1]}, {"b": 2,}, [[3]]]', closed=True, numbers_end=False, max_depth=9)
    damage.find_value(0)
    assert [value for _, _, value in damage.clean.parts] == [{"a": [1]}, [[3]]]


@asked_of(
    "unit", ["[" * 400 + "1," * 400 + "'x'" + "]" * 400, "{\"a\": [1, [2, [3, 'x']]]}", "[[1],'x']"]
)
def test_failing_tries_cost_no_more_than_the_text(unit: str) -> None:
    def read(size: int) -> None:
        text = "[" + ",".join([unit] * max(1, size // len(unit))) + "]"
        read_damaged(text, closed=True, numbers_end=False, prose=False, max_depth=1000)

    assert grows_linearly(read, 20_000)
