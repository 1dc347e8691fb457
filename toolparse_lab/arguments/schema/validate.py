"""Validation of arguments against a tool's schema, as problems with path and keyword. Nothing is
ever fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from ...core.types import Problem
from ...core.types.spans import Severity
from ...core.values import Value, escape_token, read_plain
from ..rjson.strict import depth
from .budget import Budget, OverBudget
from .keywords import KEYWORDS, brief, brief_value, counted, spending
from .kinds import is_type
from .library import load_jsonschema
from .patterns import TooSlow
from .plain import fits as fits
from .plain import plain_members
from .references import unwrap_json_schema
from .type_names import foreign_type_names, with_own_type_names

# How it works. A value first goes the short way (`plain`), which can only say that it is right. The
# rest is the library's: a validator is built once a schema, and asked for at most fifty errors,
# each of which becomes a problem with a code, a path and a sentence. Whatever goes wrong inside, in
# a schema that somebody wrote by hand, becomes a problem as well: validation never breaks a parse.
# A schema is judged once: what is wrong with it is kept in its validator's place. Each keyword that
# the library looks at is a step of a budget, since branches may double at every level.

_CODES = {
    "type": "validate.type",
    "required": "validate.required",
    "enum": "validate.enum",
    "const": "validate.enum",
    "additionalProperties": "validate.additional",
    "unevaluatedProperties": "validate.additional",
}
_MAX_PROBLEMS = 50
_DEEP = 30  # levels from which it is the value, and not the schema, that goes too deep
_TYPE_NAMES = {
    type(None): "null",
    bool: "boolean",
    str: "string",
    int: "integer",
    dict: "object",
    list: "array",
}


def validate(value: Value, schema_json: str) -> tuple[Problem, ...]:
    """Return the problems of `value` under a schema, in document order.

    Spans are added by who knows the raw text.

    A value that plainly conforms to a plain schema never reaches the validator library. A schema
    that is itself broken gives one problem of severity warning.
    """
    return () if fits(value, schema_json) else find_problems(value, schema_json)


def find_problems(value: Value, schema_json: str) -> tuple[Problem, ...]:
    """`validate` for a value of which `fits` has said that it does not plainly conform."""
    judgement = _judgement(schema_json)
    if judgement.validator is None:
        return judgement.problems
    try:
        validator = judgement.validator
        if plain_names := plain_members(value, schema_json):
            validator = _validator_but(schema_json, plain_names)
        # A wrong list of a thousand items would have a thousand problems, all alike.
        with spending(Budget(value)):
            errors = list(islice(validator.iter_errors(value), _MAX_PROBLEMS))
    except Exception as error:  # none of the many ways in which it fails may break a parse
        return (*judgement.problems, _failure(error, value))

    # The library complains once a missing member; one complaint an object names them all.
    problems = sorted(dict.fromkeys(map(_problem, errors)), key=lambda problem: problem.path)
    return (*judgement.problems, *problems)


def _failure(error: Exception, value: Value) -> Problem:
    # An error where the value is at fault, a warning where the schema is: nothing is known of the
    # value then, and it may well be right.
    if isinstance(error, RecursionError):
        return _recursion_failure(value)
    if isinstance(error, ArithmeticError):  # a number so large that the library cannot compute it
        return _note(
            "validate.constraint", "error", f"a number is out of range: {brief(str(error))}"
        )
    if isinstance(error, OverBudget):
        return _note("validate.budget", "error", f"not validated: {error}")
    if isinstance(error, TooSlow):
        return _note("validate.slow-pattern", "error", f"not validated: {error}")

    return _note("validate.schema", "warning", f"the tool's schema is broken: {brief(str(error))}")


def _recursion_failure(value: Value) -> Problem:
    # A shallow value cannot be the reason, so it is the schema's circle then.
    if depth([value]) < _DEEP:
        message = "the tool's schema refers to itself in a circle"
        return _note("validate.schema", "warning", message)
    return _note("validate.too-deep", "error", "not validated: the value nests too deep")


def _note(code: str, severity: Severity, message: str) -> Problem:
    return Problem("validate", code, severity, message)


def _problem(error: Any) -> Problem:
    path = "".join("/" + escape_token(token) for token in error.absolute_path)
    keyword = str(error.validator)
    code = _CODES.get(keyword, "validate.constraint")
    write = _MESSAGES.get(keyword)
    message = write(error) if write else f"{keyword}: {brief(str(error.message), 160)}"
    return Problem("validate", code, "error", message, path)


def _type_message(error: Any) -> str:
    types = error.validator_value
    expected = " or ".join(types) if isinstance(types, list) else str(types)
    value = error.instance
    # What has no entry of its own is a float or a decimal.
    type_name = _TYPE_NAMES.get(type(value), "number")
    return f"expected {expected}, got {type_name} {brief_value(value)}"


def _required_message(error: Any) -> str:
    missing = [name for name in error.validator_value if name not in error.instance]
    return f"missing: {', '.join(map(str, missing))}"


def _enum_message(error: Any) -> str:
    members = brief(repr(error.validator_value), 120)
    return f"expected one of {members}, got {brief_value(error.instance)}"


def _const_message(error: Any) -> str:
    return f"expected {brief(repr(error.validator_value))}, got {brief_value(error.instance)}"


_MESSAGES: dict[str, Callable[[Any], str]] = {
    "type": _type_message,
    "required": _required_message,
    "enum": _enum_message,
    "const": _const_message,
}
"""Keyword -> what words its errors: got, and what was expected."""


@dataclass(frozen=True, slots=True)
class _Judgement:
    validator: Any
    problems: tuple[Problem, ...]


@lru_cache(maxsize=512)
def _judgement(schema_json: str) -> _Judgement:
    try:
        schema = unwrap_json_schema(read_plain(schema_json))
        names = foreign_type_names(schema)
        with_own_type_names(schema)
        validator = _new_validator(schema)
    except Exception as error:  # a schema can be broken in as many ways as the library can raise
        return _Judgement(None, (_failure(error, None),))

    return _Judgement(validator, (_type_name_note(names),) if names else ())


def _type_name_note(names: dict[str, str]) -> Problem:
    readings = ", ".join(f"{name!r} as {meaning!r}" for name, meaning in sorted(names.items()))
    message = f"the tool's schema names types that JSON Schema does not have; read {readings}"
    return _note("validate.type-name", "warning", brief(message, 300))


def _new_validator(schema: Any) -> Any:
    from referencing import Registry

    jsonschema = load_jsonschema()
    dialect = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    dialect.check_schema(schema)

    # Our numbers keep their lexemes, so the library is told which of them are integers.
    types = dialect.TYPE_CHECKER.redefine("integer", lambda _, value: is_type(value, "integer"))
    keywords = {name: counted(check) for name, check in {**dialect.VALIDATORS, **KEYWORDS}.items()}
    dialect = jsonschema.validators.extend(dialect, keywords, type_checker=types)
    # A registry of its own keeps the library from ever looking a reference up on the network.
    return dialect(schema, registry=Registry())


@lru_cache(maxsize=2048)
def _validator_but(schema_json: str, names: frozenset[str]) -> Any:
    # The library is told that anything goes where our own view has said yes.
    whole = _judgement(schema_json).validator
    properties = whole.schema.get("properties")
    if not isinstance(properties, dict):
        return whole

    loosened = {name: True if name in names else node for name, node in properties.items()}
    return whole.evolve(schema={**whole.schema, "properties": loosened})
