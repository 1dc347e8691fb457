"""`tp.compare`: one text read by every protocol and by parsers of others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

import toolparse_lab as tp
from tests.render_samples import HOSTILE
from tests.tables import asked_of
from toolparse_lab.core.errors import BadOptions, UnknownProtocol
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.views import render_ansi, render_result
from toolparse_lab.views.marks import marks_of
from toolparse_lab.views.stages import parts_of

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
TEXT = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'


def test_every_protocol_reads_the_text_and_the_best_is_first() -> None:
    compared = tp.compare(TEXT, TOOLS)
    names = [r.name for r in compared.readings]
    assert names[0] == "hermes"
    assert {*family_heads(), "auto"} <= {*names} <= {*tp.protocols(), "auto"}
    assert {r.agrees for r in compared.readings if r.calls} == {"A"}
    for reading in compared.readings:
        assert reading.result == tp.parse(TEXT, reading.name, TOOLS)


def test_letters_tell_who_agrees() -> None:
    said: dict[str, Any] = {
        "same": lambda _: [{"name": "f", "arguments": {"a": 1}}],
        "uncoerced": lambda _: [{"name": "f", "arguments": {"a": "1"}}],
        "other": lambda _: [{"name": "f", "arguments": {"a": 2}}],
        "twice": lambda _: [{"name": "f", "arguments": {"a": 1}}] * 2,
        "unknown": lambda _: [{"name": "g"}],
        "silent": lambda _: None,
    }
    compared = tp.compare(TEXT, TOOLS, ["hermes"], said)
    assert [(r.name, r.agrees) for r in compared.readings] == [
        ("hermes", "A"), ("same", "A"), ("uncoerced", ""), ("other", "B"), ("twice", "C"),
        ("unknown", ""), ("silent", ""),
    ]  # fmt: skip
    assert [(c.status, c.valid) for c in compared["uncoerced"].calls] == [("ok", False)]
    assert [(c.status, c.valid) for c in compared["unknown"].calls] == [("unknown_tool", False)]


def test_the_order_of_keys_and_the_form_of_numbers_make_no_difference() -> None:
    text = '<tool_call>{"name": "g", "arguments": {"a": 1, "b": {"c": 2, "d": 3}}}</tool_call>'
    other = {"name": "g", "arguments": {"b": {"d": 3.0, "c": 2}, "a": 1}}
    assert tp.compare(text, None, ["hermes"], {"other": lambda _: [other]})["other"].agrees == "A"


def test_without_tools_every_call_that_can_be_read_counts() -> None:
    compared = tp.compare(TEXT, None, ["hermes"], {"other": lambda _: [{"name": "g"}]})
    assert [r.executable for r in compared.readings] == [(("f", '{"a":"1"}'),), (("g", "{}"),)]


def test_failures_of_others_are_their_readings() -> None:
    compared = tp.compare(TEXT, TOOLS, ["hermes"], {"json": json.loads, "words": str.split})
    assert [(compared["json"].failure or "").split(":")[0], compared["json"].calls] == [
        "JSONDecodeError",
        (),
    ]
    assert "without a name" in (compared["words"].failure or "")


def test_options_hold_for_every_protocol() -> None:
    compared = tp.compare(TEXT, TOOLS, options={"coerce": "none"})
    assert compared["hermes"].n_coercions == 0
    assert not compared["hermes"].executable


def test_a_response_object_is_read_as_its_text() -> None:
    response = {
        "choices": [{"message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}]
    }
    seen: list[str] = []
    compared = tp.compare(response, TOOLS, ["hermes"], {"spy": seen.append})
    assert seen == [compared.raw] == [TEXT]


def test_bad_input() -> None:
    with pytest.raises(UnknownProtocol):
        tp.compare(TEXT, TOOLS, ["hermse"])
    with pytest.raises(BadOptions, match="also holds parsers"):
        tp.compare(TEXT, TOOLS, ["hermes"], {3: len})
    with pytest.raises(BadOptions, match="two readings of one name"):
        tp.compare(TEXT, TOOLS, ["hermes"], {"hermes": json.loads})
    with pytest.raises(KeyError, match="there are hermes"):
        tp.compare(TEXT, TOOLS, ["hermes"])["gemma"]


def test_the_frame_holds_what_the_readings_say() -> None:
    compared = tp.compare(TEXT, TOOLS, ["hermes", "gemma"], {"json": json.loads})
    frame = compared.frame()
    assert list(frame["reading"]) == ["hermes", "gemma", "json"]
    assert json.loads(frame["calls_json"][0]) == [{"name": "f", "arguments": {"a": 1}}]
    assert frame["n_executable"].tolist()[:2] == [1, 0]
    assert frame[["n_calls", "text", "n_repairs"]].isna().iloc[2].all()
    assert frame["text"][1] == TEXT
    broken = tp.compare("<tool_call>{</tool_call>", None, ["hermes"]).frame()
    assert json.loads(broken["calls_json"][0]) == [{"name": "", "arguments": None}]
    assert broken["error_codes"][0]


@asked_of("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_only_shown(hostile: str) -> None:
    text = f'<tool_call>{{"name": {json.dumps(hostile)}, "arguments": {{}}}}</tool_call>{hostile}'

    def fails(_: str) -> None:
        raise ValueError(hostile)

    bundle = tp.compare(text, None, ["hermes"], {hostile: fails})._repr_mimebundle_()
    html = bundle["text/html"].lower()
    assert "<script" not in html
    assert "<img" not in html
    assert bundle["text/plain"].replace("\n", "").isprintable() or hostile.isascii()


def test_long_texts_are_not_shown_once_a_reading() -> None:
    html = tp.compare(TEXT + "x" * 40_000, TOOLS, ["hermes"])._repr_mimebundle_()["text/html"]
    assert len(html.partition("</style>")[2]) < 10_000
    assert "debug()" in html


def test_comparing_and_showing_need_no_pandas() -> None:
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "import toolparse_lab as tp\n"
        "c = tp.compare('x', protocols=['hermes']); c._repr_mimebundle_()\n"
        "try: c.frame()\n"
        "except tp.errors.MissingExtra as e: print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install '.[lab]'" in said.stdout


# Readings of a refused call: up to five, of JSON and of tags, and they stand in every view.


REFUSED_TOOLS = [
    {
        "name": "note",
        "parameters": {
            "type": "object",
            "properties": {n: {"type": "string"} for n in ("text", "path", "taxt")},
        },
    }
]
TEXTS = {
    "hermes": '<tool_call>{"name": "note", "arguments": {"text": "a\\n\\}n<b>"}}</tool_call>',
    "yaml_xml": '<note>\ntxt: "<i>"\n</note>',
    "qwen3_coder_xml": "<tool_call>\n<function=note>\n<parameter=txt>\n<i>\n</parameter>\n"
    "</function>\n</tool_call>",
}


@asked_of("protocol", sorted(TEXTS))
def test_a_refused_call_shows_what_it_may_be(protocol: str) -> None:
    result = tp.parse(TEXTS[protocol], protocol, REFUSED_TOOLS)
    (call,) = result.calls

    assert not call.valid
    assert 1 <= len(call.readings) <= 5
    assert all(reading.name == "note" and reading.edits for reading in call.readings)
    assert "It may be note {" in result.why()
    assert "it may be note {" in render_ansi(result)
    html = render_result(result)
    assert 'class="badge bad">✗ refused</span>' in html
    assert not re.search("<i>|n<b>", html)
    assert tp.ParseResult.from_dict(result.to_dict()) == result


DOUBLE_KEYS = {
    '{"text": "a", "path": "x", "text": "b"}': ('"text": "a"', '"text": "b"'),
    "{'text': 'a', 'path': {'q': [1, 2]}, 'path': 'b, \"c',}": (
        "'path': {'q': [1, 2]}",
        "'path': 'b, \"c'",
    ),
    '{"text": {"q": "}", "q": 2}, "path": "x"}': ('"q": "}"', '"q": 2'),
}


@asked_of("arguments", DOUBLE_KEYS)
def test_a_key_with_two_values_shows_both_and_marks_both(arguments: str) -> None:
    text = f'<tool_call>{{"name": "note", "arguments": {arguments}}}</tool_call>'
    result = tp.parse(text, "hermes", REFUSED_TOOLS)
    (call,) = result.calls
    assert not call.valid
    assert call.problems[0].code == "decode.duplicate-key"
    # The first value, then the second: what each leaves out is marked.
    first, again = call.readings
    assert first.arguments != again.arguments
    assert {e.rule for e in first.edits} >= {"rjson.double-key"}
    marked = [mark.span.of(text) for mark in marks_of(result) if mark.label.startswith("one of")]
    assert tuple(marked) == DOUBLE_KEYS[arguments]
    doubtful = [node for node in parts_of(result).nodes if node.get("doubt")]
    assert len(doubtful) == 1
    assert " or " in doubtful[0]["text"]


def test_of_several_such_keys_nothing_is_made_up() -> None:
    text = '<tool_call>{"name": "note", "arguments": {"text": 1, "text": 2, "text": 3}}</tool_call>'
    assert tp.parse(text, "hermes", REFUSED_TOOLS).calls[0].readings == ()
