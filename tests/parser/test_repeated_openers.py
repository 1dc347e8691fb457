"""An opener that stands several times in a row begins one call."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.growth import grows_linearly
from tests.laws import check_all
from toolparse_lab.core.types import CallDelta, CallEnd, CallStart, Retract

TOOLS: list[dict[str, Any]] = [
    {"name": "book", "parameters": {"properties": {"guests": {"type": "integer"}}}},
    {"name": "now", "parameters": {"properties": {}}},
]
HERMES = '<tool_call>\n{"name": "book", "arguments": {"guests": 2}}\n</tool_call>'
QWEN = (
    "<tool_call>\n<function=book>\n<parameter=guests>\n2\n</parameter>\n</function>\n</tool_call>"
)
MISTRAL = '[TOOL_CALLS] [{"name": "book", "arguments": {"guests": 2}}]'
HARMONY = (
    '<|start|>assistant<|channel|>commentary to=functions.book <|message|>{"guests": 2}<|call|>'
)
GEMMA = "<|tool_call>call:book{guests:2}<tool_call|>"
OPENERS = {
    "hermes": ("<tool_call>", HERMES),
    "qwen3_coder_xml": ("<tool_call>", QWEN),
    "mistral_v3": ("[TOOL_CALLS]", MISTRAL),
    "harmony_channel": (HARMONY[: HARMONY.index("{")], HARMONY),
    "gemma4": ("<|tool_call>", GEMMA),
}
GAPS = ("", "\n", " \n\n")


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("protocol", OPENERS)
@pytest.mark.parametrize("auto", [False, True])
def test_one_call_begins(protocol: str, auto: bool, times: int, gap: str) -> None:
    opener, call = OPENERS[protocol]
    raw = f"So.\n{(opener + gap) * times}{call}"
    protocol = "auto" if auto else protocol
    result = tp.parse(raw, protocol, TOOLS)
    (read,) = result.calls
    assert (read.name, read.arguments, read.status) == ("book", {"guests": 2}, "ok")
    assert read.verdict in ("repaired (lossless)", "clean")
    (problem,) = (p for p in read.problems if p.code == "call.repeated-opener")
    assert problem.span is not None
    assert problem.span.of(raw) == (opener + gap) * times
    assert read.origin("/guests").span.of(raw) == "2"
    assert result.text.strip() == "So."
    check_all(raw, protocol, TOOLS)


@pytest.mark.parametrize("end", ["", " ", "<tool", "<tool_call", "\n\nwords", "</tool_call>", "{"])
def test_openers_without_a_call_are_one_call_that_is_refused(end: str) -> None:
    raw = "<tool_call>\n<tool_call> <tool_call>" + end
    for protocol in ("hermes", "qwen3_coder_xml", "auto"):
        result = tp.parse(raw, protocol, TOOLS)
        (call,) = result.calls
        assert not call.ok
        assert result.content() == raw
        check_all(raw, protocol, TOOLS)


def test_whose_call_it_is_depends_on_the_last_opener() -> None:
    assert tp.parse("<tool_call>" * 3 + QWEN, "auto", TOOLS).calls[0].protocol == "qwen3_coder_xml"
    assert tp.parse("<tool_call>" * 3 + HERMES, "auto", TOOLS).calls[0].protocol == "hermes"


def test_another_header_is_another_call() -> None:
    other = HARMONY.replace("book", "now").replace('{"guests": 2}', "{}")
    raw = HARMONY[: HARMONY.index("{")] + other
    result = tp.parse(raw, "harmony_channel", TOOLS)
    assert [(c.name, c.ok) for c in result.calls] == [("book", False), ("now", True)]
    check_all(raw, "harmony_channel", TOOLS)


def test_the_name_of_the_last_header_has_its_place() -> None:
    opener, call = OPENERS["harmony_channel"]
    raw = opener * 2 + call
    (read,) = tp.parse(raw, "harmony_channel", TOOLS).calls
    assert read.name_span is not None
    assert read.name_span.start == raw.rindex("book")


def test_a_stream_begins_and_ends_one_call() -> None:
    parser = tp.stream("hermes", TOOLS)
    raw = "<tool_call>\n" * 3 + HERMES
    events = [event for char in raw for event in parser.feed(char)]
    parser.close()
    events += parser.last_events()
    kinds = [type(e) for e in events if type(e) not in (CallDelta, Retract)]
    assert kinds == [CallStart, CallEnd]


@pytest.mark.parametrize("gap", [*GAPS, "x"])
def test_many_openers_are_read_in_linear_time(gap: str) -> None:
    raw = ("<tool_call>" + gap) * 3000
    assert len(tp.parse(raw, "auto", TOOLS).calls) <= (3000 if gap == "x" else 1)


@pytest.mark.exhaustive(12)
@pytest.mark.parametrize("end", ["", '"'])
@pytest.mark.parametrize("protocol", sorted(tp.protocols()))
def test_the_cost_of_repeated_openers_grows_with_their_number(protocol: str, end: str) -> None:
    heads = tp.protocols()[protocol].envelope.heads({})
    opener = next((head for head in heads if head.strip()), "{") + end
    assert grows_linearly(lambda size: tp.parse((opener * size)[:size], protocol, TOOLS), 2_000)
