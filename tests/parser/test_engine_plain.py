"""Plain calls among other text are read in one look: a stream says the same of them."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.laws import examples
from tests.tools import tool_named
from toolparse_lab.core.types.call import LateAccount, ToolCall
from toolparse_lab.entry.parse import Reader
from toolparse_lab.parser.engine import StreamParser

TOOLS: list[dict[str, Any]] = [
    tool_named(
        "book",
        required=["city"],
        city="string",
        guests="integer",
        price={"type": "number", "minimum": 0},
        late="boolean",
    ),
    tool_named("now"),
    tool_named("tag", tags={"type": "array", "items": {"type": "string"}}),
]
TAGS = ("qwen3_coder_xml", "morph_xml", "glm45_newline", "glm47_compact", "seed_oss", "minimax_m2",
        "muse_atem", "mimo_compact", "hunyuan_v3", "telechat4", "dots", "step3",
        "anthropic_legacy")  # fmt: skip
OTHERS = ("hermes", "kimi_k2", "deepseek_v31", "mistral_v3", "mistral_v13_args", "openai_json",
          "llama3_json", "markdown_json", "glm4_9b", "harmony_channel", "minimax_m3", "gemma4",
          "deepseek_v32_dsml", "bfcl_verbose_xml", "pythonic", "yaml_xml")  # fmt: skip
VALUES = st.sampled_from(
    ["Oslo", "2", " 2\n", "12.50", "-1", "true", "False", "yes", "null", "", "\n", "\r\n", "a\nb",
     "a > b", "a < b", "[1]", "&amp;", "&", "]", "é😀", "\ud83d", "007", "\\n", "</city>", "<book>",
     "a &lt; b", "&#65;&amp;lt;", "<p>x &amp; y</p>", "a < b &lt; c", "\n\nx\n", "\nx\r\n",
     '["a &lt; b"]', '["<a> &lt; b"]', "<![CDATA[&amp;]]>", "<![CDATA[x", "a <b>b</b> & c",
     "a.py", "print(1)", '["a", "b c"]', "[]", '["a", 1]', "Oslo, NO", "x+y-z /w", "no.py", "e.g. it",
     "a <b> c", "a </city, c", "a city> c", "a </param c", "a <value>b</value> c", " <i>\n", "a <\n"]
)  # fmt: skip
NAMES = st.sampled_from(["city", "guests", "price", "late", "tags", "other", "city"])
CALLS = st.tuples(
    st.sampled_from(["book", "book", "now", "tag", "unknown"]),
    st.lists(st.tuples(NAMES, VALUES), max_size=4),
)
GAPS = st.sampled_from(
    [
        "\n", "", "\n\n", " ", "\r\n", " and ", "\n```\n", "`", "> ", "<think>", "</think>", "\n{",
        "\n[",
    ]
)  # fmt: skip


def element(protocol: str, name: str, pairs: list[tuple[str, str]]) -> str:
    """A call as the format has it, with values written as they are."""
    if protocol == "morph_xml":
        return f"<{name}>" + "".join(f"<{k}>{v}</{k}>" for k, v in pairs) + f"</{name}>"
    form = tp.protocols()[protocol]
    marks = {f"p{i}": f"VALUE{i}" for i in range(len(pairs))}
    text = form.write_call(name, json.dumps(marks))
    for i, (key, value) in enumerate(pairs):
        text = text.replace(f"VALUE{i}", value).replace(f'"p{i}"', f'"{key}"')
        text = text.replace(f"=p{i}>", f"={key}>").replace(f">p{i}<", f">{key}<")
    return text


@cache
def teach(protocol: str, name: str) -> None:
    """Let a protocol learn how plain calls of a format are written."""
    call = tp.protocols()[protocol].write_call("book", '{"city":"Oslo"}')
    for _ in range(4):
        tp.parse(f"I look.\n{call}", name, TOOLS)


@pytest.mark.parametrize("protocol", [*TAGS, *OTHERS])
@pytest.mark.parametrize("auto", [False, True])
@settings(max_examples=examples(15))
@given(
    calls=st.lists(st.tuples(GAPS, CALLS), min_size=1, max_size=4),
    before=st.sampled_from(["", "So:\n", "> ", "`", "I'm at it.\n\n"]),
)
@example(calls=[("\n", ("book", [("city", "Oslo"), ("guests", "2")]))] * 3, before="I'm\n")
@example(
    calls=[("\n", ("book", [("city", "Oslo")])), ("", ("book", [("city", "Oslo")]))], before="I'm\n"
)
@example(calls=[("\n", ("book", [("city", "Oslo"), ("city", "Rome")]))], before="")
@pytest.mark.exhaustive(3)
def test_one_look_says_what_a_stream_says(
    protocol: str, auto: bool, calls: list[tuple[str, Any]], before: str
) -> None:
    name = "auto" if auto else protocol
    teach(protocol, name)
    write = element if protocol in TAGS else as_json
    raw = before + "".join(write(protocol, *call) + gap for gap, call in calls)
    result = tp.parse(raw, name, TOOLS)
    parser = tp.stream(name, TOOLS)
    parser.feed(raw)
    streamed = parser.close()
    assert result == streamed
    assert result.to_dict() == streamed.to_dict()
    assert spans_of(result) == spans_of(streamed)


def as_json(protocol: str, name: str, pairs: list[tuple[str, str]]) -> str:
    try:
        return tp.protocols()[protocol].write_call(name, json.dumps(dict(pairs)))
    except tp.errors.ToolparseError:
        return "a call that cannot be written"


def spans_of(result: tp.ParseResult) -> list[Any]:
    return [([step.span for step in c.steps], c.origins.get()) for c in result.calls]


@pytest.mark.parametrize("name", ["qwen3_coder_xml", "morph_xml", "hermes", "minimax_m2"])
def test_plain_calls_are_read_in_one_look(name: str) -> None:
    write = element if name in TAGS else as_json
    call = write(name, "book", [("city", "Oslo"), ("guests", "2")])
    teach(name, name)
    reader = Reader(tp.protocols()[name], TOOLS)
    parser = reader._parser(silent=True)
    parser.feed(f"I'm at it.\n\n{call}\n{call.replace('Oslo', 'Rome')}\nDone.\n{call}")
    assert isinstance(parser, StreamParser)
    assert len(parser.close().calls) == 3
    assert parser.is_plain


def test_a_file_name_is_plain_text_in_yaml() -> None:
    call = "<book>\ncity: src/main.py, line(3)\n</book>"
    teach("yaml_xml", "yaml_xml")
    parser = Reader(tp.protocols()["yaml_xml"], TOOLS)._parser(silent=True)
    parser.feed(f"I'm at it.\n\n{call}")
    assert isinstance(parser, StreamParser)
    assert parser.close().calls[0].arguments == {"city": "src/main.py, line(3)"}
    assert parser.is_plain


def is_late(call: ToolCall) -> bool:
    """Nobody has asked yet how the arguments came about."""
    slot = vars(ToolCall)["steps"].fset.__self__  # behind the property
    return type(slot.__get__(call)) is LateAccount


def late_call() -> ToolCall:
    teach("qwen3_coder_xml", "qwen3_coder_xml")
    call = element("qwen3_coder_xml", "book", [("city", "Oslo"), ("guests", "2")])
    return tp.parse(call, "qwen3_coder_xml", TOOLS).calls[0]


@pytest.mark.parametrize("part", ["source_json", "steps", "origins"])
def test_the_account_is_worked_out_by_the_first_question(part: str) -> None:
    call = late_call()
    getattr(call, part)
    assert not is_late(call)
    assert call.source_json == '{"city":"Oslo","guests":"2"}'
    assert [step.rule for step in call.steps] == ["coerce.integer-from-string"]
    assert call.origin("/guests").span == call.steps[0].span


def test_a_late_call_is_copied_compared_and_kept_like_any_other() -> None:
    call = late_call()
    settled = late_call()
    assert settled.steps
    for other in (copy.copy(late_call()), copy.deepcopy(late_call()), replace(late_call())):
        assert other == call
    assert pickle.loads(pickle.dumps(late_call())) == settled
    assert hash(call) == hash(settled)
    assert repr(call) == repr(settled)
    with pytest.raises(AttributeError):
        call.steps = ()  # type: ignore[misc]
