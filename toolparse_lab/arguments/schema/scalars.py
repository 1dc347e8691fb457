"""The rules that read one value as another: text as numbers, words, JSON, enum members. Numbers as
text. And the record of their changes.

Each rule takes the record of the coercion, the value and its path, and returns the new value, or
the value itself if the rule does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from functools import lru_cache, partial

from ...core.rules import RULES
from ...core.types import Edit, Step
from ...core.types.spans import make_step
from ...core.values import BigNum, Value, number, same, write_canonical
from ...core.values.numbers import Number, exact, is_whole, real
from ..rjson.repair import repair
from ..rjson.strict import read_if_strict
from .conforms import Budget, conforms, is_member
from .kinds import is_type
from .view import View

# How it works. A rule applies only where nothing is lost on the way: text is a number if all of it
# is one, an integer if it is written as one, and null if it says null. What is left over (a unit, a
# second word, a thousands separator) leaves the text as it is, for a validation problem is better
# than a wrong value. Numbers keep the lexeme they were written with, so 2.50 stays 2.50.

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
# A number as people write it: a plus sign, zeros in front, nothing on one side of the point.
_LOOSE_NUMBER = re.compile(
    r"(?P<sign>[+-]?)0*+(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?(?P<power>[eE][+-]?[0-9]+)?"
)
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}+(?:_[0-9]{3})++(?:\.[0-9]*+)?")
_MOST_DIGITS = 400  # of an integer that was written with an exponent; a float holds no more
# What JavaScript calls white space, which is what the models' training text calls white space.
SPACE = (
    " \t\n\r\x0b\x0c\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_WORDS = {"true": True, "false": False}
# The other words for a boolean, each pair with a rule of its own.
_SWITCHES: Mapping[str, tuple[bool, str]] = {
    word: (position == 0, rule)
    for rule, pair in (
        ("coerce.boolean-from-yes-no", ("yes", "no")),
        ("coerce.boolean-from-on-off", ("on", "off")),
        ("coerce.boolean-from-y-n", ("y", "n")),
        ("coerce.boolean-from-t-f", ("t", "f")),
        ("coerce.boolean-from-1-0", ("1", "0")),
    )
    for position, word in enumerate(pair)
}
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("`", "`"))
_MAX_DEPTH = 1000  # of JSON inside text
_SHORT = 32  # characters of a text whose number is kept
_LONGEST_NULL = 100  # characters, most of them white space
_WIDE = Context(prec=_MOST_DIGITS + 10)
# Edits that drop letters which are no part of any value.
_DROPS_NO_VALUE = frozenset(("rjson.equal-duplicate-key", "rjson.fence"))
# The rule is that of the number's own kind, whichever of the two was wanted.
_INTEGER_RULE = "coerce.integer-from-string"
_NUMBER_RULE = "coerce.number-from-string"


class Record:
    """The leave a coercion has, and the record of its changes."""

    __slots__ = ("one_item", "policy", "safe", "steps")

    def __init__(self, policy: str, one_item: bool = False) -> None:
        # The name goes with it, so that a trial can begin with the same one.
        self.policy = policy
        self.one_item = one_item
        self.safe = policy == "safe"
        self.steps: list[Step] = []

    def note(self, rule: str, path: str, before: Value, after: Value) -> Value:
        """Record one change under a rule id and return the new value."""
        self.steps.append(make_step("coerce", rule, path, None, before, after))
        return after


class _Unrecorded(Record):
    __slots__ = ()

    def note(self, rule: str, path: str, before: Value, after: Value) -> Value:
        return after


UNRECORDED = _Unrecorded("safe")


def _number_from_text(record: Record, value: str, path: str, *, whole: bool = False) -> Value:
    number_read = (_short_number if len(value) < _SHORT else _number_in)(value, record.safe)
    if number_read is None:
        return value
    if whole and not isinstance(number_read, int):
        # 3.0 is read again as 3, so that its lexeme has no point.
        integer = _whole(number_read)
        if integer is None and record.safe:
            return value
        number_read = number_read if integer is None else integer

    is_integer = isinstance(number_read, int) or (whole and number_read.text == "-0")
    return record.note(_INTEGER_RULE if is_integer else _NUMBER_RULE, path, value, number_read)


def _number_in(text: str, safe: bool) -> Number | None:
    # `safe` takes anybody's writing of a number; the other policies take digits after zeros, and
    # else a number as JSON has it.
    text = text.strip(SPACE)
    return loose_number_of(text) if safe or is_padded(text) else number_of(text)


def is_padded(text: str) -> bool:
    """Return True for digits after a zero, which may be an identifier where text is legal."""
    return _PADDED.fullmatch(text.strip(SPACE)) is not None


_PADDED = re.compile(r"-?0[0-9]{1,40}")

# The same few numbers come again and again, and numbers never change.
_short_number = lru_cache(maxsize=4096)(_number_in)


def _whole(number_read: Number) -> Number | None:
    # The sign of zero stays, which no int has.
    if isinstance(number_read, int):
        return number_read
    digits = exact(number_read)
    if not isinstance(digits, Decimal) or digits.adjusted() > _MOST_DIGITS or not is_whole(digits):
        # Without an exponent a text is as long as its number, and no exponent is worked out.
        return number_read if number_read.text.lstrip("-").isdigit() else None

    return number(format(digits.quantize(Decimal(1), context=_WIDE), "f"))


def boolean_from_switch(record: Record, value: Value, path: str) -> Value:
    """True or false out of yes and no, on and off, y and n, t and f, 1 and 0, in any case."""
    # Only for a schema that admits booleans alone, where such a word, and the numbers 1 and 0, can
    # mean nothing else. The rule of the step says which word it was.
    if isinstance(value, str):
        meaning = _SWITCHES.get(value.strip(SPACE).lower())
    elif type(value) is int and value in (0, 1):
        meaning = _SWITCHES[str(value)]
    else:
        meaning = None

    return value if meaning is None else record.note(meaning[1], path, value, meaning[0])


def _boolean_from_text(record: Record, value: str, path: str) -> Value:
    word = _WORDS.get(value.strip(SPACE).lower())
    return value if word is None else record.note("coerce.boolean-from-string", path, value, word)


def _null_from_text(record: Record, value: str, path: str) -> Value:
    if value.strip(SPACE) not in ("null", "None"):
        return value
    return record.note("coerce.null-from-string", path, value, None)


def is_bare_null(value: Value) -> bool:
    """Return True for a text that says null and nothing else."""
    if not isinstance(value, str) or len(value) >= _LONGEST_NULL or "null" not in value:
        return False
    return value.strip(SPACE) == "null"


def holds_bare_null(value: Value) -> bool:
    """Return True if a parameter is the text null, which may mean null in a format of raw text."""
    if not isinstance(value, dict):
        return False
    for member in value.values():
        # A call for each would take longer than this look.
        if type(member) is str and "null" in member[:_LONGEST_NULL] and is_bare_null(member):
            return True
    return False


TEXT_READERS: Mapping[str, Callable[[Record, str, str], Value]] = {
    "number": _number_from_text,
    "integer": partial(_number_from_text, whole=True),
    "boolean": _boolean_from_text,
    "null": _null_from_text,
}
"""The type of a scalar -> what reads text as one: (record, text, path) gives the new value."""


def number_of(text: str) -> Number | None:
    """The number a JSON lexeme is, or None."""
    # An integer has no limit, since it loses nothing. A number with a point or an exponent must be
    # one that a float can hold, neither infinite nor zero instead of something small.
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None

    try:
        n = real(text) if match.lastindex else number(text)
    except ValueError:  # an exponent beyond every number
        return None

    if not isinstance(n, BigNum):
        return n
    return n if text.lstrip("-").isdigit() else None


def loose_number_of(text: str) -> Number | None:
    """Return the number that a text is in anybody's writing, with a JSON lexeme."""
    # A plus sign and zeros in front say nothing, and neither does a zero that is left out next to
    # the point. Underscores between groups of three digits are no part of the number. Digits are
    # never dropped, and the sign of zero stays.
    number_read = number_of(text)
    if number_read is not None:
        return number_read
    if "_" in text and _GROUPED.fullmatch(text):
        text = text.replace("_", "")
    match = _LOOSE_NUMBER.fullmatch(text)
    if match is None or not any(char.isdigit() for char in text.lower().partition("e")[0]):
        return None

    sign, whole, part, power = match.group("sign", "whole", "part", "power")
    point = "" if part is None else "." + (part or "0")
    lexeme = f"{sign.lstrip('+')}{whole or '0'}{point}{power or ''}"
    return number_of(lexeme)


