"""Validation of arguments against a tool's schema, as problems with path and keyword. Nothing is
ever fetched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
from types import ModuleType
from typing import Any

from ...core.types import Problem
from ...core.types.spans import Severity
from ...core.values import BigNum, Num, Value, escape_token, write_canonical
from ...core.values.numbers import exact
from ..rjson.strict import depth
from .conforms import Budget, OverBudget
from .kinds import is_type
from .patterns import TooSlow, matches
from .plain import fits as fits
from .plain import plain_members
from .sound import UNUSABLE, sound_schema, specifications

# How it works. A value first goes the short way (`plain`), which can only say that it is right. The
# rest is the library's: a validator is built once a schema, and asked for at most fifty errors,
# each of which becomes a problem with a code, a path and a sentence. It gets the usable form of the
# schema, and each place that cannot be used is named in a warning. Whatever still goes wrong inside
# becomes a problem as well: validation never breaks a parse. Each keyword that the library looks at
# is a step of a budget, since branches may double at every level.

_CODES = {
    "type": "validate.type",
    "required": "validate.required",
    "enum": "validate.enum",
    "const": "validate.enum",
    "additionalProperties": "validate.additional",
    "unevaluatedProperties": "validate.additional",
}
_MAX_PROBLEMS = 50
_MAX_NOTES = 20
UNCHECKED = "validate.unchecked"
_DEEP = 30  # levels from which it is the value, and not the schema, that goes too deep
_TYPE_NAMES = {
    type(None): "null", bool: "boolean", str: "string", int: "integer", dict: "object",
    list: "array",
}  # fmt: skip


def validate(value: Value, schema_json: str) -> tuple[Problem, ...]:
    """Return the problems of `value` under a schema, in document order.

    Spans are added by who knows the raw text.

    A value that plainly conforms to a plain schema never reaches the validator library. Each place
    of the schema that cannot be used gives a warning, and each value that is not checked for it
    another. Under a schema that cannot be used at all nothing is valid.
    """
    return () if fits(value, schema_json) else find_problems(value, schema_json)


def find_problems(value: Value, schema_json: str) -> tuple[Problem, ...]:
    """`validate` for a value of which `fits` has said that it does not plainly conform."""
    validator, noted = _judgement(schema_json)
    if validator is None:
        return noted
    try:
        if plain_names := plain_members(value, schema_json):
            validator = _validator_but(schema_json, plain_names)
        # A wrong list of a thousand items would have a thousand problems, all alike.
        with spending(Budget(value)):
            errors = list(islice(validator.iter_errors(value), _MAX_PROBLEMS))
        unchecked = _unchecked(validator, value) if _has_unusable(schema_json) else ()
    except Exception as error:  # none of the many ways in which it fails may break a parse
        return (*noted, _failure(error, value))

    # The library complains once a missing member; one complaint an object names them all.
    problems = sorted(dict.fromkeys(map(_problem, errors)), key=lambda problem: problem.path)
    return (*noted, *problems, *unchecked)


def _unchecked(validator: Any, value: Value) -> tuple[Problem, ...]:
    # The values under what cannot be used: those that are wrong if all of that refuses.
    paths: dict[str, None] = {}
    token = _REFUSES_UNUSABLE.set(True)
    try:
        with spending(Budget(value)):
            todo = list(islice(validator.iter_errors(value), _MAX_PROBLEMS))
    finally:
        _REFUSES_UNUSABLE.reset(token)
    while todo:
        error = todo.pop(0)
        if error.validator == UNUSABLE:
            paths.setdefault(_path(error))
        todo += error.context
    message = "not checked: the part of the tool's schema for this value cannot be used"
    return tuple(Problem("validate", UNCHECKED, "warning", message, path) for path in sorted(paths))


def _path(error: Any) -> str:
    return "".join("/" + escape_token(token) for token in error.absolute_path)


def _has_unusable(schema_json: str) -> bool:
    return sound_schema(schema_json).has_unusable


def _unusable(why: str) -> Problem:
    message = f"not validated, since the tool's schema is broken: {why}"
    return _note("validate.no-schema", "error", message)


def _failure(error: Exception, value: Value) -> Problem:
    # Nothing is known of the value then, so it is not valid.
    if isinstance(error, RecursionError):
        # A shallow value cannot be the reason, so it is the schema's circle then.
        if depth([value]) < _DEEP:
            return _unusable("it refers to itself in a circle")
        return _note("validate.too-deep", "error", "not validated: the value nests too deep")
    if isinstance(error, ArithmeticError):  # a number so large that the library cannot compute it
        message = f"a number is out of range: {brief(str(error))}"
        return _note("validate.constraint", "error", message)
    if isinstance(error, OverBudget):
        return _note("validate.budget", "error", f"not validated: {error}")
    if isinstance(error, TooSlow):
        return _note("validate.slow-pattern", "error", f"not validated: {error}")

    return _unusable(brief(str(error)))


def _note(code: str, severity: Severity, message: str) -> Problem:
    return Problem("validate", code, severity, message)


def _problem(error: Any) -> Problem:
    path = _path(error)
    keyword, wanted, got = str(error.validator), error.validator_value, error.instance
    # What was expected, and got.
    if keyword == "type":
        expected = " or ".join(wanted) if isinstance(wanted, list) else str(wanted)
        # What has no entry of its own is a float or a decimal.
        type_name = _TYPE_NAMES.get(type(got), "number")
        message = f"expected {expected}, got {type_name} {brief_value(got)}"
    elif keyword == "required":
        missing = [name for name in wanted if name not in got]
        message = f"missing: {', '.join(map(str, missing))}"
    elif keyword == "enum":
        message = f"expected one of {brief(repr(wanted), 120)}, got {brief_value(got)}"
    elif keyword == "const":
        message = f"expected {brief(repr(wanted))}, got {brief_value(got)}"
    elif error.validator is None:  # the schema is false
        message = f"the schema allows no value here, got {brief_value(got)}"
    else:
        message = f"{keyword}: {brief(str(error.message), 160)}"
    return Problem("validate", _CODES.get(keyword, "validate.constraint"), "error", message, path)


@lru_cache(maxsize=512)
def _judgement(schema_json: str) -> tuple[Any, tuple[Problem, ...]]:
    # The validator of a schema, None where it cannot be used as a whole, and what is said of it.
    try:
        sound = sound_schema(schema_json)
        notes = [_note("validate.schema", "warning", brief(n, 300)) for n in sound.notes]
        if len(notes) > _MAX_NOTES:
            more = f"{len(notes) - _MAX_NOTES} more places of the tool's schema are like that"
            notes[_MAX_NOTES:] = [_note("validate.schema", "warning", more)]
        if sound.is_unusable:
            return None, (_unusable("nothing of it can be used"), *notes)
        validator = _dialect()(sound.schema, registry=specifications())
    except Exception as error:  # a schema can be broken in as many ways as the library can raise
        return None, (_failure(error, None),)

    if names := sound.type_names:
        readings = ", ".join(f"{name!r} as {meaning!r}" for name, meaning in sorted(names.items()))
        message = f"the tool's schema names types that JSON Schema does not have; read {readings}"
        notes.append(_note("validate.type-name", "warning", brief(message, 300)))
    return validator, tuple(notes)


@lru_cache(maxsize=1)
def _dialect() -> Any:
    dialect = load_jsonschema().Draft202012Validator
    # Our numbers keep their lexemes, so the library is told which of them are integers.
    types = dialect.TYPE_CHECKER.redefine("integer", lambda _, value: is_type(value, "integer"))
    keywords = {name: counted(check) for name, check in {**dialect.VALIDATORS, **KEYWORDS}.items()}
    from jsonschema.validators import extend

    return extend(dialect, keywords, type_checker=types)


def is_valid(value: Value, node: Any, root: Any) -> bool:
    """Return True if a node of a usable schema accepts a value. False where it cannot be told."""
    try:
        with spending(Budget(value)):
            return bool(
                _dialect()(root, registry=specifications()).evolve(schema=node).is_valid(value)
            )
    except Exception:  # as in `find_problems`
        return False


@lru_cache(maxsize=2048)
def _validator_but(schema_json: str, names: frozenset[str]) -> Any:
    # The library is told that anything goes where our own view has said yes.
    whole, _ = _judgement(schema_json)
    properties = whole.schema.get("properties")
    if not isinstance(properties, dict):
        return whole

    loosened = {name: True if name in names else node for name, node in properties.items()}
    return whole.evolve(schema={**whole.schema, "properties": loosened})


# keywords of our own

# How it works. The library lets a keyword be replaced by a generator of errors. Four of its own
# can be made slow or wrong by the values we see: patterns run without a limit and as Python's, and
# multiples are taken of floats, where 0.3 is no multiple of 0.1. These are ours; all others stay
# the library's.

_MOST_DIGITS = 10_000  # of a number that is divided: the cost grows with their square


def brief(text: str, limit: int = 60) -> str:
    """Return a text cut to a message's length."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def brief_value(value: Value) -> str:
    """Return a value for a message: a number as it was written. Never raises."""
    if isinstance(value, (Num, BigNum)):
        return brief(value.text)
    try:
        return brief(repr(value))
    except (RecursionError, ValueError):  # too deep, or an int too long, for Python to print
        return brief(write_canonical(value))


