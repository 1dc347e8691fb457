"""Schemas that nobody would write by hand: whatever they say, the work for one value has an end,
and it is counted in steps."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

import toolparse_lab as tp
from tests.growth import grows_linearly
from tests.tables import asked_of
from toolparse_lab.arguments.schema import validate as validation
from toolparse_lab.arguments.schema.coerce import coerce
from toolparse_lab.arguments.schema.conforms import Budget, OverBudget, size_of
from toolparse_lab.arguments.schema.validate import counted, spending, validate
from toolparse_lab.core.types import Policy

POLICIES = get_args(Policy)
NESTED = {
    "$defs": {
        "N": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/N"}}, {"type": "integer"}]}
    },
    "$ref": "#/$defs/N",
}
LISTS = {"$defs": {"L": {"type": "array", "items": {"$ref": "#/$defs/L"}}}, "$ref": "#/$defs/L"}


def doubling(keyword: str, levels: int, branches: int = 2) -> dict[str, Any]:
    """A schema of a line a level, in which each level names the next one several times."""
    defs: dict[str, Any] = {
        f"A{i}": {keyword: [{"$ref": f"#/$defs/A{i + 1}"}] * branches} for i in range(levels)
    }
    defs[f"A{levels}"] = {"type": "integer"}
    return {"$defs": defs, "$ref": "#/$defs/A0"}


def containers(levels: int) -> dict[str, Any]:
    """A schema whose levels are lists, objects or bare, so that a text may be wrapped at each."""
    defs: dict[str, Any] = {}
    for i in range(levels):
        below = {"$ref": f"#/$defs/A{i + 1}"}
        defs[f"A{i}"] = {
            "anyOf": [
                {"type": "array", "items": below},
                {"type": "object", "additionalProperties": below},
                below,
                {"type": "boolean"},
            ]
        }
    defs[f"A{levels}"] = {"type": "integer"}
    return {"$defs": defs, "$ref": "#/$defs/A0"}


def deep(keyword: str, levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {keyword: [schema]} if keyword.endswith("Of") else {keyword: schema}
    return schema


SCHEMAS = {
    "recursive array": NESTED,
    "lists of lists": LISTS,
    "any of": doubling("anyOf", 30),
    "one of": doubling("oneOf", 30),
    "all of": doubling("allOf", 30),
    "any of many": doubling("anyOf", 12, 20),
    "containers": containers(40),
    "deep any of": deep("anyOf", 300),
    "deep all of": deep("allOf", 300),
    "deep items": deep("items", 300),
    "circle": {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "integer"}]}},
        "$ref": "#/$defs/A"},
    "two circles": {"$defs": {
        "A": {"anyOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/A"}]},
        "B": {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}}, "$ref": "#/$defs/A"},
    "itself": {"anyOf": [{"$ref": "#"}, {"type": "array", "items": {"$ref": "#"}}]},
}  # fmt: skip


def nested(levels: int, value: Any = "x") -> Any:
    for _ in range(levels):
        value = [value]
    return value


VALUES = {
    "text": "x", "number": "5", "list text": "[[1, [2]], 3]", "object": {"a": ["x", {"b": "1"}]},
    "deep list": nested(140), "wide list": ["x", 1, None] * 20, "boolean": True, "null": None,
}  # fmt: skip


@asked_of("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_nothing_raises_and_all_work_has_an_end(schema: Any, value: Any) -> None:
    schema_json = json.dumps(schema)
    for policy in POLICIES:
        once = coerce(value, schema_json, policy)
        assert {p.code for p in once.problems} <= {"coerce.budget"}
        again = coerce(once.value, schema_json, policy)
        if policy in ("safe", "middleware"):
            assert not again.steps
    validate(value, schema_json)


@asked_of("keyword", ["anyOf", "oneOf", "allOf"])
def test_more_levels_cost_no_more(keyword: str) -> None:
    def look(levels: int) -> None:
        schema_json = json.dumps(doubling(keyword, levels))
        coerce("x", schema_json)
        validate("x", schema_json)

    # Sixty levels would otherwise cost 2^45 times as much as fifteen.
    assert grows_linearly(look, 15)


def test_what_is_given_up_is_said() -> None:
    assert [p.code for p in coerce("x", containers(40)).problems] == ["coerce.budget"]
    schema_json = json.dumps(doubling("anyOf", 30))
    assert [(p.code, p.severity) for p in validate("x", schema_json)] == [
        ("validate.budget", "error")
    ]


def test_a_call_that_could_not_be_validated_is_not_valid() -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A0"}},
        "$defs": doubling("anyOf", 30)["$defs"]}}  # fmt: skip
    raw = '<tool_call>{"name": "f", "arguments": {"a": "x"}}</tool_call>'
    call = tp.parse(raw, "hermes", [tool]).calls[0]
    assert not call.valid
    assert "validate.budget" in [p.code for p in call.problems]


def test_a_schema_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = []

    def broken(schema_json: str) -> Any:
        judged.append(schema_json)
        raise ValueError("broken")

    monkeypatch.setattr(validation, "sound_schema", broken)
    schema_json = '{"type": "object", "minProperties": 1, "title": "once"}'
    values: list[Any] = [{"a": 1}, {"a": "x"}, {}, []]
    for value in values:
        assert [p.code for p in validation.find_problems(value, schema_json)] == [
            "validate.no-schema"
        ]
    assert len(judged) == 1


@asked_of("name", ["float", "double", "int", "bool", "str", "dict", "list", "Float"])
def test_types_written_by_hand_are_read_and_told(name: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": [name, "null"]}, "b": {"type": "list",
        "items": {"type": name}}}}  # fmt: skip
    right = {
        "float": 1.5,
        "double": 1.5,
        "int": 1,
        "bool": True,
        "str": "x",
        "dict": {},
        "list": [],
    }
    value: Any = right[name.lower()]
    for arguments, valid in (({"a": value, "b": [value]}, True), ({"b": [None]}, False)):
        raw = json.dumps({"name": "f", "arguments": arguments})
        call = tp.parse(
            f"<tool_call>{raw}</tool_call>", "hermes", [{"name": "f", "parameters": schema}]
        ).calls[0]
        notes = [p for p in call.problems if p.code == "validate.type-name"]
        assert [note.severity for note in notes] == ["warning"]
        assert name in notes[0].message
        assert call.valid == valid


def test_an_argument_that_is_called_type_is_no_type() -> None:
    schema = json.dumps({"properties": {"type": {"enum": ["float"], "default": {"type": "int"}}}})
    assert validate({"type": "float"}, schema) == ()


def spend(budget: Budget, steps: int) -> None:
    for _ in range(steps):
        budget.spend()


def test_steps_are_counted_and_worth_the_size_of_the_value() -> None:
    small, large = Budget("x"), Budget(["x"] * 10_000)
    with pytest.raises(OverBudget):
        spend(small, 2_000)
    spend(large, 50_000)
    assert size_of(nested(10_000)) == 10_001


def test_nothing_is_counted_outside_of_a_validation() -> None:
    check = counted(lambda validator, keyword, instance, schema: [])
    assert check(None, None, None, None) == []
    spent = Budget(None)
    with pytest.raises(OverBudget):
        spend(spent, 2_000)
    with spending(spent), pytest.raises(OverBudget):
        check(None, None, None, None)


def test_the_negative_control_takes_numbers_of_any_length() -> None:
    for digits in (308, 309, 400, 5_000):
        for text in ("9" * digits, "-" + "9" * digits + ".5", "0" * digits + "7 km"):
            for kind in ("integer", "number"):
                coerced = coerce(f"about {text}", {"type": kind}, "lossy")
                assert validate(coerced.value, json.dumps({"type": kind})) == ()
