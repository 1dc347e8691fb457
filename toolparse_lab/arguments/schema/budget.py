"""How much work one value may cost: steps count, never time, so that every run ends alike."""

from __future__ import annotations

from ...core.values import Value

# How it works. A schema may branch into itself so that the work doubles at every level, and no
# person would wait for its end. Whatever looks at a value spends one step a look. A first portion
# is enough for what people write; when it is used up, the value is measured, once, and its size is
# worth some steps more, since long values are honest work.

_FIRST_PORTION = 1_500  # steps, a few microseconds each
_STEPS_A_NODE = 8
_CHARACTERS_A_NODE = 8  # a text may hold JSON
_MOST_NODES = 50_000  # no more are counted: an object of Python's may hold itself many times over


class OverBudget(Exception):
    """A schema branches so often that a value is given up."""


class Budget:
    """The steps that remain for one value."""

    # left: whoever takes a step without `spend` refills it where it is below zero.
    __slots__ = ("_is_measured", "_value", "left")

    def __init__(self, value: Value) -> None:
        self._value = value
        self.left = _FIRST_PORTION
        self._is_measured = False

    def spend(self) -> None:
        """Take one step. Raises OverBudget if none remains."""
        self.left -= 1
        if self.left < 0:
            self.refill()

    def refill(self) -> None:
        """Add the steps that the size of the value is worth. Raises OverBudget the second time."""
        if self._is_measured:
            raise OverBudget("the schema branches too often")

        self._is_measured = True
        self.left += size_of(self._value) * _STEPS_A_NODE
        if self.left < 0:
            raise OverBudget("the schema branches too often")


def size_of(value: Value) -> int:
    """Return the size of a value: its nodes, with a node for every eight characters of text."""
    size = 0
    todo = [value]
    while todo and size < _MOST_NODES:
        node = todo.pop()
        size += 1
        if isinstance(node, dict):
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, str):
            size += len(node) // _CHARACTERS_A_NODE

    return size
