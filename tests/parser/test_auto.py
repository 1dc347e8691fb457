"""`auto`: every format at once, the same as each format alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import SHIPPED, load
from tests.tables import asked_of, each_case
from toolparse_lab.formats.auto import AUTO, may_hold_call
from toolparse_lab.formats.base import Opening
from toolparse_lab.formats.registry import protocol_of

CASES = [c for c in load("formats.jsonl", SHIPPED) if c["format"] in tp.protocols()]


# Formats whose clean text is that of another one: they differ in what they make of white space.
# So do those of one envelope that differ in what they write.
SAME_TEXT = {
    "mimo_compact": "qwen3_coder_xml",
    "glm47_compact": "glm45_newline",
    "mistral_v11": "mistral_v3",
    "mistral_v13_args": "mistral_v3",
    "mistral_v11_call_id": "mistral_v3",
    "phi4_tool_tag": "granite3",
}
# Calls without delimiters are recovered by `auto`, which names no format for them; the others are
# JSON in the tags of a format that reads such bodies too.
RECOVERED = {"llama3_json", "xlam_array", "markdown_json"}
TAKEN = {"glm4_9b"}

AUTO_HEADS = AUTO.envelope.heads({})
BEHIND_A_HEAD = [
    first + name + last
    for first in ("", ">", "=", " ", ' name="', " name='", "name=", ": ", "_", "s>", "\n", "|>")
    for name in ("f", "f:f", "<f>", "")
    for last in (
        "", ">", '">', "'>", ">{}", ">\n<parameter=a>", '"><param name="a">', "\n<arg_key>",
    )
]  # fmt: skip


@asked_of("case", [pytest.param(c, id=c["id"]) for c in CASES])
def test_auto_reads_a_clean_answer_as_its_own_format_does(case: dict[str, Any]) -> None:
    alone = tp.parse(case["raw"], case["format"], case["tools"])
    both = tp.parse(case["raw"], "auto", case["tools"])
    assert both.protocol == "auto"
    assert may_hold_call(case["raw"]) or not both.calls
    assert [(c.name, c.arguments_json, c.status) for c in both.calls] == [
        (c.name, c.arguments_json, c.status) for c in alone.calls
    ]
    format_id = case["format"]
    if format_id in RECOVERED | TAKEN:
        return
    assert {c.protocol for c in both.calls} <= {SAME_TEXT.get(format_id, format_id)}
    assert both.segments == alone.segments


def test_two_formats_in_one_answer() -> None:
    tools = [{"name": "f"}]
    raw = (
        '<f/> then <tool_call>{"name": "f"}</tool_call> then ```x\n```tool_call\n{"name": "f"}\n```'
    )
    result = tp.parse(raw, "auto", tools)
    assert [c.protocol for c in result.calls][:2] == ["morph_xml", "hermes"]


def test_auto_only_reads() -> None:
    with pytest.raises(tp.errors.UnwritableCall):
        AUTO.write_call("f", "{}")


def test_protocols_by_id_and_alias() -> None:
    for protocol in tp.protocols().values():
        assert protocol_of(protocol) is protocol
        for name in (protocol.id, *protocol.aliases):
            assert protocol_of(name) is protocol
    with pytest.raises(TypeError):
        tp.protocols()["x"] = None  # type: ignore[index]


def test_tools_in_the_place_of_a_protocol_are_told_so() -> None:
    for tools in ([{"name": "f"}], {"name": "f"}):
        with pytest.raises(tp.errors.UnknownProtocol, match="the protocol is missing") as caught:
            tp.parse("", tools)  # type: ignore[arg-type]
        assert 'tp.parse(text, "auto", tools)' in str(caught.value)


@asked_of("protocol", ["auto", *tp.protocols()])
def test_openers_of_elements_are_text_where_no_tool_is_known(protocol: str) -> None:
    raw = "see <f> and <!-- a --> and <function"
    result = tp.parse(raw, protocol)
    assert not any(c.ok for c in result.calls)
    assert "".join(s.span.of(raw) for s in result.segments) == raw


@asked_of("case", [pytest.param(c, id=c["id"]) for c in CASES])
def test_a_sure_body_opens_what_asking_all_formats_opens(case: dict[str, Any]) -> None:
    from toolparse_lab.formats.auto import AnyEnvelope

    short, long = AnyEnvelope(), AnyEnvelope()
    # The long way asks every format whose opener begins here.
    long._heads.tokens = {}
    vars(long._heads)["sure"] = lambda *_: None
    tools = {tool.name: tool for tool in tp.core.toolspec.tool_specs(case["tools"])}
    for at in range(len(case["raw"])):
        found = short.open(case["raw"], at, True, tools)
        compared = long.open(case["raw"], at, True, tools)
        if isinstance(found, Opening) and found.kind == "markup":
            # Markup is nobody's: it has no body that its owner would read.
            assert isinstance(compared, Opening)
            compared = replace(compared, owner=found.owner)
        assert found == compared


@pytest.mark.parametrize("literal", AUTO_HEADS)
@pytest.mark.exhaustive(3)
def test_a_format_that_is_not_asked_about_a_head_opens_no_text_that_begins_with_it(
    literal: str,
) -> None:
    members = [protocol.among_others for protocol in tp.protocols().values()]
    spared = [member for member in members if not member.envelope.may_open(literal)]
    tools = {tool.name: tool for tool in tp.core.toolspec.tool_specs([{"name": "f"}])}
    for rest in BEHIND_A_HEAD:
        for protocol in spared:
            assert protocol.envelope.open(literal + rest, 0, True, tools) is None


# `tp.detect`: the format a text is in comes first, and the reason says why.


FORMATS = load("formats.jsonl", SHIPPED)
KNOWN = [c for c in FORMATS if c["format"] in tp.protocols()]
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
GOOD = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


@pytest.mark.parametrize("case", KNOWN, ids=lambda c: str(c["id"]))
@pytest.mark.exhaustive(3)
def test_the_right_format_is_first(case: dict[str, Any]) -> None:
    first = tp.detect(case["raw"], case["tools"])[0]
    wanted = tp.parse(case["raw"], case["format"], case["tools"])
    # Another format may read the very same text as the same calls; then nothing tells them apart.
    same = tp.parse(case["raw"], first.protocol, case["tools"])
    assert first.protocol == case["format"] or [
        (c.name, c.arguments, c.edits) for c in same.calls
    ] == [(c.name, c.arguments, c.edits) for c in wanted.calls]
    assert {*first.spans} == {c.segment.span for c in wanted.calls}


@each_case
def test_the_reason_says_what_was_read(text: str, said: str) -> None:
    assert str(tp.detect(text, TOOLS)[0]) == said


def test_of_two_formats_that_read_equally_well_the_one_with_more_text_is_first() -> None:
    fence = '```tool_call\n{"name": "f", "arguments": {"a": 1}}\n```\n'
    for text, order in (
        (GOOD + fence * 2, ["gemma", "hermes"]),
        (GOOD * 2 + fence, ["hermes", "gemma"]),
    ):
        found = [c.protocol for c in tp.detect(text, TOOLS) if c.score == 1 and c.protocol in order]
        assert found == order


def test_a_text_without_calls_has_no_format() -> None:
    assert tp.detect("I would rather talk.", TOOLS) == ()
    assert tp.detect("") == ()


def test_a_call_outside_every_format_is_still_found() -> None:
    (candidate,) = tp.detect("f(a=1)", TOOLS)
    assert str(candidate) == "auto 0.40: 1 call was read; outside every format's delimiters."


@pytest.mark.parametrize(
    "text",
    [f"<think>Perhaps {GOOD}</think>", f"<think>Perhaps {GOOD}", f"Perhaps {GOOD}</think> No."],
)
def test_of_a_call_in_the_reasoning_the_option_that_reads_it_is_named(text: str) -> None:
    first = tp.detect(text, TOOLS)[0]
    assert first.protocol == "hermes"
    assert first.score == 0.4
    assert "reasoning='none'" in first.why
    options = tp.ParseOptions(reasoning="none")
    assert tp.parse(text, first.protocol, TOOLS, options).calls[0].ok
    # A call behind the thoughts is the answer, and nothing is said about them.
    assert tp.detect(f"<think>Hm.</think>{GOOD}", TOOLS)[0].why == "1 call was read."
