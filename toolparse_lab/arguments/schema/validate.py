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
from ...core.values import BigNum, Num, Value, escape_token, read_plain, write_canonical
from ...core.values.numbers import exact
from ..rjson.strict import depth
from .conforms import Budget, OverBudget
from .kinds import foreign_type_names, is_type, with_own_type_names
from .plain import fits as fits
from .plain import plain_members
from .view import unwrap_json_schema

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
    type(None): "null", bool: "boolean", str: "string", int: "integer", dict: "object",
    list: "array",
}  # fmt: skip


def validate(value: Value, schema_json: str) -> tuple[Problem, ...]:
    """Return the problems of `value` under a schema, in document order.

    Spans are added by who knows the raw text.

    A value that plainly conforms to a plain schema never reaches the validator library. A schema
    that is itself broken gives one problem of severity warning.
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
    except Exception as error:  # none of the many ways in which it fails may break a parse
        return (*noted, _failure(error, value))

    # The library complains once a missing member; one complaint an object names them all.
    problems = sorted(dict.fromkeys(map(_problem, errors)), key=lambda problem: problem.path)
    return (*noted, *problems)


def _failure(error: Exception, value: Value) -> Problem:
    # An error where the value is at fault, a warning where the schema is: nothing is known of the
    # value then, and it may well be right.
    if isinstance(error, RecursionError):
        # A shallow value cannot be the reason, so it is the schema's circle then.
        if depth([value]) < _DEEP:
            message = "the tool's schema refers to itself in a circle"
            return _note("validate.schema", "warning", message)
        return _note("validate.too-deep", "error", "not validated: the value nests too deep")
    if isinstance(error, ArithmeticError):  # a number so large that the library cannot compute it
        message = f"a number is out of range: {brief(str(error))}"
        return _note("validate.constraint", "error", message)
    if isinstance(error, OverBudget):
        return _note("validate.budget", "error", f"not validated: {error}")
    if isinstance(error, TooSlow):
        return _note("validate.slow-pattern", "error", f"not validated: {error}")

    return _note("validate.schema", "warning", f"the tool's schema is broken: {brief(str(error))}")


def _note(code: str, severity: Severity, message: str) -> Problem:
    return Problem("validate", code, severity, message)


def _problem(error: Any) -> Problem:
    path = "".join("/" + escape_token(token) for token in error.absolute_path)
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
    else:
        message = f"{keyword}: {brief(str(error.message), 160)}"
    return Problem("validate", _CODES.get(keyword, "validate.constraint"), "error", message, path)


@lru_cache(maxsize=512)
def _judgement(schema_json: str) -> tuple[Any, tuple[Problem, ...]]:
    # The validator of a schema, None for a broken one, and what is wrong with the schema.
    try:
        schema = unwrap_json_schema(read_plain(schema_json))
        names = foreign_type_names(schema)
        with_own_type_names(schema)
        validator = _new_validator(schema)
    except Exception as error:  # a schema can be broken in as many ways as the library can raise
        return None, (_failure(error, None),)

    if not names:
        return validator, ()
    readings = ", ".join(f"{name!r} as {meaning!r}" for name, meaning in sorted(names.items()))
    message = f"the tool's schema names types that JSON Schema does not have; read {readings}"
    note = _note("validate.type-name", "warning", brief(message, 300))
    return validator, (note,)


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
    whole, _ = _judgement(schema_json)
    properties = whole.schema.get("properties")
    if not isinstance(properties, dict):
        return whole

    loosened = {name: True if name in names else node for name, node in properties.items()}
    return whole.evolve(schema={**whole.schema, "properties": loosened})


# keywords of our own

# How it works. The library lets a keyword be replaced by a generator of errors. Three of its own
# can be made slow or wrong by the values we see: patterns run without a limit, and multiples are
# taken of floats, where 0.3 is no multiple of 0.1. These are ours; all others stay the library's.

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


KEYWORDS: dict[str, Callable[..., Iterator[Any]]] = {
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


# patterns

LIMIT = 0.2  # seconds for one search


class TooSlow(Exception):
    """A pattern took longer than `LIMIT` on a text."""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    # Late: few schemas have patterns, and the package is slow to load.
    import regex

    return regex.compile(pattern)


def matches(pattern: str, text: str) -> bool:
    """Return True if the pattern matches somewhere in the text."""
    # Raises TooSlow, and regex.error for a broken pattern.
    try:
        return _compiled(pattern).search(text, timeout=LIMIT) is not None
    except TimeoutError:
        raise TooSlow(f"the pattern {pattern[:60]!r} takes too long on this text") from None


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
