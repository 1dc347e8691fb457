"""A flaw in a tool's schema switches nothing off: what the sound rest refuses is never valid, and
what the sound schema accepts stays valid, if only unchecked."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema

import toolparse_lab as tp
from tests.tables import asked_of, every_case, table
from toolparse_lab.arguments.schema.patterns import matches
from toolparse_lab.arguments.schema.sound import sound_schema
from toolparse_lab.arguments.schema.validate import validate

Schema = dict[str, Any]
# Schemas of forty tools, each with arguments that it takes. What it refuses is made from those.
TOOLS: list[tuple[Schema, list[dict[str, Any]]]] = [
    (row["schema"], row["good"])
    for row in table(__file__)
    if row["test"] == "sound_schemas_are_read_as_the_library_reads_them"
]
# keyword -> values that no reader of schemas can use
FLAWS: dict[str, list[Any]] = {
    row["keyword"]: row["flaws"]
    for row in table(__file__)
    if row["test"] == "a_flaw_switches_off_nothing_but_itself"
}
# What is left out with a keyword, because it says nothing alone.
WITH: dict[str, tuple[str, ...]] = {
    "properties": ("additionalProperties", "unevaluatedProperties"),
    "patternProperties": ("additionalProperties", "unevaluatedProperties"),
    "additionalProperties": ("unevaluatedProperties",),
    "if": ("then", "else"),
    "$ref": ("unevaluatedProperties",),
    "anyOf": ("unevaluatedProperties",),
    "oneOf": ("unevaluatedProperties",),
    "allOf": ("unevaluatedProperties",),
}
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
NODES = ("items", "additionalProperties", "not", "if", "then", "contains", "propertyNames")
MAPS = ("properties", "patternProperties", "$defs", "dependentSchemas")
# A broken node below one of these does not only loosen the schema.
NOT_LOOSER = {"not", "oneOf", "if", "contains", "propertyNames"}


WRONG: list[Any] = ["zzz", -7, 0.25, True, [], {}, None, {"x": 1}, ["zzz"]]


def variants(value: Any) -> Iterator[Any]:
    """Copies of a value with one place changed, left out, or one member more."""
    for path in paths_of(value):
        for wrong in WRONG:
            if path:
                changed = copy.deepcopy(value)
                at(changed, path[:-1])[path[-1]] = wrong
                yield changed
        if path and isinstance(path[-1], str):
            changed = copy.deepcopy(value)
            del at(changed, path[:-1])[path[-1]]
            yield changed
        if isinstance(at(value, path), dict):
            changed = copy.deepcopy(value)
            at(changed, path)["extra"] = 1
            yield changed


def paths_of(value: Any) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a value, its own first."""
    yield ()
    keys = value if isinstance(value, dict) else range(len(value)) if type(value) is list else ()
    for key in keys:
        inner = value[key]
        for path in paths_of(inner):
            yield (key, *path)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all nodes of a schema."""
    if not isinstance(node, dict):
        return
    yield path
    for keyword, inner in node.items():
        if keyword in LISTS:
            for i, branch in enumerate(inner):
                yield from places(branch, (*path, keyword, i))
        elif keyword in MAPS:
            for name, member in inner.items():
                yield from places(member, (*path, keyword, name))
        elif keyword in NODES:
            yield from places(inner, (*path, keyword))


def planted() -> list[tuple[int, tuple[Any, ...], str, Any]]:
    """Every flaw at every place: tool, place, keyword ('' for the whole node), value."""
    out: list[tuple[int, tuple[Any, ...], str, Any]] = []
    for i, (schema, _) in enumerate(TOOLS):
        for place in places(schema):
            out += [(i, place, k, value) for k, values in FLAWS.items() for value in values]
            out += [(i, place, "", value) for value in (None, 5, "frobnicate") if place]
    return out


def schemas(place: tuple[Any, ...], sound: Schema, keyword: str, flaw: Any) -> tuple[Any, Any]:
    """The schema with the flaw, and its sound rest, None where that is no looser schema."""
    broken, rest = copy.deepcopy(sound), copy.deepcopy(sound)
    if keyword:
        at(broken, place)[keyword] = flaw
        for gone in (keyword, *WITH.get(keyword, ())):
            at(rest, place).pop(gone, None)
    else:
        at(broken, place[:-1])[place[-1]] = flaw
        at(rest, place[:-1])[place[-1]] = {}
    blind = not keyword or keyword in WITH
    above = {"unevaluatedProperties", *NOT_LOOSER} if blind else NOT_LOOSER
    parents = [at(sound, place[:i]) for i in range(len(place))]
    is_looser = not NOT_LOOSER.intersection(place) and not any(
        above.intersection(node) for node in parents if isinstance(node, dict)
    )
    return broken, rest if is_looser and "$ref" not in json.dumps(sound) else None


def is_valid(value: Any, schema_json: str) -> bool:
    return not any(p.severity == "error" for p in validate(value, schema_json))


def accepts(schema: Any, value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@asked_of("seed", range(4))
def test_a_flaw_switches_off_nothing_but_itself(seed: int) -> None:
    rng = random.Random(seed)
    n_refused = n_accepted = 0
    for i, place, keyword, flaw in rng.sample(planted(), 250):
        sound, good = TOOLS[i]
        broken, rest = schemas(place, sound, keyword, flaw)
        broken_json = json.dumps(broken)
        told = sound_schema(broken_json)
        assert told.notes, (broken, "the flaw is not named")
        wrong = [value for one in good for value in variants(one)]
        for value in [*good, *rng.sample(wrong, min(len(wrong), 12))]:
            valid = is_valid(value, broken_json)
            if accepts(sound, value) and not told.is_unusable:
                n_accepted += 1
                assert valid, (broken, value, validate(value, broken_json))
            if rest is not None and not accepts(rest, value):
                n_refused += 1
                assert not valid, (broken, rest, value)
    assert n_refused > 200
    assert n_accepted > 200


def test_sound_schemas_are_read_as_the_library_reads_them() -> None:
    for schema, good in TOOLS:
        text = json.dumps(schema)
        assert sound_schema(text).is_plainly_written
        assert all(is_valid(value, text) for value in good)
        for value in [changed for one in good for changed in variants(one)]:
            assert is_valid(value, text) == accepts(schema, value), (schema, value)


def member(node: Any, **beside: Any) -> str:
    return json.dumps({"type": "object", "properties": {"n": node}, **beside})


@every_case
def test_dialects_are_read_as_they_are_meant(node: Any, good: Any, wrong: Any) -> None:
    assert is_valid({"n": good}, member(node))
    assert not is_valid({"n": wrong}, member(node))
    assert not [p for p in validate({"n": good}, member(node)) if p.code == "validate.unchecked"]


def test_what_generators_write_for_nothing_is_nothing() -> None:
    closed = {"additionalProperties": "false"}
    assert not is_valid({"x": 1}, json.dumps({"type": "object", "properties": None, **closed}))
    assert not is_valid({}, member({"type": "string", "required": True}))
    assert is_valid({}, json.dumps({"type": "object", "properties": [], "required": None}))


def test_a_call_says_what_of_it_is_unchecked() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"a": {"b": 1}, "n": 2}}</tool_call>'
    properties = {"a": {"properties": {"b": {"$ref": "#/$defs/Lost"}}}, "n": {"type": "integer"}}
    tool = {"name": "f", "parameters": {"type": "object", "properties": properties}}
    call = tp.parse(text, "hermes", [tool]).calls[0]
    assert (call.valid, call.unchecked, call.verdict) == (True, ("/a/b",), "unchecked")
    assert any("/properties/a/properties/b/$ref" in p.message for p in call.problems)
    refused = tp.parse(text, "hermes", [tool], {"unchecked": "refuse"}).calls[0]
    assert (refused.valid, refused.unchecked, refused.verdict) == (False, ("/a/b",), "invalid")
    whole = {"name": "f", "parameters": {"$ref": "#/$defs/Lost"}}
    assert not tp.parse(text, "hermes", [whole]).calls[0].valid


def test_one_sound_branch_is_enough() -> None:
    union = {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Lost"}]}
    assert [p.path for p in validate({"n": 1}, member(union)) if p.path] == []
    assert [p.path for p in validate({"n": "x"}, member(union)) if p.path] == ["/n"]


@every_case
def test_arguments_are_coerced_as_they_are_validated(schema: Schema, definitions: Schema) -> None:
    schema = {"type": "object", **schema, "$defs": definitions}
    coerced = tp.coerce({"k": "a", "n": "2"}, schema)
    assert coerced.value == {"k": "a", "n": 2}
    assert is_valid(coerced.value, json.dumps(schema))
    assert not is_valid({"k": "a", "n": "x"}, json.dumps(schema))


def test_a_very_deep_schema_is_still_a_schema() -> None:
    node: Any = '{"type": "integer"}'
    for _ in range(3_000):
        node = f'{{"type": "object", "properties": {{"n": {node}}}, "additionalProperties": false}}'
    assert not is_valid({"n": {"n": 5}}, node)
    assert is_valid({"n": {"n": {}}}, node)
    flat = '{"type": "object", "properties": {"n": ' + '{"allOf": [' * 3_000
    flat += '{"type": "integer"}' + "]}" * 3_000 + ', "m": {"type": "string"}}}'
    assert not is_valid({"m": 1}, flat)
    assert "validate.unchecked" in {p.code for p in validate({"n": "x", "m": "y"}, flat)}


@every_case
def test_patterns_mean_what_ecma_says(pattern: str, text: str, does: bool) -> None:
    assert matches(pattern, text) == does
