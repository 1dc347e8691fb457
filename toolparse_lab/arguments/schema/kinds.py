"""JSON Schema's types over Python's classes: which value is a string, an integer, a number."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from ...core.values import BigNum, Num, Value
from ...core.values.numbers import is_whole

# The types of a leaf, and the Python classes whose values plainly are one. A value of any other
# class is looked at more closely: 3.0 is an integer although it is a float.
LEAVES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, Num, float, BigNum),
    "boolean": (bool,),
    "null": (type(None),),
}

# Python class -> the types every value of it has. Classes of which others may be derived come with
# no order among them, except that `bool`, itself an `int`, is always found by its own entry.
_NAMES: Mapping[type, tuple[str, ...]] = {
    bool: ("boolean",),
    str: ("string",),
    int: ("integer", "number"),
    float: ("number",),
    Num: ("number",),
    Decimal: ("number",),
    BigNum: ("number",),
    dict: ("object",),
    list: ("array",),
    type(None): ("null",),
}


def is_type(value: Value, name: str) -> bool:
    """Tell if a value has a type by JSON Schema's idea of it: 3.0 is an integer, True no number."""
    names = _NAMES.get(type(value))
    if names is None:
        names = _names_of_subclass(value)
    if name in names:
        return True

    return name == "integer" and isinstance(value, (float, Decimal)) and is_whole(value)


def _names_of_subclass(value: Value) -> tuple[str, ...]:
    for base, names in _NAMES.items():
        if isinstance(value, base):
            return names

    return ()
