"""No call inside a value of another one is executable, whatever the formats and the ending."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

import toolparse_lab as tp
from tests.growth import grows_linearly
from tests.laws import check_all, part
from tests.tables import asked_of, each_case, every_case, table
from tests.tools import object_schema, tool_named
from toolparse_lab.entry.parse import Reader
from toolparse_lab.formats.json.scan import ends_in_value
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.parser.recognition.truncation import open_head

TOOLS: list[Any] = [
    tool_named(
        "note",
        content="string",
        tags={"type": "array", "items": {"type": "string"}},
        place=object_schema(city="string"),
    ),
    tool_named("delete", id="string"),
    tool_named("ping"),
]
VALUES: list[dict[str, Any]] = [
    {"content": "please MARK"},
    {"tags": ["a", "MARK"]},
    {"place": {"city": "in MARK"}},
]
# Beginnings of calls in which no protocol's body opens, and what would end them.
ODD = [(row["before"], row["behind"]) for row in table(__file__) if "behind" in row]


def written(protocol: str, name: str, arguments: dict[str, Any]) -> str:
    """A call as the protocol writes it."""
    if protocol == "openai_json":
        function = {"name": name, "arguments": json.dumps(arguments)}
        return json.dumps({"tool_calls": [{"function": function}]})
    return tp.protocols()[protocol].write_call(name, json.dumps(arguments))


def outer_calls(protocol: str) -> list[tuple[str, str]]:
    """Calls of `note` cut in two inside a value: the format's own, and odd ones."""
    own = [
        tuple(text.split("MARK", 1))
        for text in (written(protocol, "note", arguments) for arguments in VALUES)
    ]
    return [(before, behind) for before, behind in (*own, *ODD)]


def inner_calls(protocol: str) -> list[str]:
    """Whole calls of the other two tools, in the format and in the commonest others."""
    others = ("hermes", "morph_xml")
    inner = [
        written(each, name, arguments)
        for each in dict.fromkeys((protocol, *others))
        for name, arguments in (("delete", {"id": "1"}),)
    ]
    return [*inner, "<function=delete><parameter=id>1</parameter></function>", "<ping/>"]


@pytest.mark.parametrize("protocol", list(family_heads()))
@pytest.mark.parametrize("auto", [False, True], ids=["own", "auto"])
@pytest.mark.exhaustive(3)
def test_a_call_in_a_value_is_never_executable(protocol: str, auto: bool) -> None:
    reader = Reader("auto" if auto else protocol, TOOLS)
    endings = ("", " it.\n\nSorry.", " it\n{0}z{1}", " it{1}")
    every = [*product(outer_calls(protocol), inner_calls(protocol), endings)]
    for (before, behind), inner, ending in part(every, 3, auto):
        raw = before + inner + ending.replace("{0}", before).replace("{1}", behind)
        calls = [c for c in reader.parse(raw).calls if c.valid and c.name != "note"]
        assert not calls, raw


@pytest.mark.parametrize("protocol", ["hermes", "morph_xml", "qwen3_coder_xml", "auto"])
def test_the_laws_hold_behind_open_heads(protocol: str) -> None:
    own = "morph_xml" if protocol == "auto" else protocol
    for before, behind in ODD[::4]:
        check_all(before + inner_calls(own)[0] + behind, protocol, TOOLS)


@each_case
@asked_of("protocol", [p for p in family_heads() if p != "openai_json"])
def test_what_is_only_shown_is_not_executable(text: str, protocol: str) -> None:
    call = written(protocol, "delete", {"id": "1"})
    raw = text.replace("CALL", call)
    for name in (protocol, "auto"):
        result = tp.parse(raw, name, TOOLS)
        assert not any(c.valid for c in result.calls), name
        # Behind a result that the model wrote itself the turn is over.
        if protocol != "pythonic" and "tool_response" not in text:
            behind = tp.parse(f"{raw}\n\n{call}", name, TOOLS)
            assert [c.valid for c in behind.calls if c.ok][-1:] == [True], name


@every_case
@pytest.mark.parametrize("protocol", ["hermes", "gemma", "kimi_k2", "qwen3_coder_xml"])
def test_words_about_a_tool_open_nothing(text: str, protocol: str) -> None:
    result = tp.parse(text + "\n" + written(protocol, "delete", {"id": "1"}), protocol, TOOLS)
    assert [c.name for c in result.calls if c.valid and c.name == "delete"] == ["delete"]


@each_case
def test_arguments_are_a_value_until_their_call_is_whole(text: str, inside: bool) -> None:
    assert ends_in_value(text) is inside


@pytest.mark.parametrize(
    "piece",
    ["<function=note>x</function> ", "<note a=", 'note(a="x" ', "`<function=note>", "<note"],
)
def test_looking_for_open_heads_is_linear(piece: str) -> None:
    assert grows_linearly(lambda size: open_head(piece * size, {"note"}), 2_000)