def from_untyped_text(record: Record, value: str, path: str) -> Value:
    """Text the schema says nothing of: a word, a number or JSON in brackets becomes its value."""
    # Nothing is repaired here, for no one said that it should be JSON.
    text = value.strip(SPACE)
    for reader in (_boolean_from_text, _number_from_text):
        # Without a schema, digits behind a zero are rather an identifier.
        new = value if is_padded(text) else reader(record, value, path)
        if new is not value:
            return new

    # Both brackets must be there: a text that only begins like JSON is text.
    if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
        values = read_if_strict(text, _MAX_DEPTH) or ()
        if len(values) == 1 and isinstance(values[0], (dict, list)):
            return record.note("coerce.json-from-string", path, value, values[0])

    return value


def container_from_text(record: Record, value: str, path: str, *, array: bool) -> Value:
    """Return an object out of JSON text that begins like one, strictly or after repair.

    array: or a list, of which an object becomes the only item.
    """
    text = value.strip(SPACE)
    if text[:1] != "{" and not (array and text[:1] == "["):
        return value

    parsed = json_of(text, record.safe)
    if not isinstance(parsed, (dict, list) if array else dict):
        return value
    record.note("coerce.json-from-string", path, value, parsed)
    is_item = array and isinstance(parsed, dict)
    return record.note("coerce.wrap-array", path, parsed, [parsed]) if is_item else parsed


