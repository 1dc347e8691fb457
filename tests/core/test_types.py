"""The frozen result types: options, serialising, pickling, origins, views of the text."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import every_case
from tests.tools import tool_named

TOOLS = [tool_named("f", a="integer", tags={"type": "array", "items": {"type": "string"}})]
RAW = (
    "<think>hm</think>Hi \ud83d <tool_call>{'name': 'f', 'arguments': {'a': '1', 'tags': "
    "'x'}}</tool_call>"
    '<tool_call>{"name": "f", "arguments": {"a": "b"}}</tool_call> and <tool_call>{"name": "q'
)


@pytest.fixture
def result() -> tp.ParseResult:
    return tp.parse(RAW, "hermes", TOOLS)


def test_to_dict_and_back(result: tp.ParseResult) -> None:
    text = result.to_json()
    again = tp.ParseResult.from_dict(json.loads(text))
    assert again == result
    assert again.to_json() == text
    for a, b in zip(result.calls, again.calls, strict=True):
        assert dict(a.origins.get()) == dict(b.origins.get())


def test_another_version_is_refused(result: tp.ParseResult) -> None:
    with pytest.raises(tp.errors.BadOptions):
        tp.ParseResult.from_dict({**result.to_dict(), "version": 99})


def test_pickle_and_deepcopy(result: tp.ParseResult) -> None:
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert again == result
        assert again.calls[0].origin("/a") == result.calls[0].origin("/a")


def test_the_parts_of_the_text(result: tp.ParseResult) -> None:
    assert result.reasoning == "hm"
    assert result.text == "Hi \ud83d  and "
    assert result.content() == 'Hi \ud83d  and <tool_call>{"name": "q'
    assert result.content("drop") == "Hi \ud83d  and "
    with pytest.raises(tp.errors.BadOptions):
        result.content("keep")  # type: ignore[arg-type]


def test_statuses(result: tp.ParseResult) -> None:
    assert [(c.status, c.ok, c.valid, c.readable) for c in result.calls] == [
        ("ok", True, True, True),
        ("ok", True, False, True),
        ("truncated", False, False, False),
    ]
    assert not result.ok
    assert [p.code for p in result.all_problems()] == [
        "validate.type",
        "call.truncated",
        "decode.truncated-value",
    ]
    assert result.calls[2].arguments == {}
    assert str(result.calls[0]) == 'f({"a":1,"tags":["x"]}) [repaired (lossless)]'


def test_arguments_are_fresh(result: tp.ParseResult) -> None:
    call = result.calls[0]
    call.arguments["a"] = 2
    assert call.arguments == {"a": 1, "tags": ["x"]}


def test_the_trace_holds_repairs_and_coercions(result: tp.ParseResult) -> None:
    stages = [s.stage for s in result.trace]
    assert stages == ["repair"] * 14 + ["coerce"] * 2
    step = result.trace[-1]
    assert (step.rule, step.path, step.before_json, step.after_json) == (
        "coerce.wrap-array",
        "/tags",
        '"x"',
        '["x"]',
    )
    assert step.span is not None
    assert step.span.of(result.raw) == "x"
    assert step.lossless


def test_origins_of_nothing(result: tp.ParseResult) -> None:
    with pytest.raises(tp.errors.NoSuchItem) as caught:
        result.calls[0].origin("/zz")
    assert "'/a'" in str(caught.value)
    assert isinstance(caught.value, KeyError)
    with pytest.raises(tp.errors.NoSuchItem):
        result.calls[2].origin("/a")


def test_arguments_that_are_missing_have_no_origins_of_their_own() -> None:
    (call,) = tp.parse('<tool_call>{"name": "f", "id": "x"}</tool_call>', "hermes", TOOLS).calls
    assert call.arguments == {}
    assert list(call.origins.get()) == [""]
    (call,) = tp.parse(
        '<tool_call>{"name": "f", "id": "x", "a": 1}</tool_call>', "hermes", TOOLS
    ).calls
    assert sorted(call.origins.get()) == ["", "/a"]


def test_spans() -> None:
    span = tp.Span(2, 5)
    assert (len(span), span.of("abcdefg"), span.shift(1), span.covers(tp.Span(3, 3))) == (
        3,
        "cde",
        tp.Span(3, 6),
        True,
    )
    assert not span.covers(tp.Span(1, 3))
    assert tp.Origin(span).start == 2
    assert tp.Origin(span).end == 5


@every_case
def test_wrong_options_are_named(options: Any) -> None:
    with pytest.raises(tp.errors.BadOptions):
        tp.ParseOptions.of(options)


def test_options_of() -> None:
    assert tp.ParseOptions.of(None) == tp.ParseOptions()
    assert tp.ParseOptions.of({"coerce": "none"}).to_dict()["coerce"] == "none"
    options = tp.ParseOptions(repair=False)
    assert tp.ParseOptions.of(options) is options
    assert tp.ParseOptions.of(options.to_dict()) == options


def test_nothing_can_be_changed(result: tp.ParseResult) -> None:
    with pytest.raises(AttributeError):
        result.raw = "x"  # type: ignore[misc]
