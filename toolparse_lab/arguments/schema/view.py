"""A JSON Schema compiled once into the answers that coercion and the readers ask for of it.

It is made of the usable form of the schema, with `$ref` and `allOf` resolved. It never changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import Any

from ...core.errors import BadToolSpec
from ...core.values import Value, write_canonical
from .kinds import LEAVES, type_name
from .patterns import TooSlow, matches
from .sound import UNUSABLE, Sound, node_at, sound_schema

# How it works. A node is replaced by what it refers to until there is no reference left; then the
# members of its allOf, each resolved in the same way, are merged into it. The trail of references
# ends circles, and a budget ends what is no circle and still doubles at every step.

_MAX_PARTS = 2_000  # allOf members of one node, those of its members included


def resolve(node: Any, root: Any) -> Any:
    """Return a node with its references followed and its allOf members merged into it."""
    budget = _MAX_PARTS

    def resolved(node: Any, trail: frozenset[str]) -> Any:
        # trail: the references that led here.
        nonlocal budget
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
            ref = node["$ref"]
            if ref in trail:
                return {}  # a circle of references says nothing
            trail |= {ref}
            # Draft 7 ignored the keywords next to a reference, later drafts keep to them. Authors
            # mean them. A reference that leads nowhere leaves them alone.
            own = {k: v for k, v in node.items() if k != "$ref"}
            target = node_at(root, ref)
            node = _gathered(own)
            if isinstance(target, Mapping):
                _merge(node, _gathered(target))

        if not isinstance(node, Mapping):
            return node
        node = _gathered(node)
        if not isinstance(node.get("allOf"), list):
            return node

        # A view for reading arguments, not for validation, which takes allOf as it is.
        merged: dict[str, Any] = {k: v for k, v in node.items() if k != "allOf"}
        for part in node["allOf"]:
            budget -= 1
            if budget < 0:
                break
            inner = resolved(part, trail)
            if isinstance(inner, Mapping):
                _merge(merged, inner)
        return merged

    return resolved(node, frozenset())


_CONDITIONS = "$conditions"


def _gathered(node: Mapping[str, Any]) -> Any:
    # A node with its conditions in one list, which those of its other parts can join: a test (a
    # node, or the name of a member), and what holds then and else.
    if "if" not in node and "dependentSchemas" not in node:
        return node
    gathered = {
        k: v for k, v in node.items() if k not in ("if", "then", "else", "dependentSchemas")
    }
    conditions: list[Any] = [
        (name, inner, None) for name, inner in node.get("dependentSchemas", {}).items()
    ]
    if "if" in node:
        conditions.append((node["if"], node.get("then"), node.get("else")))
    gathered[_CONDITIONS] = [*gathered.get(_CONDITIONS, ()), *conditions]
    return gathered


def _merge(into: dict[str, Any], part: Mapping[str, Any]) -> None:
    # Members of objects, required names and conditions add up. Of any other keyword the first one
    # counts.
    for key, value in part.items():
        earlier = into.get(key)
        if key not in into:
            into[key] = value
        elif key in ("properties", "patternProperties"):
            if isinstance(earlier, Mapping) and isinstance(value, Mapping):
                into[key] = {**earlier, **value}
        elif key == "required" and isinstance(earlier, list) and isinstance(value, list):
            into[key] = [*earlier, *(name for name in value if name not in earlier)]
        elif key in ("allOf", _CONDITIONS):
            into[key] = [*list(earlier or ()), *value]


# How it works. A `Root` holds a whole schema and one `View` for each of its nodes, by the node's
# identity, so that a schema that refers to itself stays as small as it is written. A view computes
# at once what is asked of every value (types, enum, required), and the rest when it is first asked
# for: members, items and branches are views themselves, and in a schema that refers to itself they
# have no end. Views of a schema's text are cached, since every call of a tool brings the same text;
# `leaves` and `box` are there so that a clean value costs one comparison a member.

# Which type a value is brought to when the schema lists several.
PREFERENCE = ("object", "array", "boolean", "number", "integer", "string", "null")
_RANKS = {name: rank for rank, name in enumerate(PREFERENCE)}
_BOXES: Mapping[str, type] = {"object": dict, "array": list}
# Keywords that give away the type of a node that does not name one.
_OBJECT_KEYWORDS = ("properties", "additionalProperties", "patternProperties")
_ARRAY_KEYWORDS = ("items", "prefixItems")
_LONGEST_PATTERN = 200  # characters of a pattern for keys; longer ones are left alone


class View:
    """One schema node, with its references followed."""

    # types: the types it allows, preferred ones first, or None if the schema does not say. enum:
    # the values it allows, None for any. required: the members an object must have. union: it has
    # branches. fixed: it is true or false; such a member is left alone. open: it says nothing at
    # all (true, {} or absent). leaf: the one type of a plain scalar, so that a clean value costs
    # one comparison. box: dict or list for a plain object or array.
    # Slots for what every value asks of a view: they are read five times as fast as from a dict.
    # The cached properties below live in the dict.
    __slots__ = (
        *("__dict__", "_node", "_root", "box", "enum", "fixed", "has_conditions", "leaf", "open"),
        *("required", "types", "union"),
    )

    def __init__(self, node: Any, root: Root) -> None:
        resolved = resolve(node, root.schema)
        self._root = root
        # What holds for a value depends on the value anywhere in the schema.
        self.has_conditions = root.has_conditions
        self._node: Mapping[str, Any] = resolved if isinstance(resolved, Mapping) else {}
        self.fixed = isinstance(resolved, bool)
        self.open = not self._node.keys() - {UNUSABLE}
        # What is false allows nothing.
        self.types = () if resolved is False else _types(self._node)
        members, names = self._node.get("enum"), self._node.get("required")
        self.enum: tuple[Value, ...] | None = tuple(members) if isinstance(members, list) else None
        if "const" in self._node:
            self.enum = (self._node["const"],)
        required = names if isinstance(names, list) else ()
        self.required = frozenset(name for name in required if isinstance(name, str))
        self.union = bool(_branches(self._node))

        # Only where neither an enum nor branches narrow the one type any further is a value of the
        # right class right without any further look.
        is_plain = self.types is not None and len(self.types) == 1
        is_plain = is_plain and not self.union and self.enum is None
        plain_type = self.types[0] if self.types and is_plain else ""
        self.leaf: str | None = plain_type if plain_type in LEAVES else None
        self.box: type | None = _BOXES.get(plain_type)

    def allows(self, type_name: str) -> bool:
        """Return True if the types of this node alone admit a type, as silence does."""
        return self.types is None or type_name in self.types

    # What follows is compiled when first asked for, and is a plain attribute from then on.

    @cached_property
    def properties(self) -> dict[str, View]:
        """The views of the declared members, by name, in the schema's order."""
        nodes = self._node.get("properties")
        if not isinstance(nodes, Mapping):
            return {}

        return {name: self._root.view(node) for name, node in nodes.items()}

    @cached_property
    def leaves(self) -> dict[str, tuple[type, ...]]:
        """The declared members that are plain scalars, with the classes that plainly are theirs."""
        return {
            name: LEAVES[view.leaf]
            for name, view in self.properties.items()
            if view.leaf is not None
        }

    @cached_property
    def closed(self) -> bool:
        """True if members that are not declared are forbidden."""
        return self._node.get("additionalProperties") is False

    @cached_property
    def patterns(self) -> list[tuple[str, View]]:
        """The views of members by a pattern of their names, in the schema's order."""
        # Patterns that may take too long drop out: for coercion, their members are undeclared.
        nodes = self._node.get("patternProperties")
        if not isinstance(nodes, Mapping):
            return []

        patterns = []
        for text, node in nodes.items():
            is_short = isinstance(text, str) and len(text) <= _LONGEST_PATTERN
            if is_short and not _NESTED_REPEAT.search(text):
                patterns.append((text, self._root.view(node)))
        return patterns

    @cached_property
    def additional(self) -> View | None:
        """The view of members that are not declared, None if the schema says nothing of them."""
        return self._view_if_mapping(self._node.get("additionalProperties"))

    @cached_property
    def tells_of_undeclared(self) -> bool:
        """True if the schema says something of members that are not declared, if only yes or no."""
        return "additionalProperties" in self._node

    @cached_property
    def prefix(self) -> tuple[View, ...]:
        """The views of the first items, one each, where the schema tells them apart."""
        for keyword in ("prefixItems", "items"):  # draft 7 wrote tuples as a list under items
            nodes = self._node.get(keyword)
            if isinstance(nodes, list):
                return tuple(self._root.view(node) for node in nodes)
        return ()

    @cached_property
    def items(self) -> View | None:
        """The view of items after the prefix, None if the schema says nothing of them."""
        node = self._node.get("items")
        if isinstance(node, list):
            # Draft 7 again: after a tuple, this keyword holds what `items` holds now.
            node = self._node.get("additionalItems")

        return self._view_if_mapping(node)

    @cached_property
    def any_of(self) -> tuple[View, ...]:
        """The views of the branches of a union."""
        return tuple(self._root.view(node) for node in _branches(self._node))

    @cached_property
    def conditions(self) -> tuple[tuple[Any, View | None, View | None], ...]:
        """The tests of objects (a node, or a member's name), with what holds then and else."""
        views = self._view_if_mapping
        return tuple((t, views(a), views(b)) for t, a, b in self._node.get(_CONDITIONS, ()))

    @property
    def root(self) -> Any:
        """The whole schema that this node is of."""
        return self._root.schema

    def _view_if_mapping(self, node: Any) -> View | None:
        return self._root.view(node) if isinstance(node, Mapping) else None

    def child(self, key: str) -> View | None:
        """Return the view of a member: declared, by the first fitting pattern, or additional."""
        declared = self.properties.get(key)
        if declared is not None:
            return declared

        for pattern, view in self.patterns:
            with suppress(TooSlow):
                if matches(pattern, key):
                    return view

        return self.additional

    def item(self, index: int) -> View | None:
        """Return the view of the item at an index."""
        return self.prefix[index] if index < len(self.prefix) else self.items

    @cached_property
    def alternatives(self) -> tuple[View, ...]:
        """The nodes without branches that a value of this one may be meant for."""
        alternatives: list[View] = []
        todo: list[View] = [self]
        visited: set[int] = set()
        while todo:
            view = todo.pop()
            if id(view) in visited:
                continue
            visited.add(id(view))
            if view.any_of:
                todo.extend(reversed(view.any_of))
            else:
                alternatives.append(view)

        return tuple(alternatives)

    @cached_property
    def only_boolean(self) -> bool:
        """True if nothing but true and false, and perhaps null, is a legal value."""
        types = {name for view in self.alternatives for name in view.types or ("",)}
        return "boolean" in types and types <= {"boolean", "null"}

    @cached_property
    def texts(self) -> tuple[Value, ...]:
        """The texts that are legal by an enum, in all branches."""
        members = (member for view in self.alternatives for member in view.enum or ())
        return tuple(member for member in members if isinstance(member, str))

    def admits_string(self) -> bool:
        """Return True if any text at all is a legal value, which an enum never admits."""
        return self._admits_string

    @cached_property
    def _admits_string(self) -> bool:
        return any(
            view.enum is None and (view.types is None or "string" in view.types)
            for view in self.alternatives
        )

    @cached_property
    def types_beside_text(self) -> frozenset[str]:
        """The types but text and null that the schema names, where any text is legal as well."""
        if not self._admits_string:
            return frozenset()
        types = {name for view in self.alternatives for name in view.types or ()}
        return frozenset(types - {"string", "null"})

    def admits_null(self) -> bool:
        """Return True if null is a legal value."""
        return self._admits_null

    @cached_property
    def _admits_null(self) -> bool:
        # Silence admits everything in JSON Schema, but no one who left a type out meant null.
        return any(
            None in view.enum
            if view.enum is not None
            else view.types is not None and "null" in view.types
            for view in self.alternatives
        )

    @cached_property
    def only_leaves(self) -> bool:
        """True for a plain object whose declared members, and no others, are plain scalars."""
        if self.box is not dict or self.patterns or self.additional is not None:
            return False
        return self.leaves.keys() == self.properties.keys()


