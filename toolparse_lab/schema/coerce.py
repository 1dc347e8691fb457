"""Coercion: bringing arguments to their schema by a policy. Pure; every change is a Step with a permanent rule id.

``none`` changes nothing. ``safe`` makes only lossless changes, and none to a value that is already legal, to a
union that admits text, or to a key the schema does not declare. ``middleware`` also splits text into lists,
unwraps single keys and reads values the schema says nothing of. ``seed-layer2`` is a Go orchestrator's coercion to
the letter: top-level text only, by strconv. ``lossy`` is a negative control: whatever makes a value validate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import UnknownRule
from ..types import Policy, Step
from ..values import Value, read_plain
from .conforms import TooDeep
from .policies import coerce_like_go, coerce_lossy
from .view import View, view_of
from .walk import Walk

POLICIES = ("none", "safe", "middleware", "seed-layer2", "lossy")


@dataclass(frozen=True, slots=True)
class Coerced:
    """A value after coercion, and what was done to it."""

    value: Value
    steps: tuple[Step, ...]


def coerce(value: Any, schema: Any, policy: Policy = "safe", *, one_item: bool = False) -> Coerced:
    """Brings `value` to `schema` (a mapping, JSON text, bool or None) by `policy`; raises UnknownRule for a policy
    that does not exist. The value itself is never changed; one that nests deeper than it can be compared with the
    schema stays as it is.

    one_item: the value was written in a format where a single text under a list is one item, as in XML.

    >>> coerce({"a": "1"}, {"type": "object", "properties": {"a": {"type": "integer"}}}).value
    {'a': 1}
    """
    if policy == "safe":
        view = view_of(schema)
        try:
            # What is legal as it is stays as it is, and is most of what comes.
            return Coerced(value, ()) if view.conforms(value) else _walked(value, view, policy, one_item)
        except TooDeep:
            return Coerced(value, ())
    if policy not in POLICIES:
        raise UnknownRule("no coercion policy of this name", got=policy, expected=", ".join(POLICIES))
    if policy == "none":
        return Coerced(value, ())
    if policy == "seed-layer2":
        new, steps = coerce_like_go(value, read_plain(schema) if isinstance(schema, str) else schema)
        return Coerced(new, tuple(steps))
    view = view_of(schema)
    try:
        if policy == "lossy":
            new, steps = coerce_lossy(value, view)
            return Coerced(new, tuple(steps))
        return _walked(value, view, policy, one_item)
    except TooDeep:
        return Coerced(value, ())


def _walked(value: Value, view: View, policy: Policy, one_item: bool) -> Coerced:
    walk = Walk(policy, one_item)
    new = walk.value(value, view, "", 0)
    return Coerced(new, tuple(walk.steps))


def coerce_by_schema(value: Any, schema: Any = None) -> Value:
    """`value` under the policy ``middleware``, without the record of what was done."""
    return coerce(value, schema, "middleware").value
