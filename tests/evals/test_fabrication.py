"""The short cut of the fabrication check accepts nothing that origins and steps reject."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.laws import examples
from tests.tables import every_case
from toolparse_lab import parse
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.types import ParseResult, ToolCall
from toolparse_lab.core.values import leaves, pointer_set, write_canonical
from toolparse_lab.evals.scoring import fabrication
from toolparse_lab.evals.scoring.fabrication import find_fabrication

TOOLS = tool_specs([{"name": "f", "parameters": {"type": "object", "properties": {}}}])
TYPED = tool_specs(
    [
        {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer"},
                    "from": {"type": "array", "items": {"type": "string"}},
                    "to": {"type": "object", "properties": {"id": {"type": "integer"}}},
                },
            },
        }
    ]
)
TYPED_FROM_OBJECTS = tool_specs(
    [
        {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "from": {"type": "array", "items": {"type": "object"}},
                },
            },
        }
    ]
)


def read(protocol: str, raw: str) -> ToolCall:
    result: ParseResult = parse(raw, protocol, TOOLS)
    assert len(result.calls) == 1, raw
    return result.calls[0]


def hermes(arguments: str) -> str:
    return f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'


def native(arguments: str) -> str:
    """A provider's own message, whose arguments are JSON inside a string."""
    function = {"name": "f", "arguments": arguments}
    call = {"id": "c", "type": "function", "function": function}
    return json.dumps({"content": None, "tool_calls": [call]})


@every_case
def test_a_value_moved_to_another_path_is_fabricated(
    protocol: str, raw: str, arguments: str, path: str
) -> None:
    call = read(protocol, raw)
    assert find_fabrication(raw, call) == ""
    why = find_fabrication(raw, replace(call, arguments_json=arguments))
    assert why.startswith(f"the text does not say {path} = "), why


def test_what_a_coercion_moved_is_said_where_it_was() -> None:
    raw = "<f><a>x</a><from><name>Oslo</name></from></f>"
    call = parse(raw, "morph_xml", TYPED_FROM_OBJECTS).calls[0]
    assert call.arguments == {"a": "x", "from": [{"name": "Oslo"}]}
    assert find_fabrication(raw, call) == ""
    assert find_fabrication(raw, call, coerced=False) == ""
    changed = replace(call, source_json='{"a":"x","from":{"name":"Rome"}}')
    assert "/from/name" in find_fabrication(raw, changed, coerced=False)


# calls as models write them, and their arguments as a parser that invents would change them

KEYS = st.sampled_from(["id", "from", "to", "0", "a/b", "a~1b"])
WORDS = st.sampled_from(["", "1", "2", "Oslo", "a b", " x ", "true", "null", "Tom & Jerry", "'q'"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, 2, 12, -1, 1.0, 1.5, 1e300])
    | WORDS
    | st.text(alphabet='a"\\/<>&\n\t\ré😀\ud800', max_size=4)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(KEYS, VALUES, max_size=3)
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"indent": 2},
    {"separators": (",", ":")},
    {"ensure_ascii": False},
]
ELEMENTS = st.lists(
    st.tuples(st.sampled_from(["id", "from", "to"]), WORDS | st.just("<id>1</id>")), max_size=4
)


@st.composite
def json_texts(draw: st.DrawFn) -> tuple[str, str]:
    """(protocol, text) of one call in JSON, in some layout, now and then with a key twice."""
    arguments = json.dumps(draw(ARGUMENTS), **draw(st.sampled_from(LAYOUTS)))
    if draw(st.booleans()) and arguments.startswith("{") and len(arguments) > 2:
        extra = json.dumps({draw(KEYS): draw(SCALARS)})
        arguments = f"{extra[:-1]}, {arguments[1:]}"
    return "hermes", hermes(arguments)


@st.composite
def native_texts(draw: st.DrawFn) -> tuple[str, str]:
    """(protocol, text) of a provider's message, its arguments JSON in some layout."""
    return "openai_json", native(json.dumps(draw(ARGUMENTS), **draw(st.sampled_from(LAYOUTS))))


@st.composite
def markup_texts(draw: st.DrawFn) -> tuple[str, str]:
    """(protocol, text) of one call in flat or nested elements."""
    space = draw(st.sampled_from(["", "\n", "\n  "]))
    inner = "".join(f"{space}<{key}>{text}</{key}>" for key, text in draw(ELEMENTS))
    return "morph_xml", f"<f>{inner}\n</f>"


@st.composite
def rearranged(draw: st.DrawFn, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the same leaves in other places: exchanged, lifted, wrapped, or built anew."""
    value = json.loads(json.dumps(arguments))
    places = [path for path, _ in leaves(value)]
    own = st.sampled_from([leaf for _, leaf in leaves(value)]) | SCALARS
    way = draw(st.sampled_from(["same", "exchange", "lift", "wrap", "build"]))
    if way == "exchange" and "" not in places:
        for path in draw(st.lists(st.sampled_from(places), min_size=1, max_size=2)):
            value = pointer_set(value, path, draw(own))
    elif way == "lift":
        inner = [v for v in value.values() if isinstance(v, dict)]
        value = draw(st.sampled_from(inner)) if inner else value
    elif way == "wrap":
        value = {draw(KEYS): value}
    elif way == "build":
        tree = own | st.dictionaries(KEYS, own, max_size=2) | st.lists(own, max_size=2)
        value = draw(st.dictionaries(KEYS, tree, max_size=3))
    return dict(value)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_the_short_cut_says_what_origins_and_steps_say(data: st.DataObject) -> None:
    protocol, raw = data.draw(json_texts() | native_texts() | markup_texts())
    result = parse(raw, protocol, data.draw(st.sampled_from([TOOLS, TYPED])))
    for call in result.calls:
        text = write_canonical(data.draw(rearranged(call.arguments)))
        for one in (call, replace(call, arguments_json=text, source_json=text)):
            for coerced in (True, False):
                why = find_fabrication(raw, one, coerced=coerced)
                with patch.object(fabrication, "_read_plainly", return_value=None):
                    slow = find_fabrication(raw, one, coerced=coerced)
                assert why == slow, one


class Loose:
    """Somebody else's parser, which says no places: it makes up what its test tells it to."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments

    def format_tools(self, tools: Any, tool_system_prompt_template: Any) -> str:
        return ""

    def format_tool_call(self, tool_call: Any) -> str:
        return ""

    def format_tool_response(self, tool_result: Any) -> str:
        return ""

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> list[dict[str, Any]]:
        return [{"type": "tool-call", "toolName": "f", "input": json.dumps(self.arguments)}]

    def create_stream_parser(self, tools: Any, options: Any) -> Any:
        return lambda chunks: self.parse_generated_text("".join(chunks), tools, options)


@every_case
def test_a_call_without_places_has_its_leaves_somewhere_in_its_text(
    arguments: dict[str, Any], said: bool
) -> None:
    raw = "@@ f Oslo 3 true null @@"
    (call,) = tp.parse(raw, Loose(arguments)).calls
    assert (find_fabrication(raw, call) == "") is said
