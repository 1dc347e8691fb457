"""A JSON Schema compiled once into what coercion asks of it. `$ref`, `allOf` and `{jsonSchema: …}` are resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..values import Value, read_plain, write_canonical
from .conforms import LEAVES, conforms, is_type

# Which type a value is brought to when the schema lists several.
PREFERENCE = ("object", "array", "boolean", "number", "integer", "string", "null")
_MAX_PARTS = 2_000  # allOf members of one node, those of its members included


class View:
    """One schema node. `types` is None where the schema does not say; branches are compiled when first asked for.

    Every node of one schema is compiled once, so that a schema that refers to itself stays as small as it is written.
    """

    __slots__ = (
        "_additional", "_any_of", "_items", "_leaves", "_node", "_patterns", "_prefix", "_properties", "_root",
        "box", "enum", "fixed", "leaf", "open", "required", "types", "union",
    )  # fmt: skip

    def __init__(self, node: Any, root: Root) -> None:
        self._root = root
        node = _resolve(node, root.schema)
        self.fixed = isinstance(node, bool)  # as a member's schema: leave the member alone
        self.open = not isinstance(node, Mapping) or not node  # true, {} or absent: says nothing
        if not isinstance(node, Mapping):
            node = {}
        self._node = node
        self.types = _types(node)
        self.enum: tuple[Value, ...] | None = None
        if "const" in node:
            self.enum = (node["const"],)
        elif isinstance(node.get("enum"), list):
            self.enum = tuple(node["enum"])
        required = node.get("required")
        self.required = (
            frozenset(k for k in required if isinstance(k, str)) if isinstance(required, list) else frozenset()
        )
        self.union = bool(_branches(node))
        self._properties: dict[str, View] | None = None
        self._patterns: list[tuple[re.Pattern[str], View]] | None = None
        self._additional: View | None = None
        self._items: View | None = None
        self._prefix: tuple[View, ...] | None = None
        self._any_of: tuple[View, ...] | None = None
        self._leaves: dict[str, tuple[type, ...]] | None = None
        # The one type of a plain scalar, so that a clean value costs one comparison.
        plain = self.types is not None and len(self.types) == 1 and self.enum is None and not self.union
        only = self.types[0] if plain and self.types else ""
        self.leaf: str | None = only if only in LEAVES else None
        self.box: type | None = {"object": dict, "array": list}.get(only)

    def allows(self, type_name: str) -> bool:
        return self.types is None or type_name in self.types

    @property
    def properties(self) -> dict[str, View]:
        if self._properties is None:
            props = self._node.get("properties")
            props = props if isinstance(props, Mapping) else {}
            self._properties = {k: self._root.view(v) for k, v in props.items()}
        return self._properties

    @property
    def leaves(self) -> dict[str, tuple[type, ...]]:
        """The properties that are plain scalars, with the Python types that plainly are theirs."""
        if self._leaves is None:
            self._leaves = {k: LEAVES[v.leaf] for k, v in self.properties.items() if v.leaf is not None}
        return self._leaves

    @property
    def closed(self) -> bool:
        """Whether members that are not declared are forbidden."""
        return self._node.get("additionalProperties") is False

    def child(self, key: str) -> View | None:
        """The view of a member: declared, by pattern, or additional. None where the schema says nothing of it."""
        found = self.properties.get(key)
        if found is not None:
            return found
        for pattern, view in self.patterns:
            if pattern.search(key):
                return view
        return self.additional

    @property
    def patterns(self) -> list[tuple[re.Pattern[str], View]]:
        if self._patterns is None:
            self._patterns = []
            raw = self._node.get("patternProperties")
            for text, node in raw.items() if isinstance(raw, Mapping) else ():
                pattern = _safe_pattern(text)
                if pattern is not None:
                    self._patterns.append((pattern, self._root.view(node)))
        return self._patterns

    @property
    def additional(self) -> View | None:
        if self._additional is None:
            node = self._node.get("additionalProperties")
            if not isinstance(node, Mapping):
                return None
            self._additional = self._root.view(node)
        return self._additional

    @property
    def prefix(self) -> tuple[View, ...]:
        if self._prefix is None:
            nodes = self._node.get("prefixItems")
            if not isinstance(nodes, list):
                nodes = self._node.get("items")  # draft 7 wrote tuples as a list under items
            self._prefix = tuple(self._root.view(n) for n in nodes) if isinstance(nodes, list) else ()
        return self._prefix

    @property
    def items(self) -> View | None:
        """The view of items behind the prefix, None where the schema says nothing of them."""
        if self._items is None:
            node = self._node.get("items")
            if isinstance(node, list):
                node = self._node.get("additionalItems")
            if not isinstance(node, Mapping):
                return None
            self._items = self._root.view(node)
        return self._items

    @property
    def any_of(self) -> tuple[View, ...]:
        if self._any_of is None:
            self._any_of = tuple(self._root.view(n) for n in _branches(self._node))
        return self._any_of

    def admits_string(self) -> bool:
        """Whether any text at all is a legal value."""
        if self.any_of:
            return any(b.admits_string() for b in self.any_of)
        if self.enum is not None:
            return False
        return self.types is None or "string" in self.types

    def admits_null(self) -> bool:
        if self.any_of:
            return any(b.admits_null() for b in self.any_of)
        if self.enum is not None:
            return None in self.enum
        return self.types is not None and "null" in self.types

    def of_leaves(self, value: Value) -> bool:
        """Whether a value is an object of declared scalars, each plainly what it should be: no policy that reads text
        by the schema changes anything in it."""
        if type(value) is not dict or self.box is not dict:
            return False
        leaves = self._leaves or self.leaves
        for key, member in value.items():
            types = leaves.get(key)
            if types is None or type(member) not in types:
                return False
        return True

    def conforms(self, value: Value) -> bool:
        """Types, enums, required members and branches hold, all the way down; other keywords are not looked at.

        Raises TooDeep where unions nest in a value deeper than people nest.
        """
        if type(value) is dict and self.box is dict:  # an object of plain members, which most arguments are
            leaves = self._leaves or self.leaves
            for key, member in value.items():
                types = leaves.get(key)
                if types is None:
                    return conforms(self, value)
                if type(member) not in types and not is_type(member, str(self.properties[key].leaf)):
                    return False
            return self.required <= value.keys()
        return conforms(self, value)


def _types(node: Mapping[str, Any]) -> tuple[str, ...] | None:
    t = node.get("type")
    names = [t] if isinstance(t, str) else [x for x in t if isinstance(x, str)] if isinstance(t, list) else []
    if not names:
        if "properties" in node or "additionalProperties" in node or "patternProperties" in node:
            names = ["object"]
        elif "items" in node or "prefixItems" in node:
            names = ["array"]
        else:
            return None
    return tuple(sorted(names, key=lambda n: PREFERENCE.index(n) if n in PREFERENCE else len(PREFERENCE)))


def unwrap_json_schema(schema: Any) -> Any:
    """A schema out of any number of {jsonSchema: …} wrappers."""
    while isinstance(schema, Mapping) and "jsonSchema" in schema and isinstance(schema["jsonSchema"], (Mapping, bool)):
        schema = schema["jsonSchema"]
    return schema


def _branches(node: Mapping[str, Any]) -> list[Any]:
    nodes = node.get("anyOf") or node.get("oneOf")
    return nodes if isinstance(nodes, list) else []


def get_schema_type(schema: Any) -> str | None:
    """The type a schema wants, the preferred one of several, or None where it does not say.

    >>> get_schema_type({"items": {}})
    'array'
    """
    types = view_of(schema).types
    return types[0] if types else None


def _resolve(node: Any, root: Any, within: frozenset[str] = frozenset(), budget: list[int] | None = None) -> Any:
    """A node with its references followed and its allOf members merged into it.

    within: the references that led here; one that leads back says nothing. budget: allOf members that may be looked at.
    """
    node = unwrap_json_schema(node)
    budget = [_MAX_PARTS] if budget is None else budget
    while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
        ref = node["$ref"]
        rest = {k: v for k, v in node.items() if k != "$ref"}
        if ref in within:
            return {}  # a circle of references says nothing
        within |= {ref}
        target = node_at(root, ref)
        node = {**target, **rest} if isinstance(target, Mapping) else rest
    if isinstance(node, Mapping) and isinstance(node.get("allOf"), list):
        merged: dict[str, Any] = {k: v for k, v in node.items() if k != "allOf"}
        for part in node["allOf"]:
            budget[0] -= 1
            if budget[0] < 0:
                break
            part = _resolve(part, root, within, budget)
            if isinstance(part, Mapping):
                _merge(merged, part)
        return merged
    return node


def _merge(into: dict[str, Any], part: Mapping[str, Any]) -> None:
    for key, value in part.items():
        old = into.get(key)
        if key in ("properties", "patternProperties") and isinstance(old, Mapping) and isinstance(value, Mapping):
            into[key] = {**old, **value}
        elif key == "required" and isinstance(old, list) and isinstance(value, list):
            into[key] = [*old, *(k for k in value if k not in old)]
        elif key not in into:
            into[key] = value


def node_at(root: Any, ref: str) -> Any:
    """The node a local reference names, {} where there is none; nothing is ever fetched."""
    if ref == "#":
        return root
    if not ref.startswith("#/"):
        return {}
    node = root
    for token in ref[2:].split("/"):
        token = token.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(node, Mapping) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        else:
            return {}
    return node


# A pattern with a repeated group inside a repeat can take exponential time on hostile keys.
_NESTED_REPEAT = re.compile(r"[+*}]\)?[+*{]|\([^()]*[+*|][^()]*\)[+*{]")


def _safe_pattern(text: Any) -> re.Pattern[str] | None:
    if not isinstance(text, str) or len(text) > 200 or _NESTED_REPEAT.search(text):
        return None
    try:
        return re.compile(text)
    except re.error:
        return None


class Root:
    """A whole schema, with the views of its nodes."""

    __slots__ = ("_views", "schema")

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self._views: dict[int, View] = {}

    def view(self, node: Any) -> View:
        found = self._views.get(id(node))
        if found is None:
            found = self._views[id(node)] = View(node, self)
        return found


@lru_cache(maxsize=2048)
def _cached(schema_json: str) -> View:
    node = unwrap_json_schema(read_plain(schema_json))
    return Root(node).view(node)


def view_of(schema: Any) -> View:
    """The view of a schema given as JSON text (cached), mapping, bool or None."""
    if isinstance(schema, str):
        return _cached(schema)
    if isinstance(schema, Mapping):
        return _cached(write_canonical(dict(schema)))
    return Root(schema).view(schema)
