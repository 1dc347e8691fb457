"""Conversations with invented calls (probes), some to fit a protocol and others to verify it, and
the answers a template writes for them, without the prompt before and the end of turn after.

Where an answer begins and ends is measured: against the prompt alone, and against an answer without
calls. A cut never goes through a special token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ....core.errors import UnreadableTemplate
from ....core.toolspec import ToolSpec
from ....core.values import Value, same
from ....core.values.affixes import common_prefix, common_suffix
from ....runner.chat_templates.renderer import ChatTemplate, Rendering

Arguments: TypeAlias = Mapping[str, Value]

# Words that no template has, to be found again in what it writes. No name and no value of the
# probes that fit is in those that verify.
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
            answer: dict[str, Any] = {"role": "assistant"}
            if probe.content or self.content != "absent":
                answer["content"] = probe.content or self.content
            if probe.reasoning:
                answer[self.thought_key] = probe.reasoning
            for call in probe.calls:
                arguments: Any = dict(call.arguments)
                if self.as_text:
                    arguments = json.dumps(arguments, ensure_ascii=False)
                function = {"name": call.name, "arguments": arguments}
                written = {"id": call.id, "type": "function", "function": function}
                answer.setdefault("tool_calls", []).append(written)
            messages.append(answer)
        if probe.result:
            asked = {"tool_call_id": probe.calls[0].id, "name": probe.calls[0].name}
            messages.append({"role": "tool", **asked, "content": probe.result})
        definitions = [tool.to_openai() for tool in tools]
        if self.plain_tools:
            definitions = list(map(plain_tool, definitions))
        return {"messages": messages, "tools": definitions, "add_generation_prompt": prompt}


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
_KINDS: Arguments = {
    "string": "Vela Norte", "number": 7, "fraction": 0.25, "boolean": True, "null": None,
    "list": [3, "Lom"], "object": {"knots": 4}, "markup": "a <b> & c",
}  # fmt: skip
KINDS = Probe("kinds", (Call("track_ferry", _KINDS),))
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
    if isinstance(value, list):
        return {"type": "array", "items": _type_of(value[0] if value else "")}
    if isinstance(value, Mapping):
        members = {key: _type_of(member) for key, member in value.items()}
        return {"type": "object", "properties": members}
    # Templates that spell types out know no type of null alone.
    kinds: dict[type, Any] = {type(None): ["string", "null"], bool: "boolean", int: "integer"}
    return {"type": {**kinds, str: "string"}.get(type(value), "number")}


def tools_of(probes: tuple[Probe, ...]) -> tuple[ToolSpec, ...]:
    """Return the tools that the calls of these probes need, with a type for every argument."""
    properties: dict[str, dict[str, Any]] = {}
    for probe in probes:
        for call in probe.calls:
            members = properties.setdefault(call.name, {})
            for key, value in call.arguments.items():
                members[key] = {**_type_of(value), "description": f"The {key}."}
    definitions = [
        {"name": name, "parameters": {"type": "object", "properties": members}}
        for name, members in properties.items()
    ]
    words = "A thing to do at the quay."
    return tuple(ToolSpec.of({**definition, "description": words}) for definition in definitions)


# What no cut goes through: special tokens, and words.
TOKEN = re.compile(r"<[^<>\n]{1,80}>|\[/?[A-Z][A-Z_]+\]|\w+")


@dataclass(frozen=True, slots=True)
class Answer:
    """A probe and the answer that a template writes for it. error: the reason why it is not one."""

    probe: Probe
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one template.

    fit, others: to the probes of both groups, by id. wire: how messages are handed to the template.
    prompt: the question alone. answered: the whole conversation with a tool's result.
    """

    fit: Mapping[str, Answer]
    others: Mapping[str, Answer]
    wire: Wire
    prompt: str = ""
    answered: str = ""


def answers_of(template: ChatTemplate) -> Answers:
    """Return the answers of a template. Raises UnreadableTemplate for one that renders no call."""
    wire = _wire_of(template)
    jobs = _jobs(wire, FIT, tools_of(FIT))
    texts = template.render([*jobs, *_jobs(wire, HELD, tools_of(HELD))])
    fit, others = texts[: len(jobs)], texts[len(jobs) :]
    return Answers(
        {answer.probe.id: answer for answer in _answers(FIT, fit)},
        {answer.probe.id: answer for answer in _answers(HELD, others)},
        wire,
        prompt=fit[0].text,
        answered=fit[2 + FIT.index(ANSWERED)].text,
    )


