"""The record of one coercion: its policy, and every change as a step."""

from __future__ import annotations

from ...core.types import Step
from ...core.types.spans import make_step
from ...core.values import Value


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
