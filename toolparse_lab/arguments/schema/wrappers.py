"""Arguments that stand in one parameter more: `{"arguments": {"city": "Rome"}}`.

That parameter is named for arguments, the tool has none of its name, and has all that is in it.
"""

from __future__ import annotations

from ...core.values import Value
from .view import View, view_of
from .walk import Walk

_NAMES = frozenset(("arguments", "parameters", "properties", "input", "args", "kwargs"))
_OBJECT = '{"type": "object"}'


def may_be_wrapped(value: object) -> bool:
    """Return if arguments have one member, with a name for arguments; cheap, for every call."""
    return isinstance(value, dict) and len(value) == 1 and not _NAMES.isdisjoint(value)


def unwrap(value: Value, view: View, walk: Walk) -> Value:
    """Return the arguments that an only member holds, else the value itself."""
    if not isinstance(value, dict) or not may_be_wrapped(value) or not view.properties:
        return value
    ((name, inner),) = value.items()
    if name in view.properties:
        return value
    mark = len(walk.steps)
    inner = walk.value(inner, view_of(_OBJECT), f"/{name}", 1)
    if isinstance(inner, dict) and inner and inner.keys() <= view.properties.keys():
        walk.note("coerce.wrapper", "", value, inner)
        return inner
    del walk.steps[mark:]
    return value
