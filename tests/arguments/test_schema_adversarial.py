"""Hostile pairs of schema and value: `safe` makes no wrong rescue, and no fewer right ones than
pydantic's lax mode, which is run beside it."""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, NotRequired

import jsonschema
from annotated_types import Ge, Le
from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

import toolparse_lab as tp
from tests.core_cases import load, rows
from tests.tables import asked_of

# A row without `want` has no reading that loses nothing: whatever makes it valid is a wrong rescue.
PAIRS = load("adversarial.jsonl")
TYPES: dict[str, Any] = {
    "integer": int, "number": float, "boolean": bool, "string": str, "null": None,
}  # fmt: skip


class Members(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    a: int
    b: NotRequired[float]


def pydantic_type(schema: dict[str, Any]) -> Any:
    """The Python type that says what this schema of the table says."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    kinds = [branch["type"] for branch in schema.get("anyOf", ())] or schema["type"]
    if isinstance(kinds, list):
        first, second = (TYPES[kind] for kind in kinds)
        return first | second
    if kinds == "array":
        return types.GenericAlias(list, (TYPES[schema["items"]["type"]],))
    if kinds == "object":
        return Members
    bounds = [Le(schema["maximum"])] if "maximum" in schema else []
    lower = [Ge(schema["minimum"])] if "minimum" in schema else []
    marks = [*bounds, *lower]
    return Annotated[TYPES[kinds], *marks] if marks else TYPES[kinds]


def lax(value: Any, schema: dict[str, Any]) -> Any:
    """What pydantic's lax mode makes of the value; the value itself where it refuses."""
    try:
        return TypeAdapter(pydantic_type(schema)).validate_python(value)
    except ValidationError:
        return value


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def equal(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def verdict(row: dict[str, Any], value: Any) -> str:
    """One of kept, left, right, wrong: what became of the row's value."""
    if is_valid(row["value"], row["schema"]):
        return "kept" if equal(value, row["value"]) else "wrong"
    if not is_valid(value, row["schema"]):
        return "left"
    return "right" if "want" in row and equal(value, row["want"]) else "wrong"


@asked_of("row", rows("adversarial.jsonl"))
def test_safe_makes_no_wrong_rescue(row: dict[str, Any]) -> None:
    value = tp.coerce(row["value"], row["schema"], "safe").value
    assert verdict(row, value) in ("kept", "right", "left")
    if "want" in row:
        assert equal(value, row["want"]), "a right rescue was missed"


def test_safe_rescues_no_less_than_pydantic_s_lax_mode() -> None:
    assert len(PAIRS) >= 100
    counts = {"safe": dict[str, int](), "lax": dict[str, int]()}
    for row in PAIRS:
        safe = tp.coerce(row["value"], row["schema"], "safe").value
        for name, value in (("safe", safe), ("lax", lax(row["value"], row["schema"]))):
            word = verdict(row, value)
            counts[name][word] = counts[name].get(word, 0) + 1
            if name == "lax" and word == "right":
                assert verdict(row, safe) == "right", row["title"]
    assert counts["safe"].get("wrong", 0) == 0
    assert counts["safe"]["right"] >= counts["lax"]["right"]
    assert counts["lax"]["wrong"] > 0, "the table holds nothing hostile"
