"""Arguments on their way into the strict form of their schema, and back."""

# How it works. A value is walked beside the view of its schema, as it was before the translation.
# Under a union the branch is looked for whose members the object has: of the way there, those that
# it may have; of the way back, exactly those, because in the strict form all are required. Nothing
# that fits no branch is changed.
#
# Cost: linear in the value; under a union times its branches. The budget of all questions about
# values ends what branches more often, and such a value stays as it is.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...core.types import JsonSchema
from ...core.values import Value, escape_token
from .budget import Budget, OverBudget
from .conforms import TooDeep, conforms
from .strict_form import is_null_asked
from .view import View, view_of


@dataclass(frozen=True, slots=True)
class DroppedNulls:
    """One object of arguments of which nulls were dropped."""

    path: str
    before: dict[str, Value]
    after: dict[str, Value]


def strict_arguments(arguments: Value, schema: JsonSchema) -> Value:
    """Return arguments as a strict mode writes them: what is left out is null."""
    return _walked(arguments, schema, restoring=False)[0]


def plain_arguments(arguments: Value, schema: JsonSchema) -> tuple[Value, tuple[DroppedNulls, ...]]:
    """Return arguments without the nulls that only the strict form asked for."""
    if not _holds_null(arguments):
        return arguments, ()
    return _walked(arguments, schema, restoring=True)


def _walked(
    arguments: Value, schema: JsonSchema, *, restoring: bool
) -> tuple[Value, tuple[DroppedNulls, ...]]:
    walk = _Walk(restoring, Budget(arguments))
    try:
        return walk.value(arguments, view_of(schema), ""), tuple(walk.changes)
    except (TooDeep, OverBudget, RecursionError):
        return arguments, ()


@dataclass(slots=True)
class _Walk:
    restoring: bool
    budget: Budget
    changes: list[DroppedNulls] = field(default_factory=list)

    def value(self, value: Value, view: View, path: str) -> Value:
        self.budget.spend()
        if not isinstance(value, (dict, list)):
            return value
        own = self._branch(value, view) if view.union else view
        if own is None:
            return value
        if isinstance(value, list):
            return self._items(value, own, path)
        return self._members(value, own, path)

    def _items(self, items: list[Value], view: View, path: str) -> Value:
        values = [
            self.value(item, inner, f"{path}/{i}") if (inner := view.item(i)) else item
            for i, item in enumerate(items)
        ]
        return values if any(a is not b for a, b in zip(values, items, strict=True)) else items

    def _members(self, value: dict[str, Value], view: View, path: str) -> Value:
        own = _without_nulls(value, view) if self.restoring else _with_nulls(value, view)
        if own is not value:
            self.changes.append(DroppedNulls(path, value, own))
        members = {
            name: self.value(member, view.properties[name], f"{path}/{escape_token(name)}")
            if name in view.properties
            else member
            for name, member in own.items()
        }
        return members if any(members[name] is not own[name] for name in own) else own

    def _branch(self, value: Value, view: View) -> View | None:
        kind = "object" if isinstance(value, dict) else "array"
        branches = [branch for branch in view.alternatives if branch.allows(kind)]
        if len(branches) == 1:
            return branches[0]
        for branch in branches:
            self.budget.spend()
            if isinstance(value, dict) and not self._has_members_of(value, branch):
                continue
            # Valid is the value as it was before the nulls, or will be without them.
            own = value
            if self.restoring:
                own = _Walk(True, self.budget).value(value, branch, "")
            if conforms(branch, own, self.budget):
                return branch
        return None

    def _has_members_of(self, value: dict[str, Value], view: View) -> bool:
        if self.restoring:
            return value.keys() == view.properties.keys()
        return view.required <= value.keys() <= view.properties.keys()


def _with_nulls(value: dict[str, Value], view: View) -> dict[str, Value]:
    missing = [name for name in view.properties if name not in value]
    return {**value, **dict.fromkeys(missing)} if missing else value


def _without_nulls(value: dict[str, Value], view: View) -> dict[str, Value]:
    names = {
        name
        for name, member in value.items()
        if member is None and name in view.properties and is_null_asked(view, name)
    }
    return {k: v for k, v in value.items() if k not in names} if names else value


def _holds_null(value: Value) -> bool:
    todo: list[Value] = [value]
    while todo:
        node = todo.pop()
        if node is None:
            return True
        todo.extend(_parts(node))
    return False


def _parts(node: Value) -> Iterator[Value]:
    if isinstance(node, dict):
        yield from node.values()
    elif isinstance(node, list):
        yield from node
