"""Validation of arguments against a tool's schema, as problems with path and keyword. Nothing is ever fetched."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import Any

from ..rjson.strict import depth
from ..types import Policy, Problem
from ..values import Value, escape_token, read_plain
from .bounds import Bounds, split_bounds, within
from .conforms import TooDeep, is_type
from .keywords import KEYWORDS, brief, said
from .library import load_jsonschema
from .patterns import TooSlow
from .view import View, node_at, unwrap_json_schema, view_of

_CODES = {
    "type": "validate.type",
    "required": "validate.required",
    "enum": "validate.enum",
    "const": "validate.enum",
    "additionalProperties": "validate.additional",
    "unevaluatedProperties": "validate.additional",
}
_MAX_PROBLEMS = 50
_CHANGES_NOTHING: tuple[Policy, ...] = ("none", "safe")  # policies that leave whatever conforms as it is
_DEEP = 30  # levels from which it is the value, and not the schema, that goes too deep


def validate(value: Value, schema_json: str) -> tuple[Problem, ...]:
    """The problems of `value` under a schema, in document order; spans are added by who knows the raw text.

    A value that plainly conforms to a plain schema never reaches the validator library. A schema that is itself
    broken gives one problem of severity warning.
    """
    with contextlib.suppress(Exception):  # of a broken schema, of which the library says what is wrong
        if fits(value, schema_json):
            return ()
    return find_problems(value, schema_json)


def find_problems(value: Value, schema_json: str) -> tuple[Problem, ...]:
    """`validate` for a value of which `fits` has said that it does not plainly conform."""
    try:
        validator = _validator(schema_json)
        if sure := _plain_members(value, schema_json):
            validator = _validator_but(schema_json, sure)
        errors = []
        for error in validator.iter_errors(value):
            errors.append(error)
            if len(errors) == _MAX_PROBLEMS:
                break
    except RecursionError:
        if depth([value]) < _DEEP:
            return (
                Problem("validate", "validate.schema", "warning", "the tool's schema refers to itself in a circle"),
            )
        return (Problem("validate", "validate.too-deep", "error", "not validated: the value nests too deep"),)
    except ArithmeticError as e:  # a number so large that the library cannot reckon with it
        return (Problem("validate", "validate.constraint", "error", f"a number is out of range: {brief(str(e))}"),)
    except TooSlow as e:
        return (Problem("validate", "validate.slow-pattern", "error", f"not validated: {e}"),)
    except Exception as e:  # a broken schema breaks the library in many ways; none may break a parse
        return (Problem("validate", "validate.schema", "warning", f"the tool's schema is broken: {brief(str(e))}"),)
    # The library complains once a missing member; one complaint an object names them all.
    return tuple(sorted(dict.fromkeys(_problem(e) for e in errors), key=lambda p: p.path))


def fits(value: Value, schema_json: str, policy: Policy = "safe") -> bool:
    """Whether a value plainly conforms to a plain schema, so that the policy changes nothing in it and `validate` finds
    nothing. False says nothing. Raises what a broken schema raises."""
    plain = _plain_schema(schema_json)
    if plain is None:
        return False
    view, bounds = plain
    if policy == "middleware":
        if not view.of_leaves(value) or not view.required <= value.keys():
            return False
        return not bounds or within(value, bounds)
    if policy not in _CHANGES_NOTHING:
        return False
    try:
        return view.conforms(value) and (not bounds or within(value, bounds))
    except TooDeep:
        return False


def _plain_members(value: Value, schema_json: str) -> frozenset[str]:
    """The members of an object that plainly are what the schema says, of which the library need not be asked."""
    plain = _plain_schema(schema_json)
    if plain is None or type(value) is not dict or plain[0].box is not dict or '"$ref"' in schema_json:
        return frozenset()  # a reference may lead to another member's schema
    leaves, bounded = plain[0].leaves, [name for name, _ in plain[1]]
    return frozenset([k for k, v in value.items() if type(v) in leaves.get(k, ()) and k not in bounded])


def _problem(error: Any) -> Problem:
    path = "".join("/" + escape_token(t) for t in error.absolute_path)
    keyword = str(error.validator)
    code = _CODES.get(keyword, "validate.constraint")
    return Problem("validate", code, "error", _message(error, keyword), path)


def _message(error: Any, keyword: str) -> str:
    if keyword == "type":
        want = error.validator_value
        want = " or ".join(want) if isinstance(want, list) else str(want)
        return f"expected {want}, got {_type_name(error.instance)} {said(error.instance)}"
    if keyword == "required":
        missing = [k for k in error.validator_value if k not in error.instance]
        return f"missing: {', '.join(map(str, missing))}"
    if keyword == "enum":
        return f"expected one of {brief(repr(error.validator_value), 120)}, got {said(error.instance)}"
    if keyword == "const":
        return f"expected {brief(repr(error.validator_value))}, got {said(error.instance)}"
    return f"{keyword}: {brief(str(error.message), 160)}"


def _type_name(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {str: "string", int: "integer", dict: "object", list: "array"}.get(type(value), "number")


@lru_cache(maxsize=512)
def _validator(schema_json: str) -> Any:
    from referencing import Registry

    jsonschema = load_jsonschema()
    schema = unwrap_json_schema(read_plain(schema_json))
    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    cls.check_schema(schema)
    cls = jsonschema.validators.extend(
        cls, KEYWORDS, type_checker=cls.TYPE_CHECKER.redefine("integer", lambda _, value: is_type(value, "integer"))
    )
    # A registry of its own keeps the library from ever looking a reference up on the network.
    return cls(schema, registry=Registry())


@lru_cache(maxsize=2048)
def _validator_but(schema_json: str, sure: frozenset[str]) -> Any:
    """The validator of the schema with members that may be anything."""
    whole = _validator(schema_json)
    properties = whole.schema.get("properties")
    if not isinstance(properties, dict):
        return whole
    left = {k: True if k in sure else v for k, v in properties.items()}
    return whole.evolve(schema={**whole.schema, "properties": left})


# The keywords that never make a value wrong, and with them those `View.conforms` looks at.
_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "$schema", "$comment", "deprecated", "readOnly", "writeOnly",
     "format")
)  # fmt: skip
_PLAIN = _ANNOTATIONS | frozenset(
    ("type", "properties", "required", "enum", "const", "items", "prefixItems", "anyOf", "additionalProperties",
     "$defs", "definitions")
)  # fmt: skip


@lru_cache(maxsize=2048)
def _plain_schema(schema_json: str) -> tuple[View, Bounds] | None:
    """The view of a schema that has no other keywords than the plain ones and bounds of its members, and those
    bounds; None for all others."""
    schema, bounds = split_bounds(unwrap_json_schema(read_plain(schema_json)))
    stack: list[Any] = [schema]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if isinstance(node, bool) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, dict) and "$ref" in node:
            target = _target(node, schema)
            if target is None:
                return None
            stack.append(target)
            continue
        if not isinstance(node, dict) or any(k not in _PLAIN for k in node):
            return None
        if not isinstance(node.get("items", {}), dict) or not isinstance(
            node.get("additionalProperties", {}), (dict, bool)
        ):
            return None
        for key in ("properties", "$defs", "definitions"):
            stack.extend(node.get(key, {}).values() if isinstance(node.get(key, {}), dict) else [None])
        for key in ("prefixItems", "anyOf"):
            stack.extend(node.get(key, []) if isinstance(node.get(key, []), list) else [None])
        stack.extend(node[k] for k in ("items", "additionalProperties") if k in node)
    return view_of(schema_json), bounds


def _target(node: dict[str, Any], schema: Any) -> Any:
    """What a plain reference names, an object without a reference of its own; None for every other reference."""
    beside = [k for k in node if k != "$ref" and k not in _ANNOTATIONS]
    # Definitions may stand beside the reference of the whole schema, and are plain if what is referred to is.
    if beside and not (node is schema and set(beside) <= {"$defs", "definitions"}):
        return None
    found = node_at(schema, node["$ref"]) if isinstance(node["$ref"], str) else None
    return found if isinstance(found, dict) and found and "$ref" not in found else None
