"""Protocols made from data: what they read and write, the laws on them, and what is said of a wrong
spec."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import check_all
from tests.tables import each_case, every_case
from tests.tools import tool_named
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.formats.base import Protocol

TOOLS = [tool_named("tide", port="string", days="integer")]
CALL = '{"port":"a <b> </call> c","days":3}'


@each_case
def test_what_is_written_reads_back_under_the_laws(spec: dict[str, Any]) -> None:
    protocol = tp.Protocol.from_spec(spec)
    assert protocol == tp.Protocol.from_spec(**spec) == pickle.loads(pickle.dumps(protocol))
    text = protocol.write_call("tide", CALL, tool_specs(TOOLS)[0])
    for raw in (
        text,
        f"a {text} b",
        text + "\n" + text,
        text[:-3],
        text[:-12],
        text[4:],
        text.replace('"', "'"),
    ):
        check_all(raw, protocol, TOOLS)
    calls = tp.parse(f"a {text} b", protocol, TOOLS).calls
    assert [(c.name, c.arguments_json, c.ok) for c in calls] == [("tide", CALL, True)]
    assert "QQ" in protocol.format_tool_response({"name": "tide", "content": "QQ"})
    assert "tide" in protocol.format_tools(TOOLS)


def test_results_between_delimiters_of_the_spec() -> None:
    protocol = tp.Protocol.from_spec(
        id="b", opener="[C]", closer="[/C]", response_opener="[R]", response_closer="[/R]",
        response_name_key="tool", response_content_key="said",
    )  # fmt: skip
    assert (
        protocol.format_tool_response({"name": "t", "content": 1}) == '[R]{"tool":"t","said":1}[/R]'
    )
    tags = tp.Protocol.from_spec(id="b", body="tags", response_opener="[R]", response_closer="[/R]")
    assert tags.format_tool_response({"name": "t", "content": 1}) == "[R]\n1\n[/R]"


@every_case
def test_a_wrong_spec_names_its_field(field: str, spec: Any) -> None:
    with pytest.raises(tp.errors.BadSpec) as caught:
        tp.Protocol.from_spec(spec)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert caught.value.expected


def test_a_misspelt_field_has_a_suggestion() -> None:
    with pytest.raises(tp.errors.BadSpec, match="did you mean opener"):
        tp.Protocol.from_spec(id="x", opner="<c>", closer="</c>")  # type: ignore[call-arg]


# Delimiters of one's own of which one begins, ends or holds another: read alike in any pieces.


HELD_TOOLS = [
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
]
PAIRS = [
    ("<<", "<<end"), ("@", "@@"), ("@@", "@"), ("[[CALL", "[[CALL]]END"), ("<t>", "<t></t>"),
    ("CALL:", "CALL:END"), ("%%", "%%%%"), ("%%", "%%"), ("```x", "```"), ("<|c|>", "<|c|>/"),
    ("<call", "<call>"), ("<t>", "</t>\n"), ("<t>\n", "</t>"), ("<t>", "\n</t>"), ("<t>", " </t> "),
    ("«", "«»"), ("a1", "a1b"), ("</t", "<"),
]  # fmt: skip


def texts(opener: str, closer: str) -> list[str]:
    """Sound, damaged and cut texts between two delimiters."""
    first = opener + '{"name":"f","arguments":{"a":"1"}}' + closer
    quoted = opener + '{"name":"f","arguments":{"a":"x ' + closer + ' y"}}' + closer
    whole = f"hi {first} mid {quoted}{first} end"
    return [
        whole,
        first + first,
        whole[:-5],
        whole[:-9],
        first.replace('"1"}}', '"1"}'),
        first.replace('"1"', '"1') + first,
        opener + opener + '{"name":"f"}' + closer,
        closer + first,
        opener + '{"name":"f"}' + opener + '{"name":"f"}' + closer,
        opener + '{"name":"f"}\n' + closer[:-1],
        opener + '{"name":"f"}' + closer[:1] + closer,
    ]


def spec_of(opener: str, closer: str) -> Protocol:
    """The same delimiters by a spec."""
    return tp.Protocol.from_spec(id="own", opener=opener, closer=closer)


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
@pytest.mark.exhaustive(3)
def test_every_split_gives_the_same(pair: tuple[str, str]) -> None:
    protocol = tp.json_mix_protocol(*pair)
    results = [check_all(text, protocol, HELD_TOOLS) for text in texts(*pair)]
    assert [call.arguments for call in results[1].calls] == [{"a": "1"}, {"a": "1"}]


@pytest.mark.parametrize("pair", PAIRS[:6], ids=repr)
def test_a_spec_reads_as_the_protocol_does(pair: tuple[str, str]) -> None:
    protocol, made = tp.json_mix_protocol(*pair), spec_of(*pair)
    for text in texts(*pair):
        whole, own = (
            tp.parse(text, protocol, HELD_TOOLS),
            check_all(text, made, HELD_TOOLS),
        )
        assert [(c.status, c.arguments_json) for c in own.calls] == [
            (c.status, c.arguments_json) for c in whole.calls
        ]