def _types(node: Mapping[str, Any]) -> tuple[str, ...] | None:
    # The order matters to whoever takes the first of them, so it is ours and not the author's.
    keyword = node.get("type", ())
    names = [keyword] if isinstance(keyword, str) else list(keyword)
    # People leave `type` out next to `properties`. By the letter such a schema admits any text. Its
    # author meant an object.
    if not names and any(keyword in node for keyword in _OBJECT_KEYWORDS):
        names = ["object"]
    elif not names and any(keyword in node for keyword in _ARRAY_KEYWORDS):
        names = ["array"]
    if not names:
        return None

    return tuple(sorted(dict.fromkeys(names), key=lambda name: _RANKS.get(name, len(PREFERENCE))))


def _branches(node: Mapping[str, Any]) -> list[Any]:
    nodes = node.get("anyOf") or node.get("oneOf")
    return nodes if isinstance(nodes, list) else []


# A pattern with a repeated group inside a repeat can take exponential time on hostile keys.
_NESTED_REPEAT = re.compile(r"[+*}]\)?[+*{]|\([^()]*[+*|][^()]*\)[+*{]")


class Root:
    """A whole schema, with the views of its nodes."""

    __slots__ = ("_views", "has_conditions", "schema")

    def __init__(self, sound: Sound) -> None:
        self.schema = sound.schema
        self.has_conditions = sound.has_conditions
        self._views: dict[int, View] = {}  # by a node's identity: the schema keeps it alive

    def view(self, node: Any) -> View:
        """Return the view of a node of this schema, compiled the first time."""
        # A node that refers to itself finds here the view that is being made of it.
        view = self._views.get(id(node))
        if view is None:
            view = self._views[id(node)] = View(node, self)

        return view


