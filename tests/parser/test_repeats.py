"""The same calls twice in one answer: in steps and in a list of them all, in two fences, in blocks
side by side."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

import toolparse_lab as tp
from tests.growth import grows_linearly
from tests.laws import check_all, in_pieces
from tests.tables import asked_of
from toolparse_lab.core.types import CallDelta, CallEnd, CallStart, Retract

TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {key: {"type": "integer"}},
        "required": [key]}}
    for name, key in (("find_berth", "nights"), ("dig_well", "depth"), ("ring_bell", "times"))
]  # fmt: skip
F, G, H = ("find_berth", '{"nights":2}'), ("dig_well", '{"depth":3}'), ("ring_bell", '{"times":1}')
Call = tuple[str, str]
# Groups of calls, with words between them, and the calls that are meant.
PLANS: dict[str, tuple[list[list[Call]], list[Call]]] = {
    "steps and the list": ([[F], [G], [F, G]], [F, G]),
    "steps and the list in another order": ([[F], [G], [G, F]], [F, G]),
    "a list twice": ([[F, G], [F, G]], [F, G]),
    "a list three times": ([[F, G], [F, G], [F, G]], [F, G]),
    "a part of the list again": ([[F, G, H], [G]], [F, G, H]),
    "a list with one call more": ([[F], [F, G]], [F, G]),
    "other calls": ([[F], [G], [H]], [F, G, H]),
    "the same call twice in a list": ([[F, F, G]], [F, F, G]),
    "the same list of two equal calls": ([[F, F], [F, F]], [F, F]),
    "one more of the same": ([[F], [F, F]], [F, F]),
}
FORMATS = (
    "hermes", "qwen3_coder_xml", "morph_xml", "glm45_newline", "mistral_v13_args", "gemma4",
    "deepseek_v31", "kimi_k2", "minimax_m2", "bfcl_concise_xml", "bfcl_python_tag", "lfm2",
)  # fmt: skip
WORDS = ("Step 1: ", "And then:\n", "最后的答案：\n", "The final answer is:\n")


def in_format(protocol: str, groups: list[list[Call]]) -> str:
    """The answer, each group in the format's own way, with words before it."""
    writer = tp.protocols()[protocol]
    texts = [writer.join_calls([writer.write_call(*call) for call in group]) for group in groups]
    return "\n".join(word + text for word, text in zip(WORDS, texts, strict=False))


def in_python(groups: list[list[Call]], fence: str) -> str:
    """The answer as Python's calls on lines of their own, or in fences."""
    parts = []
    for word, group in zip(WORDS, groups, strict=False):
        calls = [
            f"{n}({', '.join(f'{k}={v}' for k, v in json.loads(a).items())})" for n, a in group
        ]
        text = f"[{', '.join(calls)}]" if len(calls) > 1 else calls[0]
        parts.append(
            f"{word.rstrip()}\n\n{f'```{fence}{chr(10)}{text}{chr(10)}```' if fence else text}"
        )
    return "\n\n".join(parts)


def runs_of(result: tp.ParseResult) -> Counter[Call]:
    """The calls that may be executed, and how often."""
    return Counter((call.name, call.arguments_json) for call in result.calls if call.valid)


def check(text: str, protocol: str, groups: list[list[Call]], meant: list[Call]) -> None:
    result = tp.parse(text, protocol, TOOLS)
    assert runs_of(result) == Counter(meant), text
    assert len(result.calls) == sum(map(len, groups))
    others = [call for call in result.calls if not call.valid]
    assert all(call.status == "draft" for call in others)
    assert all("call.repeated-set" in {p.code for p in call.problems} for call in others)
    assert in_pieces(text, 1, protocol, TOOLS) == result


@asked_of("plan", PLANS)
@pytest.mark.parametrize("protocol", FORMATS)
def test_calls_that_are_said_again_behind_words_run_once(protocol: str, plan: str) -> None:
    groups, meant = PLANS[plan]
    text = in_format(protocol, groups)
    for name in (protocol, "auto"):
        check(text, name, groups, meant)


@asked_of("plan", PLANS)
@pytest.mark.parametrize("fence", ["", "python", "json"])
def test_calls_on_lines_and_in_fences_run_once(fence: str, plan: str) -> None:
    groups, meant = PLANS[plan]
    check(in_python(groups, fence), "auto", groups, meant)


@pytest.mark.parametrize("protocol", FORMATS)
def test_blocks_side_by_side_are_all_meant(protocol: str) -> None:
    # Where a block is a list of all calls, a second list that says the same is the same.
    writer = tp.protocols()[protocol]
    blocks = [writer.join_calls([writer.write_call(*call)]) for call in (F, F, G)]
    for between in ("\n", "\n\n"):
        result = tp.parse(between.join(blocks), protocol, TOOLS)
        assert runs_of(result) == Counter([F, G] if writer.codec.list_head else [F, F, G])


@pytest.mark.parametrize("protocol", [*tp.protocols()])
@pytest.mark.exhaustive(3, 1)
def test_the_second_half_of_an_answer_that_says_the_first_again_is_a_draft(protocol: str) -> None:
    writer = tp.protocols()[protocol]
    is_list = bool(writer.codec.list_head)
    for calls in ([F], [F, G]) if is_list else ([F, G],):
        half = writer.join_calls([writer.write_call(*call) for call in calls])
        for between in ("\n", " \n", "\n\n"):
            text = half + between + half
            for name in (protocol, "auto"):
                if protocol in ("openai_json", "openai_strict", "llama3_json"):
                    continue  # one message; objects in a row
                check(text, name, [calls, calls], calls)
                # A list that comes again in another order, and with a call more.
                others = [writer.write_call(*call) for call in (*calls[::-1], H)]
                result = tp.parse(half + "\n" + writer.join_calls(others), name, TOOLS)
                assert runs_of(result)[H] == 1


