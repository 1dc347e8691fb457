"""Type rules: each format's examples are what they say they are, read by the format itself."""

from __future__ import annotations

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.formats.prompt.type_rules import JSON_TYPE_RULES, TypeRule
from toolparse_lab.formats.registry import family_heads

TYPES = {
    "number": float,
    "integer": int,
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
}
# Protocol -> a call around one parameter as its rules write it.
AROUND = {
    "hermes": '<tool_call>{{"name": "f", "arguments": {{{}}}}}</tool_call>',
    "morph_xml": "<f>{}</f>",
    "qwen3_coder_xml": "<tool_call>\n<function=f>\n{}\n</function>\n</tool_call>",
    "yaml_xml": "<f>\n{}\n</f>",
    "pythonic": "[f({})]",
}
# These write types themselves; the others have them from the schema, and forgive more.
STRICT = ("hermes", "pythonic")
RULES = [
    pytest.param(protocol, rule, id=f"{protocol}-{rule.json_type}")
    for protocol in AROUND
    for rule in tp.protocols()[protocol].type_rules.rules
]


def read_value(protocol: str, rule: TypeRule, value: str) -> object:
    """What the format reads where a model writes the rule's example; None where it reads nothing."""
    schema = {"type": "object", "properties": {rule.parameter: {"type": rule.json_type}}}
    pair = tp.protocols()[protocol].type_rules.write_pair(rule.parameter, value)
    result = tp.parse(
        AROUND[protocol].format(pair), protocol, [{"name": "f", "parameters": schema}],
        {"coerce": "none", "repair": False} if protocol in STRICT else None,
    )  # fmt: skip
    call = result.calls[0] if result.calls else None
    if call is None or not call.valid or rule.parameter not in call.arguments:
        return None
    return call.arguments[rule.parameter]


@pytest.mark.parametrize(("protocol", "rule"), RULES)
def test_the_right_example_has_its_type_in_its_own_format(protocol: str, rule: TypeRule) -> None:
    assert type(read_value(protocol, rule, rule.example)) is TYPES[rule.json_type]


@pytest.mark.parametrize(("protocol", "rule"), [r for r in RULES if r.values[0] in STRICT])
def test_the_wrong_example_is_not_read(protocol: str, rule: TypeRule) -> None:
    assert read_value(protocol, rule, rule.anti_pattern) is None


@pytest.mark.parametrize("protocol", sorted(family_heads()))
def test_every_protocol_speaks_of_every_type_in_one_order(protocol: str) -> None:
    rules = tp.protocols()[protocol].type_rules.rules
    assert [r.json_type for r in rules] == [r.json_type for r in JSON_TYPE_RULES.rules]


@each_case
def test_rules_speak_the_language_of_their_format(protocol: str, line: str) -> None:
    assert line in tp.protocols()[protocol].type_rules.render()


def test_rules_of_a_format_made_from_data_use_its_words() -> None:
    invoke = tp.Protocol.from_spec(
        id="invoke", body="tags", function="invoke", parameter="arg", attribute=True
    )
    assert '<arg name="city">Tokyo</arg>' in invoke.type_rules.render()


def test_the_agreed_pairs_are_there() -> None:
    text = JSON_TYPE_RULES.render()
    for right, wrong in (
        ('"lat": 35.6897', '"lat": "35.6897"'),
        ('"count": 10', '"count": "10"'),
        ('"enabled": true', '"enabled": "true"'),
        ('"city": "Tokyo"', '"city": Tokyo'),
    ):
        assert f"CORRECT: {right}  WRONG: {wrong}\n" in text
    assert text.count("\n") == len(JSON_TYPE_RULES.rules) - 1
