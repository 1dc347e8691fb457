"""Protocol objects of one's own: taken as they are, brought onto raw, never raising on what they
do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import check_partition, check_serial, run_chunks
from tests.tables import every_case
from tests.tools import tool_named
from toolparse_lab.entry.foreign.parser import TheirPart, place
from toolparse_lab.entry.foreign.protocol import ForeignProtocol, adapt

TOOLS = [tool_named("f", a="integer", s="string")]
CALL = re.compile(r"@@(.*?)@@", re.DOTALL)


class Snake:
    """JSON between `@@`, as a port of an AI SDK's protocol would be written."""

    def format_tools(self, tools: Any, tool_system_prompt_template: Any) -> str:
        return str(tool_system_prompt_template(json.dumps([t["name"] for t in tools])))

    def format_tool_call(self, tool_call: Any) -> str:
        return f'@@{{"name":"{tool_call["toolName"]}","arguments":{tool_call["input"]}}}@@'

    def format_tool_response(self, tool_result: Any) -> str:
        return f"=> {tool_result}"

    def parse_generated_text(
        self, text: str, tools: Any, options: Any = None
    ) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        at = 0
        for m in CALL.finditer(text):
            if text[at : m.start()].strip():
                parts.append({"type": "text", "text": text[at : m.start()]})
            at = m.end()
            try:
                call = json.loads(m[1])
                given = json.dumps(call.get("arguments", {}))
                parts.append(
                    {
                        "type": "tool-call",
                        "toolCallId": "x1",
                        "toolName": call["name"],
                        "input": given,
                    }
                )
            except Exception as e:
                options.on_error("Could not read a call.", {"toolCall": m[0], "error": e})
                parts.append({"type": "text", "text": m[0]})
        if text[at:].strip():
            parts.append({"type": "text", "text": text[at:]})
        return parts

    def create_stream_parser(self, tools: Any, options: Any = None) -> Any:
        return Collecting(self, tools, options)


class Collecting:
    def __init__(self, protocol: Snake, tools: Any, options: Any) -> None:
        self.protocol, self.tools, self.options, self.text = protocol, tools, options, ""

    def feed(self, chunk: str) -> list[Any]:
        self.text += chunk
        return []

    def close(self) -> list[Any]:
        return self.protocol.parse_generated_text(self.text, self.tools, self.options)


class Segmenting(Snake):
    def extract_tool_call_segments(self, text: str, tools: Any) -> list[str]:
        return [m[0] for m in CALL.finditer(text)]


class Camel:
    """The same methods as their first home spells them: one object of arguments."""

    id = "camel"

    def formatTools(self, args: Any) -> str:
        return str(args["toolSystemPromptTemplate"](len(args["tools"])))

    def formatToolCall(self, call: Any) -> str:
        return Snake().format_tool_call(call)

    def formatToolResponse(self, result: Any) -> str:
        return "r"

    def parseGeneratedText(self, args: Any) -> Iterator[Any]:
        yield from Snake().parse_generated_text(args["text"], args["tools"], args["options"])

    def createStreamParser(self, args: Any) -> Any:
        return Transformer()


class Transformer:
    text = ""

    def transform(self, chunk: Any, controller: Any) -> None:
        if chunk["type"] == "text-delta":
            self.text += chunk["delta"]
        else:
            controller.enqueue({"type": "finish"})

    def flush(self, controller: Any) -> None:
        controller.enqueue({"type": "text", "text": self.text})


def a_call(arguments: str) -> str:
    return f'@@{{"name": "f", "arguments": {arguments}}}@@'


TEXT = "Sure. " + a_call('{"a": "1"}') + "\n" + a_call('{"s": "x @ y"}') + " done @@{]@@ bye"


@pytest.mark.parametrize("protocol", [Snake(), Segmenting(), Camel(), Snake, lambda: Camel()])
def test_their_calls_are_calls(protocol: Any) -> None:
    result = tp.parse(TEXT, protocol, TOOLS)
    assert [(c.name, c.arguments, c.ok) for c in result.calls] == [
        ("f", {"a": 1}, True),
        ("f", {"s": "x @ y"}, True),
    ]
    assert result.calls[0].steps[0].rule == "coerce.integer-from-string"
    assert result.calls[0].wire_id is None
    assert [p.code for p in result.problems] == ["foreign.reported"]
    assert result.problems[0].span is not None
    assert result.problems[0].span.of(TEXT) == "@@{]@@"
    assert result.content() == "Sure. \n done @@{]@@ bye" or not isinstance(protocol, Segmenting)
    assert result.calls[0].origin("/a").exact is False


