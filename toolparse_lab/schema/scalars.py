"""The rules that read one value as another: text as numbers, words, JSON, enum members; numbers as text."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from ..numerals import Number
from ..rjson.repair import repair
from ..rjson.strict import read_if_strict
from ..values import Value, number, same, write_canonical
from .conforms import is_type
from .view import View

if TYPE_CHECKING:
    from .walk import Walk

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
# What JavaScript calls white space, which is what the models' training text calls white space.
SPACE = (
    " \t\n\r\x0b\x0c\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f"
    "\u205f\u3000\ufeff"
)
_WORDS = {"true": True, "false": False}
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("`", "`"))


def from_text(walk: Walk, value: str, wanted: str, path: str) -> Value:
    """`value` as a number, integer, boolean or null; itself where it is none."""
    text = value.strip(SPACE)
    if wanted in ("number", "integer"):
        n = number_of(text)
        if n is None:
            return value
        if wanted == "integer" and not isinstance(n, int):
            whole = _WHOLE.fullmatch(text)
            if whole:
                n = number(whole[1])
            elif walk.safe:
                return value
        rule = "coerce.integer-from-string" if isinstance(n, int) else "coerce.number-from-string"
        return walk.note(rule, path, value, n)
    if wanted == "boolean":
        word = _WORDS.get(text.lower())
        return value if word is None else walk.note("coerce.boolean-from-string", path, value, word)
    if wanted == "null" and text == "null":
        return walk.note("coerce.null-from-string", path, value, None)
    return value


def number_of(text: str) -> Number | None:
    """The number a text is, exactly and finitely, or None."""
    if not _NUMBER.fullmatch(text):
        return None
    try:
        n = number(text)
    except ValueError:  # an exponent beyond every number
        return None
    return n if isinstance(n, int) or math.isfinite(n) or _INTEGER.fullmatch(text) else None


def from_untyped_text(walk: Walk, value: str, path: str) -> Value:
    """Text the schema says nothing of: a word, a number or JSON in brackets becomes what it says."""
    for wanted in ("boolean", "number"):
        new = from_text(walk, value, wanted, path)
        if new is not value:
            return new
    text = value.strip(SPACE)
    if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
        found = json_of(text)
        if isinstance(found, (dict, list)):
            return walk.note("coerce.json-from-string", path, value, found)
    return value


def object_from_text(walk: Walk, value: str, path: str) -> Value:
    text = value.strip(SPACE)
    if text[:1] != "{":
        return value
    found = json_of(text)
    if not isinstance(found, dict):
        return value
    return walk.note("coerce.json-from-string", path, value, found)


def json_of(text: str) -> Value:
    """The one JSON value a text is, strictly or after repair; None where it is none."""
    strict = read_if_strict(text, 1000)
    if strict is not None:
        return strict[0] if len(strict) == 1 else None
    return repair(text).value


def to_text(walk: Walk, value: Value, path: str) -> Value:
    """A number or boolean as text, with the characters it was written with."""
    if isinstance(value, bool):
        return walk.note("coerce.string-from-boolean", path, value, "true" if value else "false")
    if isinstance(value, (int, float, Decimal)):
        return walk.note("coerce.string-from-number", path, value, write_canonical(value))
    return value


def to_enum(walk: Walk, value: Value, view: View, path: str) -> Value:
    """The only member of an enum that a value can mean."""
    members = view.enum or ()
    if any(same(value, m) for m in members):
        return value
    if isinstance(value, dict) and len(value) == 1 and not walk.safe:
        inner = next(iter(value.values()))
        if any(same(inner, m) for m in members):
            return walk.note("coerce.unwrap-single", path, value, inner)
    if isinstance(value, str):
        text = value.strip(SPACE)
        for rule, candidate in (("coerce.trim", text), ("coerce.unquote", _unquoted(text))):
            if candidate != value and any(same(candidate, m) for m in members):
                return walk.note(rule, path, value, candidate)
        means = [m for m in members if not isinstance(m, str) and _says(text, m)]
        if len(means) == 1:
            return walk.note("coerce.enum-from-string", path, value, means[0])
    elif is_type(value, "number") or isinstance(value, bool):
        text = write_canonical(value)
        if any(m == text for m in members if isinstance(m, str)):
            return to_text(walk, value, path)
    return value


def _says(text: str, member: Value) -> bool:
    if isinstance(member, bool):
        return _WORDS.get(text.lower()) is member
    if member is None:
        return text == "null"
    n = number_of(text)
    return n is not None and same(n, member)


def _unquoted(text: str) -> str:
    for left, right in _QUOTES:
        if len(text) > 1 and text[0] == left and text[-1] == right:
            return text[1:-1].strip(SPACE)
    return text