# The library calls these with (validator, keyword's value, instance, schema), and takes errors.


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    # The pattern may match anywhere in the text.
    # Late, as everywhere here: the library takes longer to load than most parses.
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"{brief(instance)!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, schema: Any
) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for key, member in instance.items():
            if matches(pattern, key):
                yield from validator.descend(member, subschema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, node: Any, instance: Any, schema: Any) -> Iterator[Any]:
    # The library searches for undeclared members with Python's own `re`.
    from jsonschema import Draft202012Validator

    patterns = schema.get("patternProperties", ())
    if patterns and isinstance(instance, dict):
        instance = {
            key: member for key, member in instance.items()
            if not any(matches(pattern, key) for pattern in patterns)
        }  # fmt: skip
        schema = {"properties": schema.get("properties", {})}
    yield from (
        Draft202012Validator.VALIDATORS["additionalProperties"](validator, node, instance, schema)
        or ()
    )


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if is_type(instance, "number") and not is_multiple(instance, factor):
        yield ValidationError(f"{brief_value(instance)} is not a multiple of {brief_value(factor)}")


def is_multiple(number: Value, factor: Value) -> bool:
    """Return True if a number is a multiple of another, by their decimal digits."""
    # Raises ArithmeticError for a number of too many digits, ZeroDivisionError for a factor of 0.
    whole, power = _scaled(number)
    part, part_power = _scaled(factor)
    # Remainders by 0 have no answer, and a schema that asks for one is broken.
    if part == 0:
        raise ZeroDivisionError("nothing is a multiple of 0")

    # whole × 10^power over part × 10^part_power; the division stays among integers, for a float
    # would answer that 0.3 is no multiple of 0.1.
    shift = power - part_power
    if shift >= 0:
        return whole * pow(10, shift, part) % part == 0
    if whole == 0:
        return True

    return -shift <= _MOST_DIGITS and whole % (part * 10**-shift) == 0


