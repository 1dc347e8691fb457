"""One coercion under way: a walk down a value and its schema that records each change as a step."""

from __future__ import annotations

from ..types import Step
from ..values import Value, escape_token, same
from . import arrays, scalars
from .conforms import LEAVES, conforms, is_type
from .view import View

_MAX_DEPTH = 150  # deeper values are left as they are: no schema that people write goes there


class Walk:
    """One coercion under way."""

    __slots__ = ("_alive", "_inside", "_known", "_unions", "one_item", "policy", "safe", "steps")

    def __init__(self, policy: str, one_item: bool = False) -> None:
        self.policy = policy
        self.one_item = one_item
        self.safe = policy == "safe"
        self.steps: list[Step] = []
        # The answers of unions, by view and value: unions inside unions would ask the same again and again. Each
        # holds its value, so that no other gets its id.
        self._unions: dict[tuple[int, int], tuple[Value, Value, list[Step], str]] = {}
        self._known: dict[tuple[int, int], bool] = {}
        self._alive: list[Value] = []
        self._inside = False  # a union is being looked into

    def note(self, rule: str, path: str, before: Value, after: Value) -> Value:
        self.steps.append(Step("coerce", rule, path, None, before, after))
        return after

    def value(self, value: Value, view: View, path: str, depth: int) -> Value:
        kind = type(value)
        if depth > _MAX_DEPTH or (view.leaf is not None and kind in LEAVES[view.leaf]):
            return value
        if view.union:
            return self.union(value, view, path, depth)
        if view.enum is not None:
            return scalars.to_enum(self, value, view, path)
        if view.types is None:
            return self.untyped(value, view, path, depth)
        if kind is str:
            return self.text(value, view, path, depth)
        if kind is dict:
            return self.mapping(value, view, path, depth)
        if kind is list:
            return self.sequence(value, view, path, depth)
        return self.scalar(value, view, path, depth)

    def union(self, value: Value, view: View, path: str, depth: int) -> Value:
        """The branch the value fits, as it is or after coercion; more than one way under `safe` is no way."""
        if isinstance(value, str) and view.admits_string():
            return value
        if self.safe and not self._inside and view.conforms(value):
            return value
        key = id(view), id(value)
        if key not in self._unions:
            self._unions[key] = value, value, [], path  # what it is while it is asked: a union inside itself ends here
            mark = len(self.steps)
            new = self.branch(value, view, path, depth)
            self._unions[key] = value, new, self.steps[mark:], path
            return new
        _, new, steps, known_path = self._unions[key]
        for s in steps:
            self.note(s.rule, path + s.path[len(known_path) :], s.before, s.after)
        return new

    def branch(self, value: Value, view: View, path: str, depth: int) -> Value:
        mark = len(self.steps)
        inside, self._inside = self._inside, True
        fits: list[tuple[Value, list[Step]]] = []
        for branch in view.any_of:
            new = self.value(value, branch, path, depth + 1)
            steps = self.steps[mark:]
            del self.steps[mark:]
            if self.holds(branch, new):
                if not steps:
                    self._inside = inside
                    return value
                if not any(same(new, other) for other, _ in fits):
                    fits.append((new, steps))
        self._inside = inside
        if not fits or (self.safe and len(fits) > 1):
            return value
        new, steps = fits[0]
        self.steps.extend(steps)
        return new

    def holds(self, branch: View, value: Value) -> bool:
        """Whether a branch holds; inner unions are asked first, so that outer ones need not look into them again."""
        key = id(branch), id(value)
        if key not in self._known:
            self._known[key] = conforms(branch, value, 0, self._known)
            self._alive.append(value)
        return self._known[key]

    def untyped(self, value: Value, view: View, path: str, depth: int) -> Value:
        """The schema names no type: declared members of objects are still coerced, text only by `middleware`."""
        if isinstance(value, dict) and not view.open:
            return self.members(value, view, path, depth)
        if self.safe or not isinstance(value, str):
            return value
        return scalars.from_untyped_text(self, value, path)

    def text(self, value: str, view: View, path: str, depth: int) -> Value:
        """Text where the schema may want something else."""
        types = view.types or ()
        if "string" in types and (self.safe or types in (("string",), ("string", "null"))):
            return value
        for name in types:
            if name == "object":
                new = scalars.object_from_text(self, value, path)
                if new is not value:
                    return self.mapping(new, view, path, depth)
            elif name == "array":
                new = arrays.from_text(self, value, view, path)
                if new is not value:
                    return self.sequence(new, view, path, depth)
            else:
                new = scalars.from_text(self, value, name, path)
                if new is not value:
                    return new
        return value

    def mapping(self, value: dict[str, Value], view: View, path: str, depth: int) -> Value:
        if view.allows("object"):
            return self.members(value, view, path, depth)
        if view.allows("array"):
            new = arrays.from_mapping(self, value, path)
            if new is not value:
                return self.sequence(new, view, path, depth)
            return self.wrapped(value, view, path, depth)
        if not self.safe and len(value) == 1:
            inner = next(iter(value.values()))
            mark = len(self.steps)
            self.note("coerce.unwrap-single", path, value, inner)
            new = self.value(inner, view, path, depth + 1)
            if any(is_type(new, t) for t in view.types or ()):
                return new
            del self.steps[mark:]
        return value

    def members(self, value: dict[str, Value], view: View, path: str, depth: int) -> Value:
        out: dict[str, Value] | None = None
        leaves = view.leaves
        for key, member in value.items():
            types = leaves.get(key)
            if types is not None and type(member) in types:
                continue
            child = view.child(key)
            if child is None:
                if self.safe or key in view.properties or not isinstance(member, str):
                    continue
                new = scalars.from_untyped_text(self, member, f"{path}/{escape_token(key)}")
            elif child.fixed:
                continue
            else:
                new = self.value(member, child, f"{path}/{escape_token(key)}", depth + 1)
            if new is not member:
                if out is None:
                    out = dict(value)
                out[key] = new
        return value if out is None else out

    def sequence(self, value: list[Value], view: View, path: str, depth: int) -> Value:
        if not view.allows("array"):
            return value
        prefix, items = view.prefix, view.items
        out: list[Value] | None = None
        for i, item in enumerate(value):
            child = prefix[i] if i < len(prefix) else items
            if child is None:
                continue
            new = self.value(item, child, f"{path}/{i}", depth + 1)
            if new is not item:
                if out is None:
                    out = list(value)
                out[i] = new
        return value if out is None else out

    def wrapped(self, value: Value, view: View, path: str, depth: int) -> Value:
        """A single value where an array is wanted; under `safe` only if the array is then legal."""
        if value is None and (view.admits_null() or self.safe):
            return value
        mark = len(self.steps)
        new = self.sequence(self.note("coerce.wrap-array", path, value, [value]), view, path, depth + 1)
        if self.safe and not view.conforms(new):
            del self.steps[mark:]
            return value
        return new

    def scalar(self, value: Value, view: View, path: str, depth: int) -> Value:
        """A number, boolean or null that is none of the types wanted."""
        types = view.types or ()
        if any(is_type(value, t) for t in types):
            return value
        if "string" in types:
            return scalars.to_text(self, value, path)
        if "array" in types:
            return self.wrapped(value, view, path, depth)
        return value
