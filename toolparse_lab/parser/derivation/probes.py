"""Conversations with invented calls: some to fit a protocol, others to verify it.

No name and no value of one group stands in the other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.values import Value

Arguments: TypeAlias = Mapping[str, Value]

# Words that no template has, to be found again in what it writes.
TEXT = "Gladly, one moment."
THOUGHT = "The quay is asked for."
ANSWER = "Nothing of that kind."
QUESTION = "Where is the ferry now?"
RESULT = "moored at dusk"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a probe. id: of nine letters and digits, which every template accepts."""

    name: str
    arguments: Arguments
    id: str = "call00001"


@dataclass(frozen=True, slots=True)
class Probe:
    """An answer to render: its calls, and the text beside them."""

    id: str
    calls: tuple[Call, ...] = ()
    content: str = ""
    reasoning: str = ""
    result: str = ""


@dataclass(frozen=True, slots=True)
class Wire:
    """The way in which the messages of a conversation are handed to a template.

    as_text: the arguments are JSON text. content: the content of an answer without any. 'absent'
    leaves it out. thought_key: the member that holds reasoning, "" for none that is rendered.
    plain_tools: the template is shown tools whose arguments are all text.
    """

    as_text: bool = False
    content: str | None = ""
    thought_key: str = "reasoning_content"
    plain_tools: bool = False

    def job(
        self, probe: Probe, tools: tuple[ToolSpec, ...], *, prompt: bool = False
    ) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
        if not prompt:
            messages.append(self._answer(probe))
        if probe.result:
            call = probe.calls[0]
            messages.append(
                {
                    "role": "tool",
                    "tool_call_id": call.id,
                    "name": call.name,
                    "content": probe.result,
                }
            )
        return {
            "messages": messages,
            "tools": [
                plain_tool(tool.to_openai()) if self.plain_tools else tool.to_openai()
                for tool in tools
            ],
            "add_generation_prompt": prompt,
        }

    def _answer(self, probe: Probe) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": probe.content or self.content}
        if self.content == "absent" and not probe.content:
            del message["content"]
        if probe.reasoning:
            message[self.thought_key] = probe.reasoning
        if probe.calls:
            message["tool_calls"] = [self._call(call) for call in probe.calls]
        return message

    def _call(self, call: Call) -> dict[str, Any]:
        arguments = dict(call.arguments)
        value: Any = json.dumps(arguments, ensure_ascii=False) if self.as_text else arguments
        return {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": value},
        }


THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking", "tool_plan")
WIRES = tuple(
    Wire(as_text, content, plain_tools=plain_tools)
    for plain_tools in (False, True)
    for as_text in (False, True)
    for content in ("", None, "absent")
)


def plain_tool(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a tool in OpenAI's shape, every argument of it a text."""
    properties = definition["function"]["parameters"].get("properties", {})
    for key in properties:
        properties[key] = {"type": "string", "description": key}
    return definition


_FERRY = Call("track_ferry", {"harbor": "Vela Norte", "depth": 7})
_BUOY = Call("mend_buoy", {"region": "Lom Strait", "weight": 31}, "call00002")

PLAIN = Probe("plain", content=ANSWER)
EMPTY = Probe("no arguments", (Call("track_ferry", {}),))
ONE = Probe("one call", (_FERRY,))
TWO = Probe("two calls", (_FERRY, _BUOY))
SAID = Probe("text before", (_FERRY,), content=TEXT)
THOUGHTFUL = Probe("reasoning before", (_FERRY,), reasoning=THOUGHT)
ANSWERED = Probe("a result", (_FERRY,), result=RESULT)
KINDS = Probe(
    "kinds",
    (
        Call(
            "track_ferry",
            {
                "string": "Vela Norte",
                "number": 7,
                "fraction": 0.25,
                "boolean": True,
                "null": None,
                "list": [3, "Lom"],
                "object": {"knots": 4},
                "markup": "a <b> & c",
            },
        ),
    ),
)
FIT = (PLAIN, EMPTY, ONE, TWO, SAID, THOUGHTFUL, ANSWERED, KINDS)


def _held(id: str, *arguments: Arguments, content: str = "", reasoning: str = "") -> Probe:
    names = ("weigh_parcel", "sealCrate", "post_letter")
    calls = tuple(Call(names[i], members, f"held{i:05d}") for i, members in enumerate(arguments))
    return Probe(id, calls, content, reasoning)


HELD = (
    _held("a string", {"to_whom": "Aunt Pia, flat 4"}),
    _held("two strings", {"street": "Old Mill", "note": "ring twice: once, then again"}),
    _held("an integer", {"grams": 1250}),
    _held("a negative fraction", {"offset": -3.75, "grams": 2}),
    _held("booleans", {"fragile": True, "insured": False}),
    _held("null", {"stamp": None, "street": "Elm"}),
    _held("a list", {"labels": ["up", "down", "left"], "sizes": [1, 2, 3]}),
    _held("an object", {"box": {"width": 20, "lid": {"color": "teal"}, "tags": []}}),
    _held("objects in a list", {"items": [{"sku": "A1", "n": 2}, {"sku": "B2", "n": 1}]}),
    _held("markup", {"note": '<p class="x">1 < 2 & 3 > 2</p>', "street": "Elm"}),
    _held("quotes", {"note": "she said \"no\" and 'why', \\ twice"}),
    _held("line breaks", {"note": "first line\nsecond line\n\n  fourth", "grams": 5}),
    _held("other scripts", {"note": "žluťoučký kůň 漢字 🚢", "street": "улица"}),
    _held("a number as text", {"code": "00420", "note": "true"}),
    _held("brackets in text", {"note": "a] b} [c {d}, e"}),
    _held("no arguments", {}),
    _held("two calls", {"to_whom": "Bo"}, {"lid": "flat", "depth": 4}),
    _held("three calls", {"street": "Elm"}, {"lid": "open"}, {"grams": 9}),
    _held("text before", {"to_whom": "Cy"}, content="I will weigh it first."),
    _held("reasoning before", {"to_whom": "Di"}, reasoning="A parcel needs its weight."),
)


def _type_of(value: Value) -> dict[str, Any]:
    if value is None:
        # Templates that spell types out know no type of null alone.
        return {"type": ["string", "null"]}
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer"}
    if isinstance(value, str):
        return {"type": "string"}
    if isinstance(value, list):
        return {"type": "array", "items": _type_of(value[0] if value else "")}
    if isinstance(value, Mapping):
        members = {key: _type_of(member) for key, member in value.items()}
        return {"type": "object", "properties": members}
    return {"type": "number"}


def tools_of(probes: tuple[Probe, ...]) -> tuple[ToolSpec, ...]:
    """Return the tools that the calls of these probes need, with a type for every argument."""
    properties: dict[str, dict[str, Any]] = {}
    for probe in probes:
        for call in probe.calls:
            members = properties.setdefault(call.name, {})
            for key, value in call.arguments.items():
                members[key] = {**_type_of(value), "description": f"The {key}."}
    return tuple(
        ToolSpec.of(
            {
                "name": name,
                "description": "A thing to do at the quay.",
                "parameters": {"type": "object", "properties": members},
            }
        )
        for name, members in properties.items()
    )
