"""Requests: the prompt is merged into what the case brings, and nothing of the case is lost or
given away."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.core.errors import BadCase, BadOptions, UnwritableCall
from toolparse_lab.formats.prompt.messages import build_messages, explain_tools, render_system
from toolparse_lab.formats.prompt.wording import PLACEHOLDERS, Wordings, fill

WEATHER = tool_named("get_weather", "Get the weather in a city.", required=["city"], city="string")
CLOCK = {**WEATHER, "name": "get_time", "description": "Get the time in a city."}
TOOLS = [WEATHER, CLOCK]


def write_call(name: str, arguments_json: str) -> str:
    return f"[[{name} {arguments_json}]]"


class Told:
    """A shipped protocol as prompts see it, which writes calls in a way of its own."""

    def __init__(
        self, protocol_id: str, write: Callable[[str, str], str] | None = write_call
    ) -> None:
        self.protocol = tp.protocols()[protocol_id]
        self.id, self.wordings = protocol_id, self.protocol.wordings
        self.type_rules = self.protocol.type_rules
        self.write = write

    def write_call(self, name: str, arguments_json: str, tool: Any = None) -> str:
        if self.write is None:
            raise AssertionError("nothing is to be written")
        return self.write(name, arguments_json)


def build(case_input: Any, tools: Any = TOOLS, **options: Any) -> tuple[dict[str, Any], ...]:
    return build_messages(case_input, tools, **{"protocol": Told("hermes"), **options})


def roles(messages: tuple[dict[str, Any], ...]) -> list[str]:
    return [m["role"] for m in messages]


def test_text_becomes_a_prompt_and_a_question() -> None:
    messages = build("Weather in Oslo?")
    assert roles(messages) == ["system", "user"]
    assert messages[1] == {"role": "user", "content": "Weather in Oslo?"}
    system = messages[0]["content"]
    assert '"get_weather"' in system
    assert '[[get_weather {"city":"Lisbon"}]]' in system
    assert '[[get_time {"city":"Nairobi"}]]' in system


@pytest.mark.parametrize("wording", ["plain", "brief"])
def test_what_is_added_can_be_had_alone(wording: str) -> None:
    options: dict[str, Any] = {"protocol": Told("hermes"), "wording": wording}
    prompt, turns = explain_tools("Weather in Oslo?", TOOLS, **options)
    system, *between, _ = build("Weather in Oslo?", wording=wording)
    assert system["content"] == prompt
    assert between == turns
    assert explain_tools("Weather in Oslo?", [], **options) == ("", [])


def test_brief_wording_gives_its_examples_as_turns() -> None:
    messages = build("Weather in Oslo?", wording="brief")
    assert roles(messages) == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[1]["content"] == "Get the weather in a city: city Lisbon"
    assert messages[2]["content"] == '[[get_weather {"city":"Lisbon"}]]'
    assert "Lisbon" not in messages[0]["content"]
    assert messages[-1]["content"] == "Weather in Oslo?"


@each_case
def test_placement(placement: Any, case_input: list[list[Any]], expected: list[str]) -> None:
    given = [{"role": role, "content": content} for role, content in case_input]
    prompt = render_system(Told("hermes", None), TOOLS)
    messages = build(given, few_shot=0, placement=placement)
    assert [m["content"].replace(prompt, "P") for m in messages] == expected


def test_system_message_of_parts() -> None:
    theirs = [{"type": "text", "text": "be kind"}]
    given = [{"role": "system", "content": theirs}, {"role": "user", "content": "hi"}]
    parts = build(given)[0]["content"]
    assert parts[1:] == theirs
    assert parts[0]["text"].endswith("\n\n")
    assert build(given, placement="last")[0]["content"][0] == theirs[0]


def test_other_messages_stay_as_they_are() -> None:
    given = [
        {"role": "system", "content": "be kind", "name": "house"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": "x"},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "3"},
        {"role": "user", "content": "and now?"},
    ]
    before = copy.deepcopy(given)
    messages = build(given, wording="brief")
    assert given == before
    assert messages[0]["name"] == "house"
    assert list(messages[-4:]) == before[1:]
    assert roles(messages)[1:5] == ["user", "assistant", "user", "assistant"]


def test_no_tools_no_prompt() -> None:
    assert build("hi", None) == ({"role": "user", "content": "hi"},)
    assert render_system(Told("hermes", None), []) == ""


@pytest.mark.parametrize(
    "case_input", [None, 3, b"hi", {"role": "user"}, ["hi"], [{"content": "hi"}]]
)
def test_input_of_another_kind(case_input: Any) -> None:
    with pytest.raises(BadCase, match="neither a text nor"):
        build(case_input)


@each_case
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadOptions, match=message):
        build("hi", **options)


def test_examples_do_not_say_what_is_asked() -> None:
    plain = build("Weather in Oslo?")[0]["content"]
    asked = build("Weather in Lisbon?")[0]["content"]
    assert "Lisbon" in plain
    assert "Lisbon" not in asked
    wanted = build(
        "Weather there?",
        target=[{"name": "get_weather", "arguments": {"city": {"$any": ["Lisbon"]}}}],
    )
    assert "Lisbon" not in wanted[0]["content"]


def test_a_message_list_is_searched_too() -> None:
    given = [
        {"role": "user", "content": [{"type": "text", "text": "I live in lisbon."}]},
        {"role": "user", "content": "?"},
    ]
    assert "Lisbon" not in build(given)[0]["content"]


@pytest.mark.parametrize(
    "protocol_id", ["hermes", "gemma", "morph_xml", "qwen3_coder_xml", "yaml_xml", "kimi_k2"]
)
@pytest.mark.parametrize("wording", ["plain", "strict", "brief"])
def test_type_rules_can_be_switched(protocol_id: str, wording: str) -> None:
    off = render_system(Told(protocol_id), TOOLS, wording=wording)
    on = render_system(Told(protocol_id), TOOLS, type_rules=True, wording=wording)
    assert "WRONG" not in off
    right, wrong = {
        "morph_xml": ("<lat>35.6897</lat>", '<lat>"35.6897"</lat>'),
        "qwen3_coder_xml": (
            "<parameter=lat>35.6897</parameter>",
            '<parameter=lat>"35.6897"</parameter>',
        ),
        "yaml_xml": ("lat: 35.6897", 'lat: "35.6897"'),
    }.get(protocol_id, ('"lat": 35.6897', '"lat": "35.6897"'))
    assert f"CORRECT: {right}  WRONG: {wrong}" in on


def test_protocol_without_own_texts_shows_its_form() -> None:
    system = build("hi", protocol=Told("kimi_k2"), few_shot=0)[0]["content"]
    assert '[[TOOL_NAME {"PARAMETER":"VALUE"}]]' in system


def test_own_texts_write_no_call() -> None:
    assert "get_weather" in render_system(Told("hermes", None), TOOLS)


def test_unwritable_example_is_left_out() -> None:
    def picky(name: str, arguments_json: str) -> str:
        if name == "get_weather":
            raise UnwritableCall("no")
        return write_call(name, arguments_json)

    messages = build("hi", wording="brief", protocol=Told("hermes", picky))
    assert [m["content"] for m in messages if m["role"] == "assistant"] == [
        '[[get_time {"city":"Nairobi"}]]'
    ]


def test_own_builder() -> None:
    def builder(*, protocol_id: str, tools: Any, shots: Any, type_rules: bool) -> str:
        return f"{protocol_id} {[t.name for t in tools]} {len(shots)} {type_rules}"

    messages = build("hi", builder=builder, wording="brief")
    assert messages == (
        {"role": "system", "content": "hermes ['get_weather', 'get_time'] 2 False"},
        {"role": "user", "content": "hi"},
    )


@pytest.mark.parametrize("fault", ["raise", "none"])
def test_failing_builder_falls_back_and_is_reported(fault: str) -> None:
    def builder(**_: Any) -> Any:
        if fault == "raise":
            raise ValueError("out of ideas")
        return None

    said: list[tuple[str, Mapping[str, Any]]] = []
    messages = build(
        "hi", builder=builder, on_error=lambda message, more: said.append((message, more))
    )
    assert messages == build("hi")
    assert len(said) == 1
    assert ("out of ideas" if fault == "raise" else "NoneType") in said[0][1]["error"]
    assert build("hi", builder=builder) == build("hi")


def test_braces_in_tools_are_no_placeholders() -> None:
    tool = {
        **WEATHER,
        "description": "Say {{examples}} and {{#type_rules}}x{{/type_rules}} and {{nothing}}.",
    }
    for wording in tp.protocols()["hermes"].wordings.names:
        assert (
            "Say {{examples}} and {{#type_rules}}x{{/type_rules}} and {{nothing}}."
            in render_system(Told("hermes", None), [tool], wording=wording)
        )


# The shipped prompt texts: three a protocol, each complete and different from the others.


PROTOCOLS = ("hermes", "gemma", "morph_xml", "qwen3_coder_xml", "yaml_xml", "generic", "typed_xml")
OURS = ("brief", "plain", "strict")
# Prompts of others, word for word, for experiments.
THEIRS = {"hermes": ("chat_template", "upstream")}
ALL = [(p, w) for p in PROTOCOLS for w in (*OURS, *THEIRS.get(p, ()))]


def wordings_of(protocol_id: str) -> Wordings:
    """Those of a protocol, or of a folder that belongs to none."""
    protocol = tp.protocols().get(protocol_id)
    return protocol.wordings if protocol else Wordings(protocol_id)


@pytest.mark.parametrize("protocol_id", [*PROTOCOLS, "kimi_k2"])
def test_three_wordings(protocol_id: str) -> None:
    wordings = wordings_of(protocol_id)
    names = tuple(sorted((*OURS, *THEIRS.get(protocol_id, ()))))
    assert wordings.names == names
    assert len({wordings.template(w) for w in names}) == len(names)


@pytest.mark.parametrize(("protocol_id", "wording"), ALL)
def test_template_is_complete(protocol_id: str, wording: str) -> None:
    text = wordings_of(protocol_id).template(wording)
    names = re.findall(r"\{\{[#/]?(\w+)\}\}", text)
    assert set(names) <= set(PLACEHOLDERS)
    assert len([n for n in set(names) if n.startswith("tools_")]) == 1
    assert "type_rules" in names
    assert ("examples" in names) == (wording in ("plain", "strict"))
    for name in ("type_rules", "examples"):
        assert (
            text.count(f"{{{{#{name}}}}}")
            == text.count(f"{{{{/{name}}}}}")
            == names.count(name) // 3
        )
    filled = fill(text, {n: lambda: "X" for n in PLACEHOLDERS})
    lacking = ("type_rules", "examples")
    empty = fill(text, {n: (lambda: "") if n in lacking else (lambda: "X") for n in PLACEHOLDERS})
    for result in (filled, empty):
        assert "{{" not in result
        assert "\n\n\n" not in result
        assert result == result.strip()
    assert len(empty) < len(filled)


@each_case
def test_form_is_shown(protocol_id: str, mark: str) -> None:
    assert all(mark in wordings_of(protocol_id).template(w) for w in wordings_of(protocol_id).names)


def test_every_file_is_reachable_and_shipped() -> None:
    root = resources.files("toolparse_lab.formats.prompt").joinpath("templates")
    found = {(folder.name, f.name) for folder in root.iterdir() for f in folder.iterdir()}
    assert found == {(p, f"{w}.md") for p, w in ALL}


def test_unknown_wording_lists_the_known_ones() -> None:
    with pytest.raises(BadOptions, match="brief, chat_template, plain, strict, upstream"):
        wordings_of("hermes").template("../gemma/plain")


def test_fill_keeps_braces_of_values_and_computes_on_demand() -> None:
    asked: list[str] = []

    def value(name: str, text: str) -> str:
        asked.append(name)
        return text

    template = "{{#a}}\nA: {{a}}\n{{/a}}\n{{b}} {{b}}"
    values = {
        n: lambda n=n, t=t: value(n, t) for n, t in (("a", ""), ("b", "{{a}}"), ("c", "never"))
    }
    assert fill(template, values) == "{{a}} {{a}}"
    assert asked == ["a", "b"]
    with pytest.raises(BadOptions, match="unknown placeholder"):
        fill("{{nobody}}", values)
