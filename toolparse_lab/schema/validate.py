"""Validation of arguments against a tool's schema, as problems with path and keyword. Nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ..types import Problem
from ..values import Value, escape_token
from .patterns import TooSlow, found
from .view import unwrap_json_schema, view_of

_CODES = {
    "type": "validate.type",
    "required": "validate.required",
    "enum": "validate.enum",
    "const": "validate.enum",
    "additionalProperties": "validate.additional",
    "unevaluatedProperties": "validate.additional",
}
_MAX_PROBLEMS = 50


def validate(value: Value, schema_json: str) -> tuple[Problem, ...]:
    """The problems of `value` under a schema, in document order; spans are added by who knows the raw text.

    A value that plainly conforms to a plain schema never reaches the validator library. A schema that is itself
    broken gives one problem of severity warning.
    """
    plain = _is_plain(schema_json)
    if plain and view_of(schema_json).conforms(value):
        return ()
    try:
        validator = _validator(schema_json)
        errors = []
        for error in validator.iter_errors(value):
            errors.append(error)
            if len(errors) == _MAX_PROBLEMS:
                break
    except ArithmeticError as e:  # a number so large that the library cannot reckon with it
        return (Problem("validate", "validate.constraint", "error", f"a number is out of range: {_brief(str(e))}"),)
    except TooSlow as e:
        return (Problem("validate", "validate.slow-pattern", "error", f"not validated: {e}"),)
    except Exception as e:  # a broken schema breaks the library in many ways; none may break a parse
        return (Problem("validate", "validate.schema", "warning", f"the tool's schema is broken: {_brief(str(e))}"),)
    # The library complains once a missing member; one complaint an object names them all.
    return tuple(sorted(dict.fromkeys(_problem(e) for e in errors), key=lambda p: p.path))


def _problem(error: Any) -> Problem:
    path = "".join("/" + escape_token(t) for t in error.absolute_path)
    keyword = str(error.validator)
    code = _CODES.get(keyword, "validate.constraint")
    return Problem("validate", code, "error", _message(error, keyword), path)


def _message(error: Any, keyword: str) -> str:
    if keyword == "type":
        want = error.validator_value
        want = " or ".join(want) if isinstance(want, list) else str(want)
        return f"expected {want}, got {_type_name(error.instance)} {_brief(repr(error.instance))}"
    if keyword == "required":
        missing = [k for k in error.validator_value if k not in error.instance]
        return f"missing: {', '.join(map(str, missing))}"
    if keyword == "enum":
        return f"expected one of {_brief(repr(error.validator_value), 120)}, got {_brief(repr(error.instance))}"
    if keyword == "const":
        return f"expected {_brief(repr(error.validator_value))}, got {_brief(repr(error.instance))}"
    return f"{keyword}: {_brief(str(error.message), 160)}"


def _type_name(value: Value) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {str: "string", int: "integer", dict: "object", list: "array"}.get(type(value), "number")


def _brief(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


@lru_cache(maxsize=512)
def _validator(schema_json: str) -> Any:
    import jsonschema
    from referencing import Registry

    from ..values import read_plain

    schema = unwrap_json_schema(read_plain(schema_json))
    cls = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    cls.check_schema(schema)
    cls = jsonschema.validators.extend(cls, {"pattern": _pattern, "patternProperties": _pattern_properties})
    # A registry of its own keeps the library from ever looking a reference up on the network.
    return cls(schema, registry=Registry())


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    """The keyword `pattern`, with a limit on its time."""
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not found(pattern, instance):
        yield ValidationError(f"{_brief(instance)!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: dict[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    """The keyword `patternProperties`, with a limit on its time."""
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for key, member in instance.items():
            if found(pattern, key):
                yield from validator.descend(member, subschema, path=key, schema_path=pattern)


# The keywords `View.conforms` looks at, or that never make a value wrong.
_PLAIN = frozenset(
    [
        "type",
        "properties",
        "required",
        "enum",
        "const",
        "items",
        "prefixItems",
        "anyOf",
        "additionalProperties",
        "title",
        "description",
        "default",
        "examples",
        "$schema",
        "$defs",
        "definitions",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
    ]
)


@lru_cache(maxsize=2048)
def _is_plain(schema_json: str) -> bool:
    from ..values import read_plain

    stack: list[Any] = [unwrap_json_schema(read_plain(schema_json))]
    while stack:
        node = stack.pop()
        if isinstance(node, bool):
            continue
        if not isinstance(node, dict) or any(k not in _PLAIN for k in node):
            return False
        if not isinstance(node.get("items", {}), dict) or not isinstance(
            node.get("additionalProperties", {}), (dict, bool)
        ):
            return False
        for key in ("properties", "$defs", "definitions"):
            stack.extend(node.get(key, {}).values() if isinstance(node.get(key, {}), dict) else [None])
        for key in ("prefixItems", "anyOf"):
            stack.extend(node.get(key, []) if isinstance(node.get(key, []), list) else [None])
        stack.extend(node[k] for k in ("items", "additionalProperties") if k in node)
    return True
