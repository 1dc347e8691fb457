"""The push engine: events, chunks, cost, and what it never does."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import CORE, rows
from tests.growth import grows_linearly
from tests.laws import in_pieces
from tests.tables import asked_of, each_case
from tests.tools import tool_named
from toolparse_lab.core.types import Retract, Span
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.parser.state import Feed

TOOLS = [
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    tool_named("put", path="string", o={"type": "object", "properties": {"k": {"type": "number"}}}),
]
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


def events(
    chunks: list[str], protocol: str = "hermes", **options: Any
) -> list[list[tuple[str, str]]]:
    """(kind, text) of the events of each chunk, and of the close."""
    parser = tp.stream(protocol, TOOLS, options or None)
    found = [parser.feed(c) for c in chunks]
    parser.close()
    found.append(parser.last_events())
    raw = "".join(chunks)
    return [
        [
            (type(e).__name__, raw[e.start :] if isinstance(e, Retract) else e.span.of(raw))
            for e in batch
        ]
        for batch in found
    ]


def test_a_call_is_delivered_as_soon_as_it_closes() -> None:
    assert events(["hi <tool", CALL[5:-3], "ll>"])[2] == [("CallEnd", "</tool_call>")]


def test_text_is_said_at_once_and_an_opener_is_waited_for() -> None:
    assert events(["hello ", "<", "b>", "<tool_c"]) == [
        [("TextDelta", "hello ")], [], [("TextDelta", "<b>")], [], [("TextDelta", "<tool_c")],
    ]  # fmt: skip


def test_the_body_streams() -> None:
    said = events(["<tool_call>", '{"name": "f", ', '"arguments": {}}', "</tool_call>"])
    assert said[0] == [("CallStart", "<tool_call>")]
    assert said[1] == [("CallDelta", '{"name": "f", ')]
    assert said[3][-1] == ("CallEnd", "</tool_call>")


def test_a_wrong_closer_is_retracted() -> None:
    said = [
        e for batch in events(['<tool_call>{"name": "f", "x": "</tool_call>', "\n"]) for e in batch
    ]
    assert said[-1][0] == "TextDelta" or said[-1][0] == "CallEnd"
    result = tp.parse('<tool_call>{"name": "f", "x": "</tool_call>\n', "hermes", TOOLS)
    assert [c.status for c in result.calls] == ["undecodable"]


def test_recovered_calls_are_never_said_as_text_first() -> None:
    said = events(['{"name": "f", ', '"arguments": {"a": 1}}'])
    assert [kind for batch in said for kind, _ in batch] == ["Recovered"]


def test_feed_after_close_is_an_error_and_close_is_not() -> None:
    parser = tp.stream("hermes")
    parser.feed("<tool")
    first = parser.close()
    assert parser.close() is first
    with pytest.raises(tp.errors.ParserClosed):
        parser.feed("y")
    assert parser.last_events() != ()
    assert parser.last_events() == ()


def test_empty_chunks_and_nothing() -> None:
    parser = tp.stream("hermes")
    assert parser.feed("") == ()
    assert parser.feed(None) == ()
    result = parser.close()
    assert (result.raw, result.segments, result.calls) == ("", (), ())
    assert result.ok


def test_surrogate_halves_are_joined() -> None:
    parser = tp.stream("hermes")
    parser.feed("a\ud83d")
    parser.feed("\ude00b\ud83d")
    assert parser.close().raw == "a😀b\ud83d"


def test_long_runs_of_backticks_are_several() -> None:
    raw = "`" * 1000 + "\n" + CALL
    whole = tp.parse(raw, "hermes", TOOLS)
    assert in_pieces(raw, 1, "hermes", TOOLS) == whole


def test_a_held_text_longer_than_a_block_is_read_the_same() -> None:
    """Beyond a few blocks the tail is looked at only now and then; nothing may get lost by that."""
    body = "x" * 30_000
    raw = f'{{"name": "put", "arguments": {{"path": "{body}"}}}}'
    whole = tp.parse(raw, "hermes", TOOLS)
    assert [c.status for c in whole.calls] == ["ok"]
    assert in_pieces(raw, 7, "hermes", TOOLS) == whole


@pytest.mark.parametrize("size", [4, 1_000_000])
@pytest.mark.parametrize("lead", ["", '<tool_call>{"name": "f", "arguments": "', "<put><path>"])
@pytest.mark.exhaustive(13)
@each_case
def test_cost_is_linear(protocol: str, piece: str, size: int, lead: str) -> None:
    def parse(length: int) -> None:
        raw = lead + piece * (length // len(piece))
        in_pieces(raw, size, protocol, TOOLS)

    assert grows_linearly(parse, 3_000)


def test_a_look_far_back_costs_nothing_for_the_chunks_behind_it() -> None:
    def look_back(chunks: int) -> None:
        feed = Feed()
        for _ in range(chunks):
            feed.add("word")
            assert feed.text_of(Span(1, 4)) == "ord"
            feed.take(4)

    assert grows_linearly(look_back, 2_000)


@pytest.mark.parametrize("sizes", [(1, 2, 3, 4), (10,), (3, 3, 4), (4, 0, 6)])
def test_the_text_of_any_span_is_found_whatever_the_chunks(sizes: tuple[int, ...]) -> None:
    raw, feed, at = "0123456789", Feed(), 0
    for size in sizes:
        feed.add(raw[at : at + size])
        at += size
    spans = [(start, end) for start in range(11) for end in range(start, 11)]
    assert all(feed.text_of(Span(*span)) == raw[slice(*span)] for span in spans)


def test_many_coerced_values_are_traced_in_one_walk() -> None:
    items = [json.dumps({"n": str(i)}) for i in range(1500)]
    tools = [
        tool_named(
            "f",
            v={
                "type": "array",
                "items": {"type": "object", "properties": {"n": {"type": "integer"}}},
            },
        )
    ]
    raw = "<tool_call>" + json.dumps({"name": "f", "arguments": {"v": items}}) + "</tool_call>"
    (call,) = tp.parse(raw, "hermes", tools).calls
    assert call.arguments["v"][1499] == {"n": 1499}
    assert call.origin("/v/1499/n").span.of(raw) == "1499"
    assert len(call.steps) == 3000


HARD_TEXTS = [
    '{"n": ' + "1" * 5000 + "}",
    '{"n": 1e999999999999999999999}',
    '{"n": ' + "[" * 20_000 + "]" * 20_000 + "}",
    '{"n": "\ud83d \x00 \\ud83d"}',
    '{"\x00": {"": []}, "a/b~c": 1}',
    '{"n": NaN}',
    "[" * 20_000,
    '{"__proto__": {"constructor": 1}}',
]


@pytest.mark.parametrize("arguments", HARD_TEXTS, ids=range(len(HARD_TEXTS)))
@pytest.mark.parametrize("protocol", [*family_heads(), "auto"])
@pytest.mark.exhaustive(5)
def test_hard_texts_never_raise(protocol: str, arguments: str) -> None:
    import json
    import pickle

    for raw in (
        f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>',
        f"<put><path>{arguments}</path><o>{arguments}</o></put>",
        f"<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
        f"[f(a={arguments})]",
        f"```tool_call\n{arguments}\n```",
        arguments,
    ):
        result = tp.parse(raw, protocol, TOOLS, {"coerce": "middleware"})
        assert not any(p.code == "parser.failed" for p in result.all_problems())
        for call in result.calls:
            assert isinstance(call.arguments, dict)
        assert tp.ParseResult.from_dict(json.loads(result.to_json())) == result
        assert pickle.loads(pickle.dumps(result)) == result


FILLER = "A line of the answer that says nothing of calls.\n" * 90  # more than a block
CASE_TOOLS = json.loads((CORE / "parse_tools.json").read_text("utf-8"))


@asked_of("case", rows("parse.jsonl")[::3])
def test_chunks_longer_than_a_block_read_as_single_characters_do(case: dict[str, Any]) -> None:
    raw = case["raw"] + "\n" + FILLER + case["raw"] + "\n"
    assert tp.parse(raw, case["protocol"], CASE_TOOLS, case.get("options")) == in_pieces(
        raw, 1, case["protocol"], CASE_TOOLS, case.get("options")
    )


def test_a_body_longer_than_a_block_that_hides_its_closer() -> None:
    body = (
        '{"name": "put", "arguments": {"path": "' + "x" * 5000 + "</tool_call>" + "y" * 5000 + '"}}'
    )
    raw = f"<tool_call>{body}</tool_call>{CALL}"
    result = tp.parse(raw, "hermes", TOOLS)
    assert [c.name for c in result.calls] == ["put", "f"]
    assert result.calls[0].arguments["path"].endswith("y")


def test_text_that_only_looked_like_a_call_is_read_again_as_it_stands() -> None:
    """What is taken back must be the characters of its own place, though a later part of the chunk
    was fed already."""
    attempt = '<tool_call>{"name": "nobody", "arguments": {"why": "' + "w" * 300 + '"}}</tool_call>'
    lead = "```\n" + attempt + "\n```\n"
    raw = lead + "z" * (4096 + 700 - len(lead)) + f"\n```\n{CALL}\n```\n" * 80
    parser = tp.stream("hermes", TOOLS)
    for character in raw:
        parser.feed(character)
    result = tp.parse(raw, "hermes", TOOLS)
    assert result == parser.close()
    assert not any(call.ok for call in result.calls)


def test_an_answer_of_endless_refused_calls_ends_as_text() -> None:
    # Each of them takes as long as a call.
    tool = tool_named("f")
    raw = '<tool_call>"' * 600 + '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    result = tp.parse(raw, "hermes", [tool])
    assert len(result.calls) == 500
    assert not any(call.ok for call in result.calls)
    assert "call.too-many" in [problem.code for problem in result.problems]
    assert in_pieces(raw, 50, "hermes", [tool]) == result
