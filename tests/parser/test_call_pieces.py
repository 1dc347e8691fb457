"""Calls that a server streams: what real servers do to index, id, name and arguments, undone by
each of the three readers of streams, or refused."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.bridge import litellm
from tests.laws import examples
from tests.tables import each_case
from toolparse_lab.core.types.call_pieces import CallPieces
from toolparse_lab.integrations.litellm_bridge.stream import ChunkReader
from toolparse_lab.middleware import create_tool_middleware
from toolparse_lab.runner.answer import Answer

# Names that begin with one another, and one that is a word twice.
NAMES = ["go", "gopher", "find", "find_berth", "tartar", "x.y"]
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "n": {"type": "integer"},
        "inner": {"type": "object"},
        "list": {"type": "array"},
    },
    "additionalProperties": False,
}
TOOLS = [{"name": name, "parameters": SCHEMA} for name in NAMES]

Piece = dict[str, Any]
Call = tuple[str, dict[str, Any]]


def piece(index: Any = 0, id: Any = None, name: Any = None, arguments: Any = None) -> Piece:
    function = {"name": name, "arguments": arguments}
    entry = {"index": index, "id": id, "type": "function"}
    named = {key: value for key, value in entry.items() if value is not None}
    return {**named, "function": {k: v for k, v in function.items() if v is not None}}


def chunk(*pieces: Piece, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    delta = {**delta, "tool_calls": list(pieces)} if pieces else delta
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "s", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def stream(pieces: list[Piece]) -> list[dict[str, Any]]:
    return [*map(chunk, pieces), chunk(finish="tool_calls")]


def executable(chunks: Any) -> list[Call]:
    result = tp.parse(chunks, tools=TOOLS)
    return [(call.name, call.arguments) for call in result.calls if call.ok and call.valid]


def read_by_runner(chunks: list[dict[str, Any]]) -> list[Call]:
    answer = Answer(native=True)
    for one in chunks:
        answer.take_chunk(one)
    result = tp.parse(answer.raw, "openai_json", TOOLS)
    return [(call.name, call.arguments) for call in result.calls if call.ok and call.valid]


def read_by_bridge(chunks: list[dict[str, Any]]) -> list[Call]:
    """What a client joins out of the bridge's chunks: by index, each text behind the one before."""
    shapes = litellm().types.utils
    middleware = create_tool_middleware("hermes")
    asked = {"messages": [{"role": "user", "content": "x"}], "tools": TOOLS}
    reader = ChunkReader(shapes, middleware, middleware.transform_params(asked))
    sent: list[Any] = []
    for one in chunks:
        sent += reader.feed(shapes.ModelResponseStream(**one))
    sent += reader.close()
    calls: dict[int, list[str]] = {}
    for delta in [choice.delta for one in sent for choice in one.choices]:
        for call in delta.tool_calls or ():
            said = calls.setdefault(call.index, ["", ""])
            said[0] += call.function.name or ""
            said[1] += call.function.arguments or ""
    message = [{"function": {"name": name, "arguments": text}} for name, text in calls.values()]
    return executable({"choices": [{"message": {"content": None, "tool_calls": message}}]})


A, B = '{"text": "Turku"}', '{"text": "Oslo"}'
TURKU, OSLO = {"text": "Turku"}, {"text": "Oslo"}


@each_case
def test_pieces(pieces: list[Piece], wanted: list[Any]) -> None:
    chunks = stream(pieces)
    for read in (executable, read_by_runner, read_by_bridge):
        assert read(chunks) == [tuple(call) for call in wanted]


def test_an_empty_object_stands_for_text_that_comes() -> None:
    # Not so where it is text: that may be the arguments of a call of its own.
    chunks = stream([piece(0, "a", "find", {}), piece(0, "a", None, A)])
    assert executable(chunks) == read_by_runner(chunks) == [("find", TURKU)]
    assert read_by_bridge(chunks) == []
    assert executable(stream([piece(0, "a", "find", "{}"), piece(0, "a", None, A)])) == []


def test_several_pieces_without_an_index_in_one_delta_are_of_several_calls() -> None:
    first = chunk(piece(None, "a", "find", A[:5]), piece(None, "b", "go", B[:5]))
    second = chunk(piece(None, arguments=A[5:]), piece(None, arguments=B[5:]))
    assert executable([first, second, chunk(finish="tool_calls")]) == [
        ("find", TURKU),
        ("go", OSLO),
    ]


def test_a_whole_message_has_whole_calls_whatever_their_index() -> None:
    calls = [piece(0, None, "find", A), piece(0, None, "find", A)]
    message = {"choices": [{"message": {"content": None, "tool_calls": calls}}]}
    assert executable(message) == [("find", TURKU), ("find", TURKU)]


@each_case
def test_finish_reasons_in_odd_places(ends: list[str | None]) -> None:
    pieces = [piece(0, "a", "find"), piece(arguments=A[:9]), piece(arguments=A[9:])]
    chunks = [chunk(one, finish=end) for one, end in zip(pieces, ends, strict=True)]
    assert executable(chunks) == [("find", TURKU)]
    assert read_by_runner(chunks) == [("find", TURKU)]
    assert read_by_bridge(chunks) == [("find", TURKU)]


