"""Conformance of a value to a schema's types, enums, required members and branches."""

from __future__ import annotations

from typing import TypeAlias

from ...core.values import Value, nodes, same
from .kinds import LEAVES, is_type
from .view import View

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
    for node in nodes(value):
        size += 1 + (len(node) // _CHARACTERS_A_NODE if isinstance(node, str) else 0)
        if size >= _MOST_NODES:
            break
    return size


# How it works. What must still hold is a list of (view, value) pairs, so that depth costs no
# recursion: a pair is taken off, its own node is looked at, and its members that are not plainly
# right are put on. A union with one branch that a value can be meant for goes on the list as that
# branch; only a union with several asks again, by recursion. Unions inside unions would make that
# exponential, so answers are kept by the identity of branch and value. What is left are schemas of
# very many branches; a budget of steps ends those.


class Answers(dict[tuple[int, int], bool]):
    """The answers of a union's branches, by the identity of branch and value, and their budget."""

    __slots__ = ("_alive", "budget")

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.budget = budget
        self._alive: list[Value] = []  # no other value gets the id of one of these

    def holds(self, branch: View, value: Value, unions: int) -> bool:
        """Return True if a branch holds for a value. unions: as for `conforms_by_answers`."""
        key = id(branch), id(value)
        if key not in self:
            self[key] = conforms_by_answers(branch, value, unions, self)
            self._alive.append(value)
        return self[key]


# What must still hold: a view, a value, and the unions passed on the way to it.
_Todo: TypeAlias = list[tuple[View, Value, int]]

_MAX_UNIONS = 64
_MAX_HOPS = 64  # unions inside unions before a value is looked at: more is a circle


class TooDeep(Exception):
    """A value nests deeper than it is looked into."""


def conforms(view: View, value: Value, budget: Budget | None = None) -> bool:
    """Return True if types, enums, required members and branches hold, all the way down.

    Other keywords are not looked at. budget: of the question that this one is a part of, or None
    for one of its own. Raises TooDeep if unions nest in a value deeper than people nest, and
    OverBudget where they branch more than they do.
    """
    if type(value) is not dict or view.box is not dict:
        return conforms_by_answers(view, value, 0, Answers(budget or Budget(value)))

    # An object of plain members, which most arguments are: one pass, no list.
    leaves = view.leaves
    for key, member in value.items():
        types = leaves.get(key)
        if types is None:
            return conforms_by_answers(view, value, 0, Answers(budget or Budget(value)))
        if type(member) not in types and not is_type(member, str(view.properties[key].leaf)):
            return False

    return view.required <= value.keys()


def conforms_by_answers(view: View, value: Value, unions: int, answers: Answers) -> bool:
    """Return the answer of `conforms` inside the question of an outer union.

    unions: how many unions asked one another on the way here. answers: theirs, read and added to.
    """
    if unions > _MAX_UNIONS:
        raise TooDeep("the value nests too deep to be validated")

    # A list, not recursion: values come from models, and may nest as deep as they like.
    todo: _Todo = []
    hops = 0

    while True:
        kind = type(value)
        # A value that plainly is the one scalar its node wants is not looked at any further.
        if view.leaf is None or kind not in LEAVES[view.leaf]:
            if view.union and not _some_branch_holds(view, value, unions, answers, todo, hops):
                return False
            if kind is not view.box and not _node_allows(view, value):
                return False
            if isinstance(value, list):
                _look_at_items(view, value, todo)
            elif isinstance(value, dict) and not _members_hold(view, value, todo):
                return False
        if not todo:
            return True

        view, value, hops = todo.pop()
        if unions:
            answers.budget.spend()


def _some_branch_holds(
    view: View, value: Value, unions: int, answers: Answers, todo: _Todo, hops: int
) -> bool:
    # A branch can hold only if its own type and enum allow the value. If only one can, it goes to
    # `todo` instead of being asked. hops: unions one inside the other, without a container between;
    # beyond `_MAX_HOPS` the schema goes round in a circle, and is asked by recursion, which
    # `unions` ends.
    # Most branches fall out by their type alone, before anything is asked of what they hold.
    branches: list[View] = []
    for branch in view.any_of:
        answers.budget.spend()
        if branch.union or _node_allows(branch, value):
            branches.append(branch)

    if len(branches) == 1:
        only = branches[0]
        key = id(only), id(value)
        if key in answers:
            return answers[key]
        if hops < _MAX_HOPS:
            todo.append((only, value, hops + 1))
            return True

    return any(answers.holds(branch, value, unions + 1) for branch in branches)


def _node_allows(view: View, value: Value) -> bool:
    if view.types is not None and not any(is_type(value, name) for name in view.types):
        return False
    return view.enum is None or is_member(value, view.enum)


def is_member(value: Value, members: tuple[Value, ...]) -> bool:
    """Return True if a value equals a member of an enum, as JSON compares: 1 is 1.0, not true."""
    for member in members:  # noqa: SIM110  # any() of a generator costs twice as much here
        if same(value, member):
            return True

    return False


def _members_hold(view: View, value: dict[str, Value], todo: _Todo) -> bool:
    leaves = view.leaves
    for key, member in value.items():
        types = leaves.get(key)
        if types is not None:
            if type(member) not in types and not _node_allows(view.properties[key], member):
                return False
            continue

        child = view.child(key)
        if child is not None:
            todo.append((child, member, 0))
        # No view, and not declared either.
        elif view.closed and key not in view.properties:
            return False

    return view.required <= value.keys()


def _look_at_items(view: View, value: list[Value], todo: _Todo) -> None:
    items = view.items
    if view.prefix or items is None or items.leaf is None:
        for index, item in enumerate(value):
            child = view.item(index)
            if child is not None:
                todo.append((child, item, 0))
        return

    # A list of plain scalars, the common case, is gone over without looking at views.
    types = LEAVES[items.leaf]
    todo.extend((items, item, 0) for item in value if type(item) not in types)
