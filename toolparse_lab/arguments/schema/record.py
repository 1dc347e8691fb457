"""The record of one coercion: its policy, and every change as a step."""

from __future__ import annotations

from ...core.types import Step
from ...core.types.spans import make_step
from ...core.values import Value


class Record:
    """The leave a coercion has, and the record of its changes.

    safe: the policy makes only lossless changes. one_item: a single text under a list is one item,
    as in XML. steps: the changes in their order.
    """

    __slots__ = ("one_item", "policy", "safe", "steps")

    def __init__(self, policy: str, one_item: bool = False) -> None:
        # The name goes with it, so that a trial can begin with the same one.
        """Make an empty record.

        policy: the name of the coercion policy, by which the rules decide how far they go.
        one_item: a single text under a list is one item, as in XML.
        """
        self.policy = policy
        self.one_item = one_item
        self.safe = policy == "safe"
        self.steps: list[Step] = []

    def note(self, rule: str, path: str, before: Value, after: Value) -> Value:
        """Record one change under a rule id and return the new value.

        path: the JSON Pointer of the value in the arguments.

        rule: the permanent id of the rule.
        before, after: the value as it came, and as it is now.
        """
        self.steps.append(make_step("coerce", rule, path, None, before, after))
        return after


class _Unrecorded(Record):
    """A record of a safe coercion whose steps nobody asks for now."""

    __slots__ = ()

    def note(self, rule: str, path: str, before: Value, after: Value) -> Value:
        """Return the new value."""
        return after


UNRECORDED = _Unrecorded("safe")
