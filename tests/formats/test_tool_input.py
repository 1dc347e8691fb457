"""The input of a call while it is written: early, equal to the call's in the end, or taken back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import toolparse_lab as tp
from tests.growth import grows_linearly
from tests.middleware.test_parity import streamed
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.middleware import Answer, create_stream_parser, parse_generated_text

TOOLS = [
    tool_named(
        "write_file",
        path="string",
        mode="integer",
        tags={"type": "array", "items": {"type": "string"}},
        content="string",
    )
]
# All that may be damaged where a value is cut: quotes, escapes, entities, tags, white space.
CONTENT = (
    '\nif a < b & c: say("ü 😀\\n")\n\tto <b>x</b> &amp; C:\\dir\\new &lt; </content or 12%\n\n'
)
INPUT = {"path": "/tmp/a b.py", "mode": 3, "tags": ["x", "y"], "content": CONTENT * 3}
PROTOCOLS = tp.protocols()
# A bare call may be text up to its end, a message is read as a whole, and YAML folds its texts.
AT_THE_END = {"llama3_json", "openai_json", "openai_strict", "xlam_array", "yaml_xml"}


def shown_of(
    protocol: Any, chunks: Iterable[str], *, finish: str = "stop", **options: Any
) -> tuple[list[list[dict[str, Any]]], Answer]:
    """The inputs that each chunk shows, and the answer. The law of `streamed` holds for them."""
    middleware = tp.create_tool_middleware(protocol, **options)
    turn = middleware.transform_params({"messages": [], "tools": TOOLS})
    chunks = list(chunks)
    streamed(middleware.wrap_stream(turn), chunks, finish)
    stream = middleware.wrap_stream(turn)
    deltas = [stream.feed(chunk) for chunk in chunks]
    last, answer = stream.close(finish)
    return [[d["tool_input"] for d in ds if "tool_input" in d] for ds in [*deltas, last]], answer


def kinds(shown: list[list[dict[str, Any]]]) -> list[str]:
    return [part["type"].removeprefix("tool-input-") for parts in shown for part in parts]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.exhaustive(3, 1)
def test_the_input_of_every_format_grows_and_is_never_taken_back(protocol: str, size: int) -> None:
    text = PROTOCOLS[protocol].write_call(
        "write_file", tp.rjson.stringify(INPUT), tp.ToolSpec.of(TOOLS[0])
    )
    shown, answer = shown_of(protocol, (text[i : i + size] for i in range(0, len(text), size)))
    assert len(answer.tool_calls) == 1
    names = kinds(shown)
    assert (names[0], names[-1]) == ("start", "end")
    assert set(names[1:-1]) == {"delta"}
    early = sum(map(len, shown[: len(shown) // 2]))
    assert (early == 0) == (protocol in AT_THE_END)


HEAD = '<tool_call>{"name": "write_file", "arguments": {"path": "/tmp/ab'
REST = 'c", "mode": "3"}}</tool_call>'


@each_case
def test_an_input_ends_in_its_call_or_is_taken_back(
    rest: str, options: Any, expected: list[str], n_calls: int
) -> None:
    finish = "stop" if rest else "length"
    shown, answer = shown_of("hermes", [HEAD, rest], finish=finish, **options)
    assert [p["delta"] for p in shown[0] if "delta" in p] == ['{"path":"/tmp/ab']
    assert kinds(shown) == expected
    assert len(answer.tool_calls) == n_calls


def test_a_call_that_is_left_out_is_not_shown() -> None:
    middleware = tp.hermes_tool_middleware
    params = {"messages": [], "tools": TOOLS, "parallel_tool_calls": False}
    stream = middleware.wrap_stream(middleware.transform_params(params))
    assert stream.feed(HEAD + REST) == stream.feed(HEAD) == stream.feed(REST) == ()
    last, answer = stream.close("stop")
    shown = {delta["tool_input"]["id"] for delta in last if "tool_input" in delta}
    assert shown == {call["id"] for call in answer.tool_calls}


def test_an_id_of_the_text_is_the_calls_wherever_it_stands() -> None:
    head = '[TOOL_CALLS][{"name": "write_file", "arguments": {"path": "/tmp/ab'
    shown, answer = shown_of("mistral_v3", [head, 'c"}, "id": "a1b2c3d4e"}]'])
    assert answer.tool_calls[0]["id"] == "a1b2c3d4e"
    assert kinds(shown) == ["start", "delta", "error", "start", "delta", "end"]


def test_calls_of_one_body_have_inputs_of_their_own() -> None:
    call = '{"name": "write_file", "arguments": {"path": "/tmp/%s"}}'
    text = f"[TOOL_CALLS][{call % 'one'}, {call % 'two'}]"
    shown, answer = shown_of("mistral_v3", text)
    ids = [part["id"] for parts in shown for part in parts if part["type"] == "tool-input-start"]
    assert ids == [c["id"] for c in answer.tool_calls]


def test_a_call_that_was_a_thought_is_taken_back() -> None:
    shown, answer = shown_of("hermes", ["I could ", HEAD, REST, " or not.</think>No."])
    assert kinds(shown) == ["start", "delta", "error"]
    assert (answer.tool_calls, answer.finish_reason) == ((), "stop")


def test_parts_of_a_whole_answer_have_no_call_that_was_a_thought_or_an_example() -> None:
    call = HEAD + REST
    for text in (f"I could {call} or not.</think>No.", f"{call}\n\nShall I do it?"):
        assert tp.parse(text, "hermes", TOOLS).calls[0].status == "draft"
        parts = parse_generated_text(tp.protocols()["hermes"], text, TOOLS)
        assert "tool-call" not in [part["type"] for part in parts]
        assert call in "".join(part.get("text", "") for part in parts)


def test_parts_of_a_stream_show_it_as_well() -> None:
    parser = create_stream_parser(tp.protocols()["hermes"], TOOLS)
    parts = [parser.feed("Hi " + HEAD), parser.feed(REST), parser.close()]
    assert [[p["type"] for p in some] for some in parts] == [
        ["text-start", "text-delta", "text-end", "tool-input-start", "tool-input-delta"],
        ["tool-input-delta", "tool-input-end", "tool-call"],
        [],
    ]
    parser = create_stream_parser(tp.protocols()["hermes"], TOOLS)
    types = [p["type"] for p in [*parser.feed(HEAD), *parser.close()]]
    assert types[2:4] == ["tool-input-error", "text-start"]


@pytest.mark.parametrize("value", ['"%s"', '"%s', '["%s"]', "%s"])
@pytest.mark.parametrize("row", ["word ", "\\\\", '\\"', "&amp;", "</", "write_file path "])
@pytest.mark.exhaustive(5)
def test_showing_an_input_is_linear(value: str, row: str) -> None:
    middleware = tp.hermes_tool_middleware
    turn = middleware.transform_params({"messages": [], "tools": TOOLS})
    head = '<tool_call>{"name": "write_file", "arguments": {"path": '

    def read(size: int) -> None:
        stream = middleware.wrap_stream(turn)
        text = head + value % (row * size)
        for i in range(0, len(text), 16):
            stream.feed(text[i : i + 16])

    assert grows_linearly(read, 1_000)