def rendered_like(
    template: ChatTemplate, answers: Answers, probes: Sequence[Probe], tools: tuple[ToolSpec, ...]
) -> list[Answer]:
    """Return the answers to other probes, cut as those of `answers` are."""
    return _answers(probes, template.render(_jobs(answers.wire, probes, tools)))


def _jobs(wire: Wire, probes: Iterable[Probe], tools: tuple[ToolSpec, ...]) -> list[dict[str, Any]]:
    jobs = [wire.job(probe, tools) for probe in (PLAIN, *probes)]
    return [wire.job(PLAIN, tools, prompt=True), *jobs]


def _answers(probes: Sequence[Probe], texts: Sequence[Rendering]) -> list[Answer]:
    prompt, plain, *answers = texts
    return [
        Answer(
            probe, "" if text.error else cut_answer(text.text, prompt.text, plain.text), text.error
        )
        for probe, text in zip(probes, answers, strict=True)
    ]


def _wire_of(template: ChatTemplate) -> Wire:
    # The first way to hand messages over by which the template writes a call.
    tools = tools_of(FIT)
    texts = template.render([wire.job(ONE, tools) for wire in WIRES])
    good = [wire for wire, text in zip(WIRES, texts, strict=True) if _writes_call(text.text, wire)]
    if not good:
        errors = dict.fromkeys(text.error for text in texts if text.error)
        is_broken = len(errors) > 0 and all(text.error for text in texts)
        raise UnreadableTemplate(
            "the template does not render a conversation with a call"
            if is_broken
            else "the template writes no calls of tools",
            got="; ".join(errors) or "a conversation with a call, without the call",
            expected="the name and the arguments of message.tool_calls",
            hint="name the format by hand: tp.protocols(), or Protocol.from_spec; or take a "
            "template for tools, if the model has one",
            probe=ONE.id,
        )
    wire = good[0]
    thoughts = [replace(wire, thought_key=key) for key in THOUGHT_KEYS]
    texts = template.render([thought.job(THOUGHTFUL, tools) for thought in thoughts])
    for thought, text in zip(thoughts, texts, strict=True):
        if THOUGHT in text.text:
            return thought
    return replace(wire, thought_key="")


def _writes_call(text: str, wire: Wire) -> bool:
    call = ONE.calls[0]
    words = (call.name, *call.arguments, *map(str, call.arguments.values()))
    if not all(word in text for word in words):
        return False
    if wire.as_text:
        # A template that encodes JSON text once more wants a mapping.
        return json.dumps(json.dumps(dict(call.arguments)))[1:-1] not in text
    return repr(dict(call.arguments)) not in text


def cut_answer(text: str, prompt: str, plain: str) -> str:
    """Return the answer in a rendering, without the prompt before and the end of turn after.

    prompt: the rendering of the question alone. plain: that with an answer without calls.
    """
    start = common_prefix(text, prompt)
    # The turn ends after the words of the plain answer, so that what is common is no part of it.
    tail = plain[plain.rfind(ANSWER) + len(ANSWER) :] if ANSWER in plain else ""
    end = len(text) - common_suffix(text, tail)
    tokens = list(TOKEN.finditer(text))
    torn = next((token for token in tokens if token.start() < start < token.end()), None)
    if torn is not None:
        # The prompt goes on differently: what is before a plain answer tells the place.
        before = plain[: plain.rfind(ANSWER)] if ANSWER in plain else ""
        common = common_prefix(text, before)
        start = common if common >= torn.end() else torn.start()
    for token in tokens:
        # A cut in front of a closer would tear it from the word that it ends.
        torn_off = 0 < end == token.start() and text[end - 1].isalnum() and text[end] == "<"
        if token.start() < end < token.end() or torn_off:
            end = token.end()
    return text[start : max(start, end)]


def same_calls(some: Sequence[Call], others: Sequence[Call]) -> bool:
    return len(some) == len(others) and all(
        a.name == b.name and same(dict(a.arguments or {}), dict(b.arguments))
        for a, b in zip(some, others, strict=True)
    )
