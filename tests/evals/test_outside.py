"""Calls of somebody else's parser, in the shapes they come in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of
from toolparse_lab.core.errors import UnreadableInput
from toolparse_lab.evals.parsers.outside import OutsideCall, outside_calls
from toolparse_lab.evals.scoring.score import naive_calls

F = OutsideCall("f", '{"a":1}')
FUNCTION = {"name": "f", "arguments": '{"a": 1}'}


@asked_of(
    "said",
    [
        [{"name": "f", "arguments": {"a": 1}}],
        [{"name": "f", "arguments": '{ "a": 1 }'}],
        ({"name": "f", "args": {"a": 1}, "id": "x", "type": "tool_call"},),
        {"name": "f", "arguments": {"a": 1}},
        [{"toolName": "f", "input": {"a": 1}}],
        [{"tool_name": "f", "parameters": {"a": 1}}],
        [{"id": "c", "type": "function", "function": FUNCTION}],
        {"role": "assistant", "content": None, "tool_calls": [{"function": FUNCTION}]},
        SimpleNamespace(
            tools_called=True, tool_calls=[SimpleNamespace(function=SimpleNamespace(**FUNCTION))]
        ),
        SimpleNamespace(name="f", arguments={"a": 1}),
        (call for call in [FUNCTION]),
        ("f", {"a": 1}),
        [("f", '{"a": 1}')],
        [{"type": "text", "text": "x"}, {"type": "tool_use", "name": "f", "input": {"a": 1}}],
        {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {"a": 1}}]},
        tp.parse('<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>', "hermes"),
    ],
)
def test_shapes_of_one_call(said: Any) -> None:
    assert outside_calls(said) == (F,)


@asked_of(
    "said",
    [
        None, [], {}, (), {"tool_calls": []}, SimpleNamespace(tool_calls=[], content="x"),
        {"role": "assistant", "content": "x"}, [{"type": "thinking", "thinking": "x"}],
        {"role": "assistant", "content": None, "tool_calls": None},
    ],
)  # fmt: skip
def test_shapes_of_no_call(said: Any) -> None:
    assert outside_calls(said) == ()


@asked_of("arguments", [None, {}, "", " ", "{}"])
def test_arguments_that_are_missing_are_none(arguments: Any) -> None:
    assert outside_calls([{"name": "f", "arguments": arguments}]) == (OutsideCall("f", "{}"),)


@asked_of(
    ("said", "message"),
    [
        ("f(a=1)", "no list of calls"),
        (3, "no list of calls"),
        ([1], "without a name"),
        (("x", [1]), "without a name"),
        ([{"arguments": {}}], "without a name"),
        ([{"name": "f", "arguments": "{a:"}], "the arguments of 'f' are no JSON"),
        ([{"name": "f", "arguments": {"a": {1}}}], "the arguments of 'f' are no JSON"),
    ],
)
def test_what_holds_no_calls_says_what_would(said: Any, message: str) -> None:
    with pytest.raises(UnreadableInput, match=message):
        outside_calls(said)


def test_a_generator_without_end_is_cut() -> None:
    def forever() -> Any:
        while True:
            yield FUNCTION

    assert len(outside_calls(forever())) == 1_000


# The naive parser: a regex for a JSON object and `json.loads`.


def test_naive_parser_reads_what_json_loads_reads() -> None:
    native = '{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\\"a\\":1}"}}]}'
    assert naive_calls(native, native=True) == [("f", {"a": 1})]
    assert naive_calls("[" * 100_000 + "{" + "[" * 100_000 + "}") == []
    for broken in (
        "",
        "}{",
        '{"name": 1, "arguments": {}}',
        '{"name": "f", "arguments": "x"}',
        "[1]",
    ):
        assert naive_calls(broken) == []
    for broken in ("", "[]", '{"tool_calls":[1]}'):
        assert naive_calls(broken, native=True) == []
