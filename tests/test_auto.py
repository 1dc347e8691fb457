"""`auto`: every format at once, the same as each format alone."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.protocols.registry import protocol_of

from .core_cases import SHIPPED, load

CASES = [c for c in load("formats.jsonl", SHIPPED) if c["format"] in tp.protocols()]


@pytest.mark.parametrize("case", [pytest.param(c, id=c["id"]) for c in CASES])
def test_auto_reads_a_clean_answer_as_its_own_format_does(case: dict[str, Any]) -> None:
    alone = tp.parse(case["raw"], case["format"], case["tools"])
    both = tp.parse(case["raw"], "auto", case["tools"])
    assert both.protocol == "auto"
    assert [(c.name, c.arguments_json, c.status) for c in both.calls] == [
        (c.name, c.arguments_json, c.status) for c in alone.calls
    ]
    assert {c.protocol for c in both.calls} <= {case["format"]}
    assert both.segments == alone.segments


def test_two_formats_in_one_answer() -> None:
    tools = [{"name": "f"}]
    raw = (
        '<f/> then <tool_call>{"name": "f"}</tool_call> then ```x\n```tool_call\n{"name": "f"}\n```'
    )
    result = tp.parse(raw, "auto", tools)
    assert [c.protocol for c in result.calls][:2] == ["morph_xml", "hermes"]


def test_auto_only_reads() -> None:
    from toolparse_lab.protocols.auto import AUTO

    with pytest.raises(tp.errors.UnwritableCall):
        AUTO.write_call("f", "{}")


def test_protocols_by_id_and_alias() -> None:
    for protocol in tp.protocols().values():
        assert protocol_of(protocol) is protocol
        for name in (protocol.id, *protocol.aliases):
            assert protocol_of(name) is protocol
    with pytest.raises(TypeError):
        tp.protocols()["x"] = None  # type: ignore[index]


def test_a_wrong_name_brings_near_ones() -> None:
    with pytest.raises(tp.errors.UnknownProtocol) as caught:
        tp.parse("", "hermess")
    assert "did you mean hermes" in str(caught.value)
    assert "auto" in str(caught.value)


@pytest.mark.parametrize("protocol", ["auto", *tp.protocols()])
def test_openers_of_elements_are_text_where_no_tool_is_known(protocol: str) -> None:
    raw = "see <f> and <!-- a --> and <function"
    result = tp.parse(raw, protocol)
    assert not any(c.ok for c in result.calls)
    assert "".join(s.span.of(raw) for s in result.segments) == raw
