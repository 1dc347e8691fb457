"""The two doors: what they take and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of


@asked_of(
    "arguments", [{"protocol": "nope"}, {"protocol": 5}, {"tools": 5}, {"options": {"nope": 1}}]
)
def test_a_stream_refuses_what_a_parse_refuses(arguments: dict[str, Any]) -> None:
    with pytest.raises(tp.errors.UsageError) as refused:
        tp.parse("x", **arguments)
    with pytest.raises(type(refused.value)):
        tp.stream(**{"protocol": "hermes", **arguments})


def test_parse_is_one_feed_and_one_close() -> None:
    raw = 'x <tool_call>{"name": "f", "arguments": {}}</tool_call>'
    parser = tp.stream("hermes", [{"name": "f"}])
    parser.feed(raw)
    assert parser.close() == tp.parse(raw, "hermes", [{"name": "f"}])


def test_the_default_is_auto() -> None:
    assert tp.parse("x").protocol == "auto"


def test_every_public_name_is_there() -> None:
    for name in tp.__all__:
        if name not in (
            "Case",
            "Cases",
            "Lab",
            "Model",
            "load_cases",
        ):  # these import what the core does without
            assert getattr(tp, name) is not None
    assert sorted(tp.__all__) == dir(tp)
    with pytest.raises(AttributeError):
        getattr(tp, "nothing_of_the_kind")  # noqa: B009 - a type checker refuses the name


def test_an_option_beside_options_is_told_its_place() -> None:
    misplaced: dict[str, Any] = {"reasoning": "none"}
    unknown: dict[str, Any] = {"toolz": 1}
    functions: list[Any] = [tp.parse, tp.stream]
    for function in functions:
        name, call = function.__name__, function
        arguments = ("x", "hermes") if name == "parse" else ("hermes",)
        with pytest.raises(tp.errors.BadOptions, match="a member of `options`") as e:
            call(*arguments, **misplaced)
        assert e.value.hint == f"options={misplaced!r}"
        call(*arguments, options=misplaced)
        with pytest.raises(TypeError, match=f"{name}.*unexpected keyword argument 'toolz'"):
            call(*arguments, **unknown)
