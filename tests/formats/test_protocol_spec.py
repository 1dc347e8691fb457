"""Protocols made from data: what they read and write, the laws on them, and what is said of a wrong
spec."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import check_all
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.core.toolspec import tool_specs

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


@each_case
def test_a_wrong_spec_names_its_field(field: str, spec: Any) -> None:
    with pytest.raises(tp.errors.BadSpec) as caught:
        tp.Protocol.from_spec(spec)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert caught.value.expected


def test_a_misspelt_field_has_a_suggestion() -> None:
    with pytest.raises(tp.errors.BadSpec, match="did you mean opener"):
        tp.Protocol.from_spec(id="x", opner="<c>", closer="</c>")  # type: ignore[call-arg]