def _scaled(number: Value) -> tuple[int, int]:
    _, digits, power = Decimal(exact(number)).as_tuple()
    if not isinstance(power, int) or len(digits) > _MOST_DIGITS:
        raise ArithmeticError("a number of too many digits")

    return int(Decimal((0, digits, 0))), power


def _unusable_node(validator: Any, _: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if _REFUSES_UNUSABLE.get():
        yield ValidationError("cannot be checked")


_REFUSES_UNUSABLE: ContextVar[bool] = ContextVar("_REFUSES_UNUSABLE", default=False)

KEYWORDS: dict[str, Callable[..., Iterator[Any]]] = {
    UNUSABLE: _unusable_node,
    "additionalProperties": _additional_properties,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
}

# A validator is kept for many values and threads; the budget is that of the value under way.
_BUDGET: ContextVar[Budget | None] = ContextVar("_BUDGET", default=None)


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Count every keyword looked at inside this block as a step of a budget."""
    token = _BUDGET.set(budget)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def counted(check: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterable[Any] | None]:
    """Return a keyword's function that first takes a step of the budget. Raises OverBudget."""

    def check_with_budget(validator: Any, keyword: Any, instance: Any, schema: Any) -> Any:
        budget = _BUDGET.get()
        if budget is not None:
            budget.spend()
        return check(validator, keyword, instance, schema)

    return check_with_budget


# the library

_GRAMMARS = "rfc3987_syntax"
_HEAVY = frozenset(("jsonschema", _GRAMMARS))


def load_jsonschema() -> Any:
    """Return the module `jsonschema`, whole."""
    # Where `rfc3987_syntax` is installed (Jupyter brings it), the library imports it for the format
    # "iri", and that builds grammars at import, for a second. A stand-in is there during the import
    # and loads the real one when such a format is first checked, by whomever. The library would
    # take `rfc3987` in its place.
    stand_in: Any = None
    if _HEAVY.isdisjoint(sys.modules) and not find_spec("rfc3987") and find_spec(_GRAMMARS):
        stand_in = ModuleType(_GRAMMARS)
        stand_in.is_valid_syntax = _is_valid_syntax
        sys.modules[_GRAMMARS] = stand_in

    try:
        import jsonschema
    finally:
        # Whoever imports it from now on gets the real one, even where the import fails.
        if stand_in is not None and sys.modules.get(_GRAMMARS) is stand_in:
            del sys.modules[_GRAMMARS]

    return jsonschema


def _is_valid_syntax(term: str, value: str) -> bool:
    # The heavy module's function. term: the grammar's rule, such as "iri".
    from rfc3987_syntax import is_valid_syntax

    return bool(is_valid_syntax(term, value))