@pytest.mark.parametrize("protocol", [Snake(), Segmenting(), Camel()])
@every_case
def test_the_laws_of_a_result_hold(protocol: Any, raw: str) -> None:
    result, log = run_chunks([raw], protocol, TOOLS)
    check_partition(result)
    check_serial(result)
    for chunks in ([raw[:3], raw[3:]], list(raw)):
        assert run_chunks(chunks, protocol, TOOLS) == (result, log)
    assert "".join(raw[a:b] for _, a, b, _ in log) == raw


def test_segments_say_which_call_stands_where() -> None:
    result = tp.parse(TEXT, Segmenting(), TOOLS)
    assert [(s.kind, s.span.of(TEXT)) for s in result.segments] == [
        ("text", "Sure. "),
        ("call", a_call('{"a": "1"}')),
        ("text", "\n"),
        ("call", a_call('{"s": "x @ y"}')),
        ("text", " done @@{]@@ bye"),
    ]
    without = tp.parse(TEXT, Snake(), TOOLS)
    assert [(s.kind, len(without.calls)) for s in without.segments] == [
        ("text", 2),
        ("call", 2),
        ("text", 2),
    ]


class Says:
    """Says what it is told to say."""

    def __init__(self, said: Any, segments: Any = None) -> None:
        self.said = said
        if segments is not None:
            self.extract_tool_call_segments = lambda text, tools: segments

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said() if callable(self.said) else self.said


def forever() -> Iterator[Any]:
    while True:
        yield "x"


def breaking() -> Iterator[Any]:
    yield "x"
    raise RecursionError("deep")


@pytest.mark.parametrize(
    "said",
    [
        ValueError("no"),
        RecursionError(),
        None,
        1,
        "text",
        {"type": "text"},
        forever,
        breaking,
        ZeroDivisionError(),
    ],
)
def test_what_they_raise_is_a_problem(said: Any) -> None:
    result = tp.parse("some text", Says(said), TOOLS)
    assert [p.code for p in result.problems] == ["parser.failed"]
    assert result.text == "some text"
    assert not result.ok


F = {"type": "tool-call", "toolName": "f", "input": "{}"}


@pytest.mark.parametrize(
    ("raw", "said", "segments", "kinds", "codes"),
    [
        ("a <f> b", ["a ", F, " b"], None, "text call text", []),
        ("a <f> b", [" a", F, "b "], None, "call", ["foreign.text-not-in-raw"] * 2),
        ("a <f> b", ["a", F, "b"], None, "text call text", []),
        ("a <f> b", ["a <f> b", F], None, "call", ["foreign.no-place"]),
        ("a <f> b", [F, "a <f> b"], None, "call", ["foreign.no-place"]),
        ("a <f> b", ["a ", F], ["<f>"], "text call markup", ["foreign.dropped-text"]),
        ("a <f> b", ["a ", F], ["<g>"], "text call", ["foreign.text-not-in-raw"]),
        ("a <f> b", ["a "], None, "text markup", ["foreign.dropped-text"]),
        ("a <f> b", ["A ", " B"], None, "text", ["foreign.text-not-in-raw"] * 2),
        ("<f> <g> b", [F, {**F, "toolName": "g"}, " b"], ["<f>", "<g>"], "call text call text", []),
        (
            "<f> <g> b",
            [{**F, "toolName": "g"}, " b"],
            ["<f>", "<g>"],
            "markup text call text",
            ["foreign.dropped-text"],
        ),
        ("<f f>", [F, F], ["<f f>"], "call", []),
        ("x f x x y", [F, "x", F, " y"], None, "markup text call text", None),
        ("", [F], None, "", ["foreign.no-place"]),
        ("a", ["a", {"type": "file"}, 1], None, "text", ["foreign.bad-part"] * 2),
        ("a", [{"type": "reasoning", "text": "a"}], None, "reasoning", []),
        ("<f>", [F], ValueError(), "call", ["parser.failed"]),
    ],
)
def test_no_character_is_lost(
    raw: str, said: Any, segments: Any, kinds: str, codes: list[str] | None
) -> None:
    subject = Says(said, segments)
    if isinstance(segments, Exception):
        subject.extract_tool_call_segments = lambda text, tools: 1 / 0
    result = tp.parse(raw, subject, TOOLS)
    check_partition(result)
    check_serial(result)
    if codes is not None:
        assert (" ".join(s.kind for s in result.segments), [p.code for p in result.problems]) == (
            kinds,
            codes,
        )
    assert (
        len(result.calls)
        == sum(1 for s in said if isinstance(s, dict) and s["type"] == "tool-call")
        or not raw
    )


