"""Delimiters of one's own of which one begins, ends or holds another: read alike in any pieces."""

from __future__ import annotations

import pytest

import toolparse_lab as tp
from tests.laws import check_all
from toolparse_lab.formats.base import Protocol

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]
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
def test_every_split_gives_the_same(pair: tuple[str, str]) -> None:
    protocol = tp.json_mix_protocol(*pair)
    results = [check_all(text, protocol, TOOLS) for text in texts(*pair)]
    assert [call.arguments for call in results[1].calls] == [{"a": "1"}, {"a": "1"}]


@pytest.mark.parametrize("pair", PAIRS[:6], ids=repr)
def test_a_spec_reads_as_the_protocol_does(pair: tuple[str, str]) -> None:
    protocol, made = tp.json_mix_protocol(*pair), spec_of(*pair)
    for text in texts(*pair):
        whole, own = tp.parse(text, protocol, TOOLS), check_all(text, made, TOOLS)
        assert [(c.status, c.arguments_json) for c in own.calls] == [
            (c.status, c.arguments_json) for c in whole.calls
        ]