def test_a_finish_reason_beside_the_choice_or_inside_the_delta_counts() -> None:
    for last in (chunk(finish_reason="length"), {**chunk(), "finish_reason": "length"}):
        captured = tp.Captured.of([chunk(piece(0, "a", "find", A[:9])), last])
        assert (captured.finish_reason, captured.cut) == ("length", False)


# The property: a list of calls, as some server would stream it, is read as that list. The ways that
# can be undone are `undone`; under all others no call is executable that was not made.

_TEXTS = st.text('ab {}[]":,\\\n', max_size=8)
_LEAVES = st.one_of(_TEXTS, st.integers(-99, 99), st.booleans(), st.none())
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=4,
)
_ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "text": _TEXTS,
        "n": st.integers(-9, 9),
        "inner": st.dictionaries(_TEXTS, _VALUES, max_size=2),
        "list": st.lists(_VALUES, max_size=2),
    },
)
_CALLS = st.lists(st.tuples(st.sampled_from(NAMES), _ARGUMENTS), min_size=1, max_size=3)
_WAYS = st.fixed_dictionaries(
    {
        "index": st.sampled_from(["own", "zero", "none"]),
        "id": st.sampled_from(["first", "every", "late", "none", "new"]),
        "name": st.sampled_from(["first", "every", "cut", "late"]),
        "arguments": st.sampled_from(["cut", "object", "grows"]),
        "by_turns": st.booleans(),
    }
)


def undone(ways: dict[str, Any]) -> bool:
    """Whether the way a server streams calls says which piece is of which call."""
    index, id, name = ways["index"], ways["id"], ways["name"]
    if index == "own":
        # Text that grows closes early, so that a name after it may be that of another call.
        return ways["arguments"] != "grows" or name in ("first", "cut") or id in ("first", "every")
    if ways["arguments"] == "grows":
        return id in ("first", "every") and name != "late"
    # A name that comes late cannot say that a call begins; a new id of its own can.
    return name != "late" or id in ("first", "every", "new")


def rendered(calls: list[Call], ways: dict[str, Any], draw: Any) -> list[Piece]:
    """The pieces of calls in the way of some server."""
    queues = [_pieces_of(number, call, ways, draw) for number, call in enumerate(calls)]
    if not (ways["by_turns"] and ways["index"] == "own"):
        return [one for queue in queues for one in queue]
    pieces = [queue.pop(0) for queue in queues]  # calls begin in their order
    while waiting := [queue for queue in queues if queue]:
        pieces.append(draw(st.sampled_from(waiting)).pop(0))
    return pieces


def _pieces_of(number: int, call: Call, ways: dict[str, Any], draw: Any) -> list[Piece]:
    name, arguments = call
    text = json.dumps(arguments)
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=3)))
    bounds = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
    parts: list[Any] = [text[a:b] for a, b in pairwise(bounds)]
    if ways["arguments"] == "object":
        parts = [arguments]
    elif ways["arguments"] == "grows":
        parts = [text[:end] for end in bounds[1:]]

    names: list[Any] = [name] + [None] * (len(parts) - 1)
    if ways["name"] == "every":
        names = [name] * len(parts)
    elif ways["name"] == "late":
        names.reverse()
    if ways["name"] == "cut":
        # Halves that are equal look like a name that is repeated.
        places = [at for at in range(1, len(name)) if name[:at] != name[at:]]
        at = draw(st.sampled_from(places))
        names = [name[:at], name[at:], *[None] * len(parts)]
        parts = [None, None, *parts]
    elif draw(st.booleans()) and ways["name"] == "first":
        names, parts = [name, *[None] * len(parts)], ["", *parts]

    count = len(parts)
    own = f"call_{number}"
    kinds: dict[str, list[Any]] = {
        "first": [own] + [None] * (count - 1),
        "every": [own] * count,
        "late": [None] * (count - 1) + [own],
        "none": [None] * count,
        "new": [f"{own}_{i}" for i in range(count)],
    }
    ids = kinds[str(ways["id"])]
    index = {"own": number, "zero": 0, "none": None}[ways["index"]]
    return [piece(index, *rest) for rest in zip(ids, names, parts, strict=True)]


@settings(max_examples=examples(40), deadline=None)
@given(_CALLS, _WAYS, st.data())
def test_calls_come_out_as_they_were_made(
    calls: list[Call], ways: dict[str, Any], data: st.DataObject
) -> None:
    # No server is known that cuts names under new ids, or repeats arguments there.
    if ways["id"] == "new":
        ways["name"] = "first" if ways["name"] == "cut" else ways["name"]
        ways["arguments"] = "cut" if ways["arguments"] == "grows" else ways["arguments"]
    chunks = stream(rendered(calls, ways, data.draw))
    read = {"capture": executable(chunks), "runner": read_by_runner(chunks)}
    for reader, found in read.items():
        if undone(ways):
            assert found == calls, reader
        else:
            assert all(call in calls for call in found), reader


@pytest.mark.parametrize("ids", [["a"], [str(number) for number in range(60_000)]])
def test_many_pieces_cost_no_more_than_their_characters(ids: list[str]) -> None:
    pieces = CallPieces()
    for number in range(60_000):
        pieces.take(0, ids[number % len(ids)], "find", '{"')
    assert len(pieces.to_list()) == len(ids)
