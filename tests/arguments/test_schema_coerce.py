"""Coercion by policy: what each policy makes of a value, by which rules, and that it is idempotent
and pure."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.cases.check import check, decode
from tests.core_cases import SHIPPED, load, rows
from tests.tools import object_schema
from toolparse_lab.core.rules import RULES
from toolparse_lab.core.values import leaves, pointer_set, read_strict, same, write_canonical


@pytest.mark.parametrize("policy", ["none", "safe", "middleware"])
@pytest.mark.parametrize("case", rows("coerce.jsonl"))
def test_coerce(case: dict[str, Any], policy: Any) -> None:
    want, rules = (case["value"], []) if policy == "none" else case[policy]
    before = copy.deepcopy(case["value"])
    written = {name: case.get(name, False) for name in ("one_item", "raw_text")}
    found = tp.coerce(case["value"], case["schema"], policy, **written)
    assert same(found.value, want), found.value
    assert sorted(s.rule for s in found.steps) == sorted(rules)
    assert same(case["value"], before), "the value given was changed"
    assert all(s.stage == "coerce" and s.rule in RULES for s in found.steps)


@pytest.mark.parametrize("policy", ["safe", "middleware"])
@pytest.mark.parametrize("case", rows("coerce.jsonl"))
def test_coercing_twice_makes_no_step(case: dict[str, Any], policy: Any) -> None:
    once = tp.coerce(case["value"], case["schema"], policy, one_item=True)
    again = tp.coerce(once.value, case["schema"], policy, one_item=True)
    assert again.steps == ()
    raw = tp.coerce(case["value"], case["schema"], policy, raw_text=True)
    assert tp.coerce(raw.value, case["schema"], policy, raw_text=True).steps == ()


@pytest.mark.parametrize("policy", ["safe", "middleware"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_coercing_twice_makes_no_step_whatever_types_are_legal(policy: Any, count: int) -> None:
    types = ["array", "string", "integer", "number", "boolean", "null", "object"]
    values: list[Any] = [
        "a", "a, b", "[1]", "5", "1e3", "true", "null", "{}", "", 5, 5.5, True, None, [], ["a"],
        [[1]], {}, {"a": 1}, {"item": "x"}, {"0": "a"},
    ]  # fmt: skip
    for names in itertools.permutations(types, count):
        for schema in ({"type": [*names]}, {"type": [*names], "items": {"type": "string"}}):
            for value in values:
                once = tp.coerce(value, schema, policy)
                again = tp.coerce(once.value, schema, policy)
                assert again.steps == (), (schema, value)
                assert again.value == once.value


@pytest.mark.parametrize("policy", ["safe", "middleware"])
@pytest.mark.parametrize("case", rows("coerce.jsonl"))
def test_the_steps_lead_from_value_to_result(case: dict[str, Any], policy: Any) -> None:
    found = tp.coerce(case["value"], case["schema"], policy)
    value = copy.deepcopy(case["value"])
    for step in found.steps:
        value = pointer_set(value, step.path, read_strict(write_canonical(step.after)))
    assert same(value, found.value)


@pytest.mark.parametrize("case", rows("coerce.jsonl"))
def test_safe_makes_only_lossless_steps(case: dict[str, Any]) -> None:
    assert all(s.lossless for s in tp.coerce(case["value"], case["schema"], "safe").steps)


@pytest.mark.parametrize("case", rows("coerce.jsonl"))
def test_safe_never_touches_what_is_legal(case: dict[str, Any]) -> None:
    import jsonschema

    schema = case["schema"].get("jsonSchema", case["schema"])
    if case["title"] in (
        "circle of references",
        "hostile pattern is left alone",
        "types written by hand",
    ):  # these the oracle cannot take
        return
    if jsonschema.Draft202012Validator(_modern(schema)).is_valid(case["value"]):
        assert tp.coerce(case["value"], case["schema"], "safe").steps == ()


def _modern(schema: Any) -> Any:
    """A schema whose tuples are written the new way."""
    if isinstance(schema, dict) and isinstance(schema.get("items"), list):
        return {**schema, "prefixItems": schema["items"], "items": True}
    return schema


@pytest.mark.parametrize(
    "case", [c for c in rows("middleware.jsonl", SHIPPED) if c.values[0]["op"] == "coerce"]
)
def test_middleware_cases(case: dict[str, Any]) -> None:
    got = {"value": tp.coerce_by_schema(decode(case["value"]), case.get("schema"))}
    assert check(case["expect"], got) is None


def test_the_middleware_cases_are_there() -> None:
    assert sum(c["op"] == "coerce" for c in load("middleware.jsonl", SHIPPED)) > 100


def test_a_wrong_policy_is_named() -> None:
    with pytest.raises(tp.errors.UnknownName) as caught:
        tp.coerce(1, {}, "safest")  # type: ignore[arg-type]
    assert "safest" in str(caught.value)
    assert "middleware" in str(caught.value)


def test_schema_as_text_mapping_bool_and_none() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for given in (schema, json.dumps(schema)):
        assert tp.coerce({"a": "1"}, given).value == {"a": 1}
    for nothing in (True, None):
        assert tp.coerce({"a": "1"}, nothing).value == {"a": "1"}


def test_number_lexemes_become_text_as_written() -> None:
    value = read_strict('{"a": 3.0, "b": 1e5, "c": 12345678901234567890.5}')
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    assert tp.coerce(value, schema).value == {"a": "3.0", "b": "1e5", "c": "12345678901234567890.5"}


def test_big_integers_stay_exact() -> None:
    text = "9" * 400
    assert tp.coerce(text, {"type": "integer"}).value == int(text)


def test_depth_is_no_error() -> None:
    schema: dict[str, Any] = {
        "$defs": {"T": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
        "$ref": "#/$defs/T",
    }
    value: Any = []
    for _ in range(600):
        value = [value]
    assert same(tp.coerce(value, schema, "middleware").value, value)
    assert sum(1 for _ in leaves(value)) == 1


def test_steps_name_their_paths() -> None:
    schema = object_schema(a={"type": "array", "items": {"type": "integer"}})
    steps = tp.coerce({"a": '["1", 2, "3"]'}, schema).steps
    assert [(s.rule, s.path) for s in steps] == [
        ("coerce.json-from-string", "/a"),
        ("coerce.integer-from-string", "/a/0"),
        ("coerce.integer-from-string", "/a/2"),
    ]
    assert steps[1].before == "1"
    assert steps[1].after == 1
