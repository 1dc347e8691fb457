"""Raw text that is a value of another type, where its schema has text beside that type.

A format without quotes writes `42` for the text and for the number, and chat templates write text
bare and everything else as JSON. So JSON of a type that the schema names is that, if the value
says nothing that the text does not: 007, 1.50 and a sentence stay text.
"""

from __future__ import annotations

from ...core.values import Value, write_canonical
from ..rjson.strict import read_if_strict
from .budget import Budget
from .conforms import conforms, is_member
from .kinds import is_type
from .view import View

_MAX_DEPTH = 200
_SPACE = " \t\r\n"
_STARTS = frozenset("{[-0123456789tf")  # of JSON that is neither a text nor null


def holds_typed_text(value: Value, view: View) -> bool:
    """Tell if a parameter is a text that may be a value of another type, by its first character."""
    if not isinstance(value, dict):
        return False
    for name, member in value.items():
        if type(member) is str and member.lstrip(_SPACE)[:1] in _STARTS:
            child = view.child(name)
            if child is not None and child.types_beside_text:
                return True
    return False


def value_of_text(text: str, view: View, budget: Budget | None = None) -> Value:
    """Return the value of another type that a raw text is, or the text itself."""
    inner = text.strip(_SPACE)
    if inner[:1] not in _STARTS or not view.types_beside_text or is_member(text, view.texts):
        return text
    values = read_if_strict(inner, _MAX_DEPTH)
    if values is None or len(values) != 1:
        return text
    value: Value = values[0]
    if not any(is_type(value, name) for name in view.types_beside_text):
        return text
    # A number may be a version or an identifier, with a meaning in each of its characters.
    if not isinstance(value, (dict, list)) and _shortest(value) != text:
        return text
    return value if conforms(view, value, budget) else text


def _shortest(value: Value) -> str:
    # The one text of a scalar that says nothing but its value: 1.5 for 1.50.
    return float.__repr__(value) if isinstance(value, float) else write_canonical(value)
