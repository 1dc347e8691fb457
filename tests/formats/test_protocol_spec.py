"""Protocols made from data: what they read and write, the laws on them, and what is said of a wrong
spec."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import check_all
from toolparse_lab.core.toolspec import tool_specs

TOOLS = [
    {
        "name": "tide",
        "parameters": {
            "type": "object",
            "properties": {"port": {"type": "string"}, "days": {"type": "integer"}},
        },
    }
]
CALL = '{"port":"a <b> </call> c","days":3}'
GOOD: list[dict[str, Any]] = [
    {
        "id": "bracketed",
        "opener": "[CALL]",
        "closer": "[/CALL]",
        "name_key": "tool",
        "arguments_key": "args",
    },
    {"id": "fence", "opener": "```call", "closer": "\n```", "own_line": True},
    {
        "id": "spaced",
        "opener": "<<call>> ",
        "closer": " <</call>>",
        "title": "t",
        "aliases": ["sp"],
    },
    {
        "id": "invoke",
        "body": "tags",
        "opener": "<calls>",
        "closer": "</calls>",
        "function": "invoke",
        "attribute": True,
    },
    {
        "id": "bare",
        "body": "tags",
        "function": "function",
        "parameter": "param",
        "lines": False,
        "trim": False,
    },
    {
        "id": "own",
        "body": "tags",
        "opener": "<x>",
        "closer": "</x>",
        "function": "act",
        "parameter": "val",
    },
    {"id": "elements", "body": "xml"},
    {"id": "yaml-elements", "body": "yaml"},
]


@pytest.mark.parametrize("spec", GOOD, ids=lambda s: s["id"])
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


JSON = {"id": "x", "opener": "<c>", "closer": "</c>"}
TAGS = {"id": "x", "body": "tags"}
WRONG: list[tuple[str, Any]] = [
    ("spec", 1),
    ("id", {}),
    ("id", {**JSON, "id": 1}),
    ("id", {**JSON, "id": "a b"}),
    ("id", {**JSON, "id": "auto"}),
    ("body", {**JSON, "body": "jsn"}),
    ("body", {**JSON, "body": []}),
    ("opener", {"id": "x", "closer": "</c>"}),
    ("opener", {**JSON, "opener": " \n"}),
    ("opener", {**JSON, "opener": "<think>"}),
    ("opener", {**JSON, "opener": "{"}),
    ("closer", {**JSON, "closer": "]]"}),
    ("closer", {**JSON, "closer": "<c>"}),
    ("closer", {**JSON, "closer": None}),
    ("opner", {**JSON, "opner": "<c>"}),
    ("function", {**JSON, "function": "f"}),
    ("name_key", {**JSON, "name_key": ""}),
    ("arguments_key", {**JSON, "arguments_key": "name"}),
    ("response_content_key", {**JSON, "response_content_key": "name"}),
    ("response_opener", {**JSON, "response_opener": ""}),
    ("own_line", {**JSON, "own_line": 1}),
    ("aliases", {**JSON, "aliases": "ab"}),
    ("title", {**JSON, "title": 1}),
    ("closer", {**TAGS, "opener": "<c>"}),
    ("opener", {**TAGS, "closer": "<c>"}),
    ("closer", {**TAGS, "opener": "<c>", "closer": "<c>"}),
    ("opener", {**TAGS, "opener": "<think>", "closer": "</c>"}),
    ("function", {**TAGS, "function": "a b"}),
    ("function", {**TAGS, "function": "param"}),
    ("parameter", {**TAGS, "parameter": "tool"}),
    ("parameter", {**TAGS, "function": "act", "parameter": "act"}),
    ("attribute", {**TAGS, "attribute": "yes"}),
    ("opener", {"id": "x", "body": "xml", "opener": "<c>"}),
]


@pytest.mark.parametrize(("field", "spec"), WRONG)
def test_a_wrong_spec_names_its_field(field: str, spec: Any) -> None:
    with pytest.raises(tp.errors.BadSpec) as caught:
        tp.Protocol.from_spec(spec)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert caught.value.expected


def test_a_misspelt_field_has_a_suggestion() -> None:
    with pytest.raises(tp.errors.BadSpec, match="did you mean opener"):
        tp.Protocol.from_spec(id="x", opner="<c>", closer="</c>")  # type: ignore[call-arg]