@pytest.mark.parametrize("given", ["{", "[1]", 1, '"x"', [], {"a": float("nan")}, object()])
def test_an_input_that_is_no_object_is_said(given: Any) -> None:
    result = tp.parse("<f>", Says([{**F, "input": given}]), TOOLS)
    assert [(c.status, c.problems[0].code) for c in result.calls] == [
        ("undecodable", "call.not-an-object")
    ]


def test_every_part_of_random_text_has_its_place() -> None:
    import random

    rng = random.Random(7)
    for _ in range(3000):
        raw = "".join(rng.choice("ab <>f") for _ in range(rng.randrange(12)))
        said = [
            TheirPart("call", name=rng.choice("fg"))
            if rng.random() < 0.4
            else TheirPart("text", rng.choice(["a", "b ", "", raw, "<f"]))
            for _ in range(rng.randrange(5))
        ]
        named = [
            raw[i : i + 3]
            for i in sorted(rng.randrange(len(raw) + 1) for _ in range(rng.randrange(3)))
        ]
        placed = place(raw, said, named)
        assert "".join(raw[p.start : p.end] for p in placed.pieces) == raw
        assert all(p.start < p.end for p in placed.pieces)
        calls = [c for p in placed.pieces for c in p.calls] + placed.homeless
        assert sorted(c.name for c in calls) == sorted(s.name for s in said if s.kind == "call")


def test_the_six_methods_are_theirs() -> None:
    for subject, shown in ((Snake(), '["f"]'), (Camel(), "1")):
        protocol = adapt(subject)
        assert isinstance(protocol, ForeignProtocol)
        assert protocol.format_tools(TOOLS, lambda x: x) == shown
        assert (
            protocol.format_tool_call({"toolName": "f", "input": "{}"})
            == '@@{"name":"f","arguments":{}}@@'
        )
        assert protocol.write_call("f", "{}") == '@@{"name":"f","arguments":{}}@@'
        assert protocol.format_tool_response({"toolName": "f", "result": 1})
        assert protocol.parse_generated_text(a_call("{}"), TOOLS)[0]["toolName"] == "f"
        stream = protocol.create_stream_parser(TOOLS)
        assert (stream.feed(a_call("{}")) + stream.close())[-1]["type"] in ("tool-call", "text")
    assert adapt(Camel()).id == "custom:camel"  # type: ignore[union-attr]
    assert adapt(Segmenting()).extract_tool_call_segments(TEXT, TOOLS)[0] == a_call('{"a": "1"}')  # type: ignore[union-attr]


def test_mappings_of_functions_are_objects_too() -> None:
    protocol = {"parseGeneratedText": lambda args: [{"type": "text", "text": args["text"]}]}
    assert tp.parse("a", protocol).text == "a"
    foreign = adapt(protocol)
    assert isinstance(foreign, ForeignProtocol)
    assert foreign.missing() == (
        "format_tools",
        "format_tool_call",
        "format_tool_response",
        "create_stream_parser",
    )
    with pytest.raises(tp.errors.UnknownProtocol, match="formatToolCall"):
        foreign.format_tool_call({})
    with pytest.raises(tp.errors.UnwritableCall):
        foreign.write_call("f", "{}")


def test_a_factory_of_a_protocol_of_ours() -> None:
    assert (
        tp.parse('<tool_call>{"name":"f"}</tool_call>', lambda: tp.protocols()["hermes"])
        .calls[0]
        .name
        == "f"
    )


@pytest.mark.parametrize(
    "what", [object(), 1, lambda: 1, lambda x: x, lambda: 1 / 0, {"parseGeneratedText": 1}, None]
)
def test_what_is_no_protocol_is_said(what: Any) -> None:
    with pytest.raises(tp.errors.UnknownProtocol):
        tp.parse("a", what)


def test_a_closed_parser_says_so() -> None:
    parser = tp.stream(Snake(), TOOLS)
    parser.feed("a")
    assert parser.feed(None) == ()
    assert parser.close() is parser.close()
    assert parser.text_of(tp.Span(0, 1)) == "a"
    with pytest.raises(tp.errors.ParserClosed):
        parser.feed("b")
