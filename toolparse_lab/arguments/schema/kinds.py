"""The types of JSON Schema: which value is a string, an integer, a number; and which type a name
means that people write by hand.
"""

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
    """Return True if a value has a type of JSON Schema: 3.0 is an integer, True not a number."""
    names = _NAMES.get(type(value))
    if names is None:  # of a derived class, such as an enum
        names = next((own for base, own in _NAMES.items() if isinstance(value, base)), ())
    if name in names:
        return True

    return name == "integer" and isinstance(value, (float, Decimal)) and is_whole(value)


_MEANINGS: Mapping[str, tuple[str, ...]] = {
    "string": ("str", "text", "char"),
    "integer": ("int", "bigint", "long", "short", "int32", "int64", "uint", "uint32", "uint64"),
    "number": ("float", "double", "decimal", "float32", "float64", "numeric"),
    "boolean": ("bool",),
    "object": ("dict", "map", "struct", "record"),
    "array": ("list", "tuple", "set"),
    "null": ("none", "nonetype", "nil"),
}
_MEANING_OF: Mapping[str, str] = {
    name: meaning for meaning, names in _MEANINGS.items() for name in (meaning, *names)
}


def type_name(name: str) -> str:
    """Return the type of JSON Schema that a name means, the name itself if it means none."""
    return name if name in _MEANINGS else _MEANING_OF.get(name.lower(), name)
