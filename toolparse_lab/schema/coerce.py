"""Coercion: bringing arguments to their schema by a policy. Pure; every change is a Step with a
permanent rule id.

``none`` changes nothing. ``safe`` makes only lossless changes, and none to a value that is already
legal, to a union that admits text, or to a key the schema does not declare. ``middleware`` also
splits text into lists, unwraps single keys and reads values the schema says nothing of.
``seed-layer2`` is a Go orchestrator's coercion to the letter: top-level text only, by strconv.
``lossy`` is a negative control: whatever makes a value validate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import UnknownRule
from ..types import Policy, Step
from ..values import Value, read_plain
from .conforms import TooDeep, conforms
from .policies import coerce_like_go, coerce_lossy
from .view import View, view_of
from .walk import Walk

# How it works. A policy is a name and the walk that goes with it. `safe` first asks if the value is
# legal already, which costs a tenth of a walk and is true of most values; the other policies have
# no such way out, for they change legal values, too.

POLICIES = ("none", "safe", "middleware", "seed-layer2", "lossy")


@dataclass(frozen=True, slots=True)
class Coerced:
    """A value after coercion, and what was done to it."""

    value: Value
    steps: tuple[Step, ...]


def coerce(value: Any, schema: Any, policy: Policy = "safe", *, one_item: bool = False) -> Coerced:
    """Brings `value` to `schema` (a mapping, JSON text, bool or None) by `policy`; raises
    UnknownRule for a policy that does not exist. The value itself is never changed; one that nests
    deeper than it can be compared with the schema stays as it is.

    one_item: the value was written in a format where a single text under a list is one item, as in
    XML.

    >>> coerce({"a": "1"}, {"type": "object", "properties": {"a": {"type": "integer"}}}).value
    {'a': 1}
    """
    if policy not in POLICIES:
        raise UnknownRule(
            "no coercion policy of this name", got=policy, expected=", ".join(POLICIES)
        )
    if policy == "none":
        return Coerced(value, ())
    if policy == "seed-layer2":
        plain_schema = read_plain(schema) if isinstance(schema, str) else schema
        return _coerced(*coerce_like_go(value, plain_schema))

    view = view_of(schema)
    try:
        if policy == "lossy":
            return _coerced(*coerce_lossy(value, view))
        if policy == "safe" and conforms(view, value):
            return Coerced(value, ())  # legal as it is, as is most of what comes
        return _walk(value, view, policy, one_item)
    except TooDeep:
        return Coerced(value, ())


def _coerced(value: Value, steps: list[Step]) -> Coerced:
    """Return a value and the steps that led to it as one result.

    steps: in the order in which they were taken.
    """
    return Coerced(value, tuple(steps))


def _walk(value: Value, view: View, policy: str, one_item: bool) -> Coerced:
    """A value walked once from its root, with the steps of the walk.

    one_item: see `coerce`. Raises TooDeep, as the walk asks if what it made is legal.

    view: the compiled schema of the whole value.
    policy: one that walks, `safe` or `middleware`.
    """
    walk = Walk(policy, one_item)
    new = walk.value(value, view, "", 0)
    return _coerced(new, walk.steps)


def coerce_by_schema(value: Any, schema: Any = None) -> Value:
    """`value` under the policy ``middleware``, without the record of what was done.

    >>> coerce_by_schema({"tags": "a,b"}, {"properties": {"tags": {"type": "array"}}})
    {'tags': ['a', 'b']}
    """
    return coerce(value, schema, "middleware").value