@lru_cache(maxsize=2048)
def _cached_view(schema_json: str) -> View:
    sound = sound_schema(schema_json)
    return Root(sound).view(sound.schema)


def view_of(schema: Any) -> View:
    """Return the view of a schema given as JSON text (cached), mapping, bool or None."""
    # A mapping is cached by its canonical text, so that one that a caller changes later is another
    # schema. Raises BadToolSpec for anything else, and for text that is not JSON.
    if isinstance(schema, str):
        try:
            return _cached_view(schema)
        except ValueError:
            raise _no_schema(schema) from None
    # Writing the text costs less than compiling the views again.
    if isinstance(schema, Mapping):
        return _cached_view(write_canonical(dict(schema)))

    if schema is not None and not isinstance(schema, bool):
        raise _no_schema(schema)
    return Root(Sound(schema)).view(schema)


def _no_schema(x: object) -> BadToolSpec:
    name = type_name(x) if isinstance(x, str) else ""
    return BadToolSpec(
        "this is not a JSON Schema",
        got=x,
        expected='a mapping such as {"type": "integer"}, its JSON text, true, false or None',
        hint=f'pass {{"type": "{name}"}}' if name in PREFERENCE else None,
    )


def get_schema_type(schema: Any) -> str | None:
    """Return the type a schema wants, or None if it does not say.

    Of several types, the preferred one.

    >>> get_schema_type({"items": {}})
    'array'
    """
    types = view_of(schema).types
    return types[0] if types else None
