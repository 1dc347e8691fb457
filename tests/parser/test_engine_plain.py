"""Calls that are read in one look: the long way says the same of them."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.laws import examples
from tests.tools import tool_named
from toolparse_lab.core.types.call import LateAccount, ToolCall
from toolparse_lab.parser.body import BodyReader

TOOLS: list[dict[str, Any]] = [
    tool_named(
        "book",
        required=["city"],
        city="string",
        guests="integer",
        price={"type": "number", "minimum": 0},
        late="boolean",
    ),
    {"name": "now", "parameters": {"type": "object", "properties": {}}},
    {
        "name": "tag",
        "parameters": {"properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
    },
]
PROTOCOLS = ("qwen3_coder_xml", "morph_xml", "glm45_newline", "glm47_compact", "seed_oss",
             "minimax_m2", "muse_atem", "mimo_compact", "hunyuan_v3", "telechat4", "dots", "step3",
             "anthropic_legacy")  # fmt: skip
VALUES = st.sampled_from(
    ["Oslo", "2", " 2\n", "12.50", "-1", "true", "False", "yes", "null", "", "\n", "\r\n", "a\nb",
     "a > b", "a < b", "[1]", "&amp;", "&", "]", "é😀", "\ud83d", "007", "\\n", "</city>", "<book>",
     "a &lt; b", "&#65;&amp;lt;", "<p>x &amp; y</p>", "a < b &lt; c", "\n\nx\n", "\nx\r\n",
     '["a &lt; b"]', '["<a> &lt; b"]', "<![CDATA[&amp;]]>", "<![CDATA[x", "a <b>b</b> & c",
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


@contextmanager
def long_way() -> Iterator[None]:
    """Nothing is read in one look."""
    own = BodyReader.read_plain
    BodyReader.read_plain = lambda self, opening, opener: False  # type: ignore[method-assign]
    try:
        yield
    finally:
        BodyReader.read_plain = own  # type: ignore[method-assign]


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


def all_of(raw: str, protocol: str) -> tuple[Any, ...]:
    """All that a parse says of a text: the result, origins and spans, and the events."""
    result = tp.parse(raw, protocol, TOOLS)
    parser = tp.stream(protocol, TOOLS)
    events = parser.feed(raw)
    streamed = parser.close()
    assert streamed == result
    events += parser.last_events()
    spans = [[step.span for step in call.steps] for call in result.calls]
    return result, result.to_dict(), spans, events


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("auto", [False, True])
@settings(max_examples=examples(40))
@given(
    calls=st.lists(st.tuples(GAPS, CALLS), min_size=1, max_size=4),
    before=st.sampled_from(["", "So:\n", "> ", "`"]),
)
@example(calls=[("\n", ("book", [("city", "Oslo"), ("guests", "2")]))] * 3, before="")
@example(
    calls=[("\n", ("book", [("city", "Oslo")])), ("", ("book", [("city", "Oslo")]))], before=""
)
@example(calls=[("\n", ("book", [("city", "Oslo"), ("city", "Rome")]))], before="")
@pytest.mark.exhaustive(3)
def test_one_look_says_what_the_long_way_says(
    protocol: str, auto: bool, calls: list[tuple[str, Any]], before: str
) -> None:
    raw = before + "".join(element(protocol, *call) + gap for gap, call in calls)
    name = "auto" if auto else protocol
    quick = all_of(raw, name)
    with long_way():
        assert all_of(raw, name) == quick


# The others have no opener of their own, or tags that a codec of their own reads.
PLAIN = (
    "qwen3_coder_xml", "morph_xml", "seed_oss", "minimax_m2", "muse_atem", "mimo_compact", "dots",
    "step3",
)  # fmt: skip


@pytest.mark.parametrize("protocol", PLAIN)
def test_plain_calls_are_read_in_one_look(protocol: str) -> None:
    call = element(protocol, "book", [("city", "Oslo"), ("guests", "2")])
    result = tp.parse("\n".join([call] * 3), protocol, TOOLS)
    assert [c.arguments for c in result.calls] == [{"city": "Oslo", "guests": 2}] * 3
    assert [is_late(c) for c in result.calls] == [True] * 3


@pytest.mark.parametrize("protocol", [name for name in PLAIN if name != "morph_xml"])
def test_other_markup_in_a_value_is_read_in_one_look(protocol: str) -> None:
    texts = ["a <b>b</b> & c", "a </city, c"]
    late = [
        is_late(tp.parse(element(protocol, "book", [("city", text)]), protocol, TOOLS).calls[0])
        for text in texts
    ]
    assert late == [True, False]


def is_late(call: ToolCall) -> bool:
    """Nobody has asked yet how the arguments came about."""
    slot = vars(ToolCall)["steps"].fset.__self__  # behind the property
    return type(slot.__get__(call)) is LateAccount


def late_call() -> ToolCall:
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