@pytest.mark.parametrize("protocol", ["lfm2", "llama4_python_start", "nemotron_nano_v2", "apertus"])
def test_a_list_behind_its_wrapper_runs_once_and_leaves_no_text(protocol: str) -> None:
    writer = tp.protocols()[protocol]
    text = writer.join_calls([writer.write_call(*call) for call in (F, G)])
    start, end = writer.codec.edges
    inner = f"[{text[len(start) : -len(end)]}]"
    for again in (inner, inner + end.lstrip("]"), "\n" + inner + end.lstrip("]")):
        for name in (protocol, "auto"):
            result = tp.parse(text + again, name, TOOLS)
            assert runs_of(result) == Counter([F, G]), text + again
            assert not result.text.strip()


def test_the_laws_hold_for_calls_that_are_said_again() -> None:
    for protocol in ("hermes", "morph_xml"):
        check_all(in_format(protocol, PLANS["steps and the list"][0]), protocol, TOOLS)


def test_calls_in_reasoning_that_the_answer_closes_are_no_first_set() -> None:
    call = tp.protocols()["hermes"].write_call(*F)
    result = tp.parse(f"I think of {call} here.</think>\nSo:\n{call}", "hermes", TOOLS)
    assert [c.status for c in result.calls] == ["draft", "ok"]


def test_a_call_said_again_does_not_spoil_the_verdict() -> None:
    call = tp.protocols()["hermes"].write_call(*F)
    assert tp.parse(f"{call}\nOnce more, all of it:\n{call}", "hermes", TOOLS).verdict == "clean"


# An opener that stands several times in a row begins one call.


OPENED_TOOLS: list[dict[str, Any]] = [
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


@asked_of("gap", GAPS)
@asked_of("times", [1, 2, 5])
@pytest.mark.parametrize("protocol", OPENERS)
@pytest.mark.parametrize("auto", [False, True])
def test_one_call_begins(protocol: str, auto: bool, times: int, gap: str) -> None:
    opener, call = OPENERS[protocol]
    raw = f"So.\n{(opener + gap) * times}{call}"
    protocol = "auto" if auto else protocol
    result = tp.parse(raw, protocol, OPENED_TOOLS)
    (read,) = result.calls
    assert (read.name, read.arguments, read.status) == ("book", {"guests": 2}, "ok")
    assert read.verdict in ("repaired (lossless)", "clean")
    (problem,) = (p for p in read.problems if p.code == "call.repeated-opener")
    assert problem.span is not None
    assert problem.span.of(raw) == (opener + gap) * times
    assert read.origin("/guests").span.of(raw) == "2"
    assert result.text.strip() == "So."
    check_all(raw, protocol, OPENED_TOOLS)


@pytest.mark.parametrize("end", ["", " ", "<tool", "<tool_call", "\n\nwords", "</tool_call>", "{"])
def test_openers_without_a_call_are_one_call_that_is_refused(end: str) -> None:
    raw = "<tool_call>\n<tool_call> <tool_call>" + end
    for protocol in ("hermes", "qwen3_coder_xml", "auto"):
        result = tp.parse(raw, protocol, OPENED_TOOLS)
        (call,) = result.calls
        assert not call.ok
        assert result.content() == raw
        check_all(raw, protocol, OPENED_TOOLS)


def test_whose_call_it_is_depends_on_the_last_opener() -> None:
    assert (
        tp.parse("<tool_call>" * 3 + QWEN, "auto", OPENED_TOOLS).calls[0].protocol
        == "qwen3_coder_xml"
    )
    assert tp.parse("<tool_call>" * 3 + HERMES, "auto", OPENED_TOOLS).calls[0].protocol == "hermes"


def test_another_header_is_another_call() -> None:
    other = HARMONY.replace("book", "now").replace('{"guests": 2}', "{}")
    raw = HARMONY[: HARMONY.index("{")] + other
    result = tp.parse(raw, "harmony_channel", OPENED_TOOLS)
    assert [(c.name, c.ok) for c in result.calls] == [("book", False), ("now", True)]
    check_all(raw, "harmony_channel", OPENED_TOOLS)


def test_the_name_of_the_last_header_has_its_place() -> None:
    opener, call = OPENERS["harmony_channel"]
    raw = opener * 2 + call
    (read,) = tp.parse(raw, "harmony_channel", OPENED_TOOLS).calls
    assert read.name_span is not None
    assert read.name_span.start == raw.rindex("book")


def test_a_stream_begins_and_ends_one_call() -> None:
    parser = tp.stream("hermes", OPENED_TOOLS)
    raw = "<tool_call>\n" * 3 + HERMES
    events = [event for char in raw for event in parser.feed(char)]
    parser.close()
    events += parser.last_events()
    kinds = [type(e) for e in events if type(e) not in (CallDelta, Retract)]
    assert kinds == [CallStart, CallEnd]


@pytest.mark.exhaustive(12)
@pytest.mark.parametrize("end", ["", '"'])
@pytest.mark.parametrize("protocol", sorted(tp.protocols()))
def test_the_cost_of_repeated_openers_grows_with_their_number(protocol: str, end: str) -> None:
    heads = tp.protocols()[protocol].envelope.heads({})
    opener = next((head for head in heads if head.strip()), "{") + end
    assert grows_linearly(
        lambda size: tp.parse((opener * size)[:size], protocol, OPENED_TOOLS), 2_000
    )
