"""Type rules: each one's examples are what they say they are."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

import toolparse_lab as tp
from toolparse_lab.prompt import TAG_TYPE_RULES, TYPE_RULES, XML_TYPE_RULES, TypeRule, render_type_rules, rule_for

TYPES = {"number": float, "integer": int, "boolean": bool, "string": str, "array": list, "object": dict}


@pytest.mark.parametrize("rule", TYPE_RULES, ids=lambda r: r.json_type)
def test_examples_are_right_and_wrong(rule: TypeRule) -> None:
    assert type(json.loads(rule.example)) is TYPES[rule.json_type]
    try:
        wrong = json.loads(rule.anti_pattern)
    except ValueError:
        return
    assert type(wrong) is not TYPES[rule.json_type]


@pytest.mark.parametrize("rule", XML_TYPE_RULES, ids=lambda r: r.json_type)
def test_xml_examples_are_elements(rule: TypeRule) -> None:
    right = render_type_rules("xml", [rule]).split("CORRECT: ")[1].split("  WRONG")[0]
    assert ET.fromstring(f"<r>{right}</r>")[0].tag == rule.parameter
    assert rule.example != rule.anti_pattern


def test_examples_between_tags_are_what_they_say() -> None:
    lines = render_type_rules("tags").split("\n")
    schema = {"properties": {r.parameter: {"type": r.json_type} for r in TAG_TYPE_RULES}}
    tool = {"name": "f", "parameters": schema}
    for rule, line in zip(TAG_TYPE_RULES, lines, strict=True):
        right, wrong = line.split("CORRECT: ")[1].split("  WRONG: ")
        calls = [tp.parse(f"<function=f>{p}</function>", "qwen3_coder_xml", [tool]).calls[0] for p in (right, wrong)]
        assert type(calls[0].arguments[rule.parameter]) is TYPES[rule.json_type]
        if rule.json_type != "string":  # quotes around a string are part of it
            assert not calls[1].valid or rule.json_type in ("array", "object")


def test_the_agreed_pairs_are_there() -> None:
    text = render_type_rules()
    for right, wrong in (
        ('"lat": 35.6897', '"lat": "35.6897"'),
        ('"count": 10', '"count": "10"'),
        ('"enabled": true', '"enabled": "true"'),
        ('"city": "Tokyo"', '"city": Tokyo'),
    ):
        assert f"CORRECT: {right}  WRONG: {wrong}\n" in text
    assert text.count("\n") == len(TYPE_RULES) - 1


@pytest.mark.parametrize(
    ("word", "json_type"), [("float64", "number"), ("INT64", "integer"), ("bool", "boolean"), ("date", None)]
)
def test_rule_for(word: str, json_type: str | None) -> None:
    rule = rule_for(word)
    assert (rule.json_type if rule else None) == json_type


def test_no_word_means_two_types() -> None:
    words = [w for rule in TYPE_RULES for w in rule.type_names]
    assert len(words) == len(set(words))
    assert [r.type_names for r in XML_TYPE_RULES] == [r.type_names for r in TYPE_RULES]
