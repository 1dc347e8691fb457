"""Chunks that providers send and the mock does not: several things in one, nothing in one, calls of
their own."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.bridge import NOW, TOOLS, WEATHER, joined, litellm
from toolparse_lab.formats.registry import protocols
from toolparse_lab.integrations.litellm_bridge.stream import ChunkReader
from toolparse_lab.middleware import create_tool_middleware


@pytest.fixture(scope="module")
def shapes() -> Any:
    return litellm().types.utils


class Stream:
    """Chunks of one stream, made and read."""

    def __init__(self, shapes: Any, protocol: str = "hermes", *, streams: bool = True) -> None:
        middleware = create_tool_middleware(protocol)
        turn = middleware.transform_params(
            {"messages": [{"role": "user", "content": "x"}], "tools": TOOLS}
        )
        self.shapes = shapes
        self.reader = ChunkReader(shapes, middleware, turn, streams=streams)
        self.sent: list[Any] = []

    def feed(self, *choices: Any) -> list[Any]:
        chunk = self.shapes.ModelResponseStream(
            id="one", created=1, model="m", choices=list(choices)
        )
        if not choices:
            chunk.choices = []
        got = list(self.reader.feed(chunk))
        self.sent += got
        return got

    def choice(
        self, index: int = 0, finish: str | None = None, logprobs: Any = None, **delta: Any
    ) -> Any:
        return self.shapes.StreamingChoices(
            index=index, delta=self.shapes.Delta(**delta), finish_reason=finish, logprobs=logprobs
        )

    def say(
        self, index: int = 0, finish: str | None = None, logprobs: Any = None, **delta: Any
    ) -> list[Any]:
        return self.feed(self.choice(index, finish, logprobs, **delta))

    def close(self, *, cut: bool = False) -> list[Any]:
        got = list(self.reader.close(cut=cut))
        self.sent += got
        return got


def test_plain_text_is_passed_on_as_the_same_object(shapes: Any) -> None:
    stream = Stream(shapes)
    stream.say(content="Hello ", role="assistant")
    chunk = shapes.ModelResponseStream(choices=[stream.choice(content="there")])
    assert stream.reader.feed(chunk) == (chunk,)
    assert stream.reader.feed(chunk)[0] is chunk


def test_a_chunk_without_choices_ends_nothing_before_the_end(shapes: Any) -> None:
    stream = Stream(shapes)
    assert len(stream.feed()) == 1
    stream.say(content=NOW)
    stream.say(finish="stop")
    last = stream.feed()
    assert last[-1].choices == []
    assert [c.choices[0].finish_reason for c in last[:-1]] == [None, "tool_calls"]
    assert [c[1] for c in joined(stream.sent)["calls"]] == ["now"]


def test_the_role_waits_for_the_first_chunk_that_is_sent(shapes: Any) -> None:
    stream = Stream(shapes)
    assert stream.say(content="<tool", role="assistant") == []
    stream.say(content=NOW.removeprefix("<tool"))
    stream.say(finish="stop")
    stream.close()
    assert [c.choices[0].delta.role for c in stream.sent] == ["assistant", None]


def test_what_comes_with_held_text_is_sent_at_once(shapes: Any) -> None:
    stream = Stream(shapes)
    logprobs = {"content": [{"token": "<tool", "logprob": -0.5, "bytes": None, "top_logprobs": []}]}
    (first,) = stream.say(
        content="<tool", reasoning_content="hm", role="assistant", logprobs=logprobs
    )
    assert first.choices[0].delta.reasoning_content == "hm"
    assert first.choices[0].delta.content is None
    assert first.choices[0].logprobs is not None
    stream.close(cut=True)
    assert joined(stream.sent) == {"content": "<tool", "thought": "hm", "calls": [], "reasons": []}


def test_text_in_the_last_chunk_is_read_too(shapes: Any) -> None:
    stream = Stream(shapes)
    stream.say(content=NOW[:20])
    stream.say(content=NOW[20:] + " ok", finish="stop")
    stream.close()
    said = joined(stream.sent)
    assert (said["content"].strip(), [c[1] for c in said["calls"]], said["reasons"]) == (
        "ok",
        ["now"],
        ["tool_calls"],
    )


def test_calls_of_the_provider_and_of_the_text_have_indices_of_their_own(shapes: Any) -> None:
    stream = Stream(shapes)
    own = {
        "id": "own",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city":'},
    }
    stream.say(content=NOW)
    stream.say(tool_calls=[{"index": 0, **own}])
    stream.say(content=NOW)
    stream.say(tool_calls=[{"index": 0, "function": {"arguments": '"Oslo"}'}}])
    stream.say(finish="stop")
    stream.close()
    assert [c[1:] for c in joined(stream.sent)["calls"]] == [
        ("get_weather", '{"city":"Oslo"}'),
        ("now", "{}"),
        ("now", "{}"),
    ]


@pytest.mark.parametrize("protocol", ["hermes", "pythonic", "react", "granite3", "mistral_v11"])
@pytest.mark.parametrize("size", [1, 4, 17])
def test_a_call_of_the_provider_s_that_the_text_has_too_is_sent_once(
    shapes: Any, protocol: str, size: int
) -> None:
    arguments = '{"city":"Oslo"}'
    text = protocols()[protocol].write_call("get_weather", arguments, tp.ToolSpec.of(WEATHER))
    stream = Stream(shapes, protocol)
    for at in range(0, len(text), size):
        stream.say(content=text[at : at + size])
    function = {"name": "get_weather", "arguments": arguments}
    stream.say(tool_calls=[{"index": 0, "id": "own", "type": "function", "function": function}])
    stream.say(finish="tool_calls")
    stream.close()
    assert [c[1:] for c in joined(stream.sent)["calls"]] == [("get_weather", arguments)]


@pytest.mark.parametrize("streams", [True, False])
def test_the_end_of_a_call_waits_for_the_end_of_the_answer(shapes: Any, streams: bool) -> None:
    stream = Stream(shapes, streams=streams)
    for letter in f"I could call\n{OSLO}\nNo.\n</think>\n\n{NOW}":
        stream.say(content=letter)
    stream.say(finish="stop")
    pieces = "".join(
        call.function.arguments or ""
        for chunk in stream.sent
        for call in chunk.choices[0].delta.tool_calls or ()
    )
    assert pieces == ('{"city":"O' if streams else "")
    stream.close()
    assert (stream.reader.retracted is not None) == streams
    if not streams:
        assert [c[1] for c in joined(stream.sent)["calls"]] == ["now"]


def test_several_choices_in_one_chunk(shapes: Any) -> None:
    stream = Stream(shapes)
    stream.feed(stream.choice(0, content="a"), stream.choice(1, content=NOW))
    stream.feed(stream.choice(0, finish="length"), stream.choice(1, finish="stop"))
    stream.close()
    assert joined(stream.sent, 0) == {
        "content": "a",
        "thought": "",
        "calls": [],
        "reasons": ["length"],
    }
    assert joined(stream.sent, 1)["reasons"] == ["tool_calls"]
    assert [c[1] for c in joined(stream.sent, 1)["calls"]] == ["now"]


def test_after_the_end_nothing_is_changed(shapes: Any) -> None:
    stream = Stream(shapes)
    stream.say(content="a")
    stream.close()
    assert stream.close() == []
    assert stream.say(content=NOW)[0].choices[0].delta.content == NOW


def own_call(arguments: str, index: int = 0) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {"index": index, "id": "own", "type": "function", "function": function}


OSLO = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'


@pytest.mark.parametrize("own", [["{}"], [""], ['{"city":', ' "Oslo"}']])
@pytest.mark.parametrize("text_first", [True, False])
def test_a_call_that_is_in_the_text_as_well_is_sent_once(
    shapes: Any, own: list[str], text_first: bool
) -> None:
    stream = Stream(shapes)
    stream.say(content="Look: ")
    pieces = [own_call(piece) for piece in own]
    for say_text in (text_first, not text_first):
        if say_text:
            stream.say(content=OSLO)
        else:
            for piece in pieces:
                stream.say(tool_calls=[piece])
    stream.say(finish="tool_calls")
    stream.close()
    (call,) = joined(stream.sent)["calls"]
    assert call[1:2] == ("get_weather",)
    assert json.loads(call[2])["city"] == "Oslo"


def test_another_call_than_that_of_the_text_is_sent_too(shapes: Any) -> None:
    stream = Stream(shapes)
    stream.say(content=OSLO)
    stream.say(tool_calls=[own_call('{"city": "Rome"}')])
    stream.say(tool_calls=[own_call("{}", 1) | {"function": {"name": "now", "arguments": "{}"}}])
    stream.say(finish="tool_calls")
    stream.close()
    calls = joined(stream.sent)["calls"]
    assert [call[1] for call in calls] == ["get_weather", "get_weather", "now"]
    assert '"Rome"' in calls[1][2]


def test_a_name_in_every_piece_and_a_leaked_mark_are_sent_as_the_tool(shapes: Any) -> None:
    stream = Stream(shapes)
    for piece in ('{"city":', ' "Rome"}'):
        call = own_call(piece)
        call["function"]["name"] += "<|channel|>json"
        stream.say(tool_calls=[call])
    stream.say(finish="tool_calls")
    stream.close()
    assert [c[1:] for c in joined(stream.sent)["calls"]] == [("get_weather", '{"city": "Rome"}')]
