"""Response templates and structural tags: a format in the words of other programs, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.chat_templates import FAMILIES
from tests.tables import each_case, table
from tests.tools import tool_named
from toolparse_lab.core.errors import BadOptions, UnreadableTemplate
from toolparse_lab.extensions.templates import (
    protocol_from_chat_template,
    protocol_from_response_template,
    response_template_of,
    structural_tag_of,
)
from toolparse_lab.extensions.templates.derivation.answers import HELD
from toolparse_lab.extensions.templates.derivation.response_template import (
    UnsampledPattern,
    sample_of,
)

TOOL = tool_named("find", required=["q"], q="string")


def spec(calls: dict[str, Any]) -> dict[str, Any]:
    """Return a response template with these calls."""
    thought = {"open": "[THINK]", "close": "[/THINK]"}
    fields = {"content": {"content": "text"}, "thinking": thought, "tool_calls": calls}
    return {"start_anchor": "<|assistant|>", "fields": fields}


@each_case
def test_a_response_template_becomes_a_protocol_that_reads_damage(
    calls: dict[str, Any], damaged: str
) -> None:
    protocol = protocol_from_response_template(spec(calls), id="mine")
    assert protocol.derivation is not None
    assert protocol.id == "mine"
    assert protocol.derivation.source == "response template"
    assert len(protocol.derivation.read_back) == len(HELD)
    result = tp.parse(f"[THINK]Hm.[/THINK]{damaged}", protocol, [TOOL])
    assert [(c.name, c.arguments) for c in result.calls] == [("find", {"q": "x"})]
    assert result.reasoning == "Hm."
    assert result.calls[0].ok

    # And back: the same format again.
    again = protocol_from_response_template(response_template_of(protocol))
    assert again.derivation is not None
    assert again.derivation.family == protocol.derivation.family


def test_templates_come_from_the_files_of_a_model(tmp_path: Path) -> None:
    schema = {
        "properties": {
            "thinking": {"type": "string", "x-regex": "<think>(.*?)</think>"},
            "tool_calls": {
                "type": "array",
                "x-regex-iterator": r"<tool_call>\s*(.*?)\s*</tool_call>",
                "items": {"type": "object", "x-parser": "json"},
            },
        }
    }
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"response_schema": schema}))
    protocol = protocol_from_response_template(path)
    assert protocol.derivation is not None
    assert protocol.derivation.row == "hermes"
    for source in (tmp_path, path.read_text()):
        again = protocol_from_response_template(source)
        assert again.spec == protocol.spec
    sources: list[Any] = [{}, {"fields": {"content": {}}}, 3, tmp_path / "none.json", "", "{", b"x"]
    sources += ["x" * 5000, "a\0b", [], None]
    for wrong in sources:
        with pytest.raises(BadOptions):
            protocol_from_response_template(wrong)


@each_case
def test_a_response_template_of_no_family_is_refused(calls: dict[str, Any]) -> None:
    with pytest.raises(UnreadableTemplate):
        protocol_from_response_template(spec(calls))


@pytest.mark.parametrize("parser", ["json", "int"])
def test_values_that_only_another_parser_reads_are_refused(parser: str) -> None:
    """transformers takes the quotes off such a text, and a family of ours would keep them."""
    calls = next(
        json.loads(json.dumps(r["calls"])) for r in table(__file__) if r.get("title") == "tags"
    )
    calls["content_args"]["value_parser"] = {"name": parser}
    with pytest.raises(UnreadableTemplate):
        protocol_from_response_template(spec(calls))
    calls["content_args"]["value_parser"] = {"name": "json", "args": {"allow_non_json": True}}
    protocol = protocol_from_response_template(spec(calls))
    assert tp.parse("<do=find><with=q>x</with></do>", protocol).calls[0].arguments == {"q": "x"}


def test_patterns_are_sampled() -> None:
    assert sample_of(r"(?:<s>\s*)?<a\b[^>]*>(?P<name>.*?)(?=</a>)") == "<a>{name}"
    assert sample_of(r"x{2}[\s]+(?:a|b)\d+$") == "xx\na{index}"
    for wrong in ("(", "a{1001}", "(?:a" * 60 + "){2}" * 60):
        with pytest.raises(UnsampledPattern):
            sample_of(wrong)


def test_every_format_that_can_be_said_comes_back() -> None:
    unsayable: set[str] = set()
    for protocol in (*tp.protocols().values(),):
        try:
            template = response_template_of(protocol)
        except BadOptions:
            unsayable.add(protocol.id)
            continue
        assert json.loads(json.dumps(template)) == template
    # Any word would open a call of glm4_9b; several objects follow one opener of minimax_m1.
    assert {"pythonic", "morph_xml", "glm4_9b", "minimax_m1"} <= unsayable
    assert not {"hermes", "qwen3_coder_xml", "gemma4", "kimi_k2", "glm45_newline"} & unsayable
    for shipped in ("hermes", "qwen3_coder_xml", "kimi_k2"):
        template = response_template_of(tp.protocols()[shipped])
        back = protocol_from_response_template({"response_template": template})
        assert back.derivation is not None
        assert back.derivation.row == shipped


def test_structural_tags_begin_and_end_as_calls_are_written() -> None:
    schema = TOOL["parameters"]
    for protocol in (tp.protocols()["hermes"], protocol_from_chat_template(FAMILIES["named"])):
        tag = structural_tag_of(protocol, [TOOL])
        (outer,) = tag["format"]["tags"]
        (call,) = outer["content"].get("tags", [outer])
        assert call["content"] == {"type": "json_schema", "json_schema": schema}
        assert any(outer["begin"].startswith(t) for t in tag["format"]["triggers"])
        text = f'{call["begin"]}{{"q": "x"}}{call["end"]}'
        if call is not outer:
            text = f"{outer['begin']}{text}{outer['end']}"
        (read,) = tp.parse(text, protocol, [TOOL]).calls
        assert read.ok
        assert read.arguments == {"q": "x"}
        assert not read.problems
    tag = structural_tag_of(tp.protocols()["qwen3_coder_xml"], [TOOL])
    assert tag["format"]["tags"][0]["content"]["type"] == "qwen_xml_parameter"
    assert tag["format"]["tags"][0]["begin"] == "<tool_call>\n<function=find>\n"
    # Each format has its own white space, and a call without arguments has no line of its own.
    for shipped in ("qwen3_coder_xml", "mimo_compact", "seed_oss"):
        (call,) = structural_tag_of(tp.protocols()[shipped], [TOOL])["format"]["tags"]
        assert call["begin"] + call["end"] == tp.protocols()[shipped].write_call("find", "{}")
    # The calls of one answer stand in one list or section.
    other = {**TOOL, "name": "seek"}
    for shipped in ("jamba", "deepseek_v31", "minimax_m1", "apertus"):
        protocol = tp.protocols()[shipped]
        (section,) = structural_tag_of(protocol, [TOOL, other])["format"]["tags"]
        content = section["content"]
        assert content["type"] == "tags_with_separator"
        calls = [f'{call["begin"]}{{"q":"x"}}{call["end"]}' for call in content["tags"]]
        text = section["begin"] + content["separator"].join(calls) + section["end"]
        written = [protocol.write_call(name, '{"q":"x"}') for name in ("find", "seek")]
        assert text == protocol.join_calls(written)
    for protocol_id in ("pythonic", "glm45_newline", "morph_xml"):
        with pytest.raises(BadOptions, match="structural tag"):
            structural_tag_of(tp.protocols()[protocol_id], [TOOL])
    with pytest.raises(BadOptions, match="at least one tool"):
        structural_tag_of(tp.protocols()["hermes"], [])