def json_of(text: str, whole: bool) -> Value:
    """The one JSON value a text is, strictly or after repair, or None if it is none."""
    # The text `null` is None as well: callers ask for containers only. whole: a repair may not drop
    # any words or guess.
    # Strictly first: that is quick, and most JSON inside text is whole.
    values = read_if_strict(text, _MAX_DEPTH)
    if values is not None:
        return values[0] if len(values) == 1 else None

    repaired = repair(text)
    if whole and not all(_keeps_words(edit, text) for edit in repaired.edits):
        return None
    return repaired.value


def _keeps_words(edit: Edit, text: str) -> bool:
    if not RULES[edit.rule].lossless:
        return False
    if edit.text or edit.rule in _DROPS_NO_VALUE:
        return True

    return not any(char.isalnum() for char in edit.span.of(text))


def to_text(record: Record, value: Value, path: str) -> Value:
    """Return a number or boolean as text, with the characters it was written with."""
    if isinstance(value, bool):
        word = "true" if value else "false"
        return record.note("coerce.string-from-boolean", path, value, word)
    if isinstance(value, (int, float, Decimal)):
        return record.note("coerce.string-from-number", path, value, write_canonical(value))

    return value


def to_enum(record: Record, value: Value, view: View, path: str) -> Value:
    """Return the only member of an enum that a value can mean, or the value itself."""
    # A member of the same text wins over one that only looks alike, and two that could be meant are
    # no answer.
    members = view.enum or ()
    if is_member(value, members):
        return value
    if isinstance(value, dict):
        # Models write {"unit": {"value": "km"}} where an enum is wanted.
        if record.safe or len(value) != 1:
            return value
        inner = next(iter(value.values()))
        if not is_member(inner, members):
            return value
        return record.note("coerce.unwrap-single", path, value, inner)
    if isinstance(value, str):
        return _enum_from_text(record, value, members, path)
    if isinstance(value, bool) or is_type(value, "number"):
        text = write_canonical(value)
        if any(isinstance(member, str) and member == text for member in members):
            return to_text(record, value, path)
        return _enum_from_switch(record, value, members, path) if record.safe else value

    return value


def _enum_from_text(record: Record, value: str, members: tuple[Value, ...], path: str) -> Value:
    text = value.strip(SPACE)
    for rule, inner in (("coerce.trim", text), ("coerce.unquote", _unquoted(text))):
        if inner != value and is_member(inner, members):
            return record.note(rule, path, value, inner)

    # Two members that could be meant, such as 5 and 5.0, are no answer.
    named = [m for m in members if not isinstance(m, str) and _names_member(text, m)]
    if not named and record.safe:
        return _enum_from_switch(record, value, members, path)
    if len(named) != 1:
        return value
    return record.note("coerce.enum-from-string", path, value, named[0])


def _enum_from_switch(record: Record, value: Value, members: tuple[Value, ...], path: str) -> Value:
    if not all(member is None or isinstance(member, bool) for member in members):
        return value

    # A trial's record, since the member may not be one of the enum's.
    new = boolean_from_switch(Record(record.policy), value, path)
    return boolean_from_switch(record, value, path) if is_member(new, members) else value


def _names_member(text: str, member: Value) -> bool:
    if isinstance(member, bool):
        return _WORDS.get(text.lower()) is member
    if member is None:
        return text == "null"

    number_read = loose_number_of(text)
    return number_read is not None and same(number_read, member)


def _unquoted(text: str) -> str:
    for opener, closer in _QUOTES:
        if len(text) > 1 and text[0] == opener and text[-1] == closer:
            return text[1:-1].strip(SPACE)
    return text


# raw text

# A format without quotes writes `42` for the text and for the number, and chat templates write text
# bare and everything else as JSON. So JSON of a type that the schema names next to text is that, if
# the value says nothing that the text does not: 007, 1.50 and a sentence stay text.

_MOST_DEPTH_OF_RAW = 200
_JSON_SPACE = " \t\r\n"
_STARTS = frozenset("{[-0123456789tf")  # of JSON that is neither a text nor null


def holds_typed_text(value: Value, view: View) -> bool:
    """Return True if a parameter's first character may begin a value of another type than text."""
    if not isinstance(value, dict):
        return False
    for name, member in value.items():
        if type(member) is str and member.lstrip(_JSON_SPACE)[:1] in _STARTS:
            child = view.child(name)
            if child is not None and child.types_beside_text:
                return True
    return False


def from_raw_text(
    record: Record, text: str, path: str, view: View, budget: Budget | None = None
) -> Value:
    """Return null or a value of another type that a parameter's raw text is, or the text itself."""
    # A format of raw text has no other way to write null.
    if is_bare_null(text) and view.admits_null() and not is_member("null", view.texts):
        return record.note("coerce.null-from-string", path, text, None)
    new = value_of_text(text, view, budget)
    return text if new is text else record.note("coerce.value-from-raw-text", path, text, new)


def value_of_text(text: str, view: View, budget: Budget | None = None) -> Value:
    """Return the value of another type that a raw text is, or the text itself."""
    inner = text.strip(_JSON_SPACE)
    if inner[:1] not in _STARTS or not view.types_beside_text or is_member(text, view.texts):
        return text
    values = read_if_strict(inner, _MOST_DEPTH_OF_RAW)
    if values is None or len(values) != 1:
        return text
    value: Value = values[0]
    if not any(is_type(value, name) for name in view.types_beside_text):
        return text
    # A number may be a version or an identifier, with a meaning in each of its characters: only a
    # text that says nothing but its value is one, 1.5 and not 1.50.
    written = float.__repr__ if isinstance(value, float) else write_canonical
    if not isinstance(value, (dict, list)) and written(value) != text:
        return text
    return value if conforms(view, value, budget) else text
