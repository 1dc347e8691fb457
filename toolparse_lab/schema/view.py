"""A JSON Schema compiled once into what coercion asks of it. `$ref`, `allOf` and `{jsonSchema: …}` are resolved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..values import Num, Value, read_plain, same, write_canonical

# Which type a value is brought to when the schema lists several.
PREFERENCE = ("object", "array", "boolean", "number", "integer", "string", "null")
_MAX_REFS = 64


class View:
    """One schema node. `types` is None where the schema does not say; branches are compiled when first asked for."""

    __slots__ = (
        "_additional", "_any_of", "_items", "_node", "_patterns", "_prefix", "_properties", "_root",
        "enum", "fixed", "leaf", "open", "required", "types",
    )  # fmt: skip

    def __init__(self, node: Any, root: Any) -> None:
        self._root = root
        node = _resolve(node, root)
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
        self.required: tuple[str, ...] = tuple(required) if isinstance(required, list) else ()
        self._properties: dict[str, View] | None = None
        self._patterns: list[tuple[re.Pattern[str], View]] | None = None
        self._additional: View | None = None
        self._items: View | None = None
        self._prefix: tuple[View, ...] | None = None
        self._any_of: tuple[View, ...] | None = None
        # The one type of a plain scalar, so that a clean value costs one comparison.
        plain = self.types is not None and len(self.types) == 1 and self.enum is None and not self.any_of
        self.leaf: str | None = self.types[0] if plain and self.types and self.types[0] in _SCALARS else None

    def allows(self, type_name: str) -> bool:
        return self.types is None or type_name in self.types

    @property
    def properties(self) -> dict[str, View]:
        if self._properties is None:
            props = self._node.get("properties")
            props = props if isinstance(props, Mapping) else {}
            self._properties = {k: View(v, self._root) for k, v in props.items()}
        return self._properties

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
                    self._patterns.append((pattern, View(node, self._root)))
        return self._patterns

    @property
    def additional(self) -> View | None:
        if self._additional is None:
            node = self._node.get("additionalProperties")
            if not isinstance(node, Mapping):
                return None
            self._additional = View(node, self._root)
        return self._additional

    @property
    def prefix(self) -> tuple[View, ...]:
        if self._prefix is None:
            nodes = self._node.get("prefixItems")
            if not isinstance(nodes, list):
                nodes = self._node.get("items")  # draft 7 wrote tuples as a list under items
            self._prefix = tuple(View(n, self._root) for n in nodes) if isinstance(nodes, list) else ()
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
            self._items = View(node, self._root)
        return self._items

    @property
    def any_of(self) -> tuple[View, ...]:
        if self._any_of is None:
            nodes = self._node.get("anyOf") or self._node.get("oneOf")
            self._any_of = tuple(View(n, self._root) for n in nodes) if isinstance(nodes, list) else ()
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

    def conforms(self, value: Value, depth: int = 0) -> bool:
        """Types, enums, required members and branches hold, all the way down; other keywords are not looked at."""
        if depth > 150 or self.open:
            return True
        if self.leaf is not None and type(value) in _LEAVES[self.leaf]:
            return True
        if self.any_of and not any(b.conforms(value, depth + 1) for b in self.any_of):
            return False
        if self.enum is not None and not any(same(value, e) for e in self.enum):
            return False
        if self.types is not None and not any(is_type(value, t) for t in self.types):
            return False
        if isinstance(value, dict):
            if any(k not in value for k in self.required):
                return False
            properties = self.properties
            for key, member in value.items():
                view = properties.get(key) or self.child(key)
                if view is not None and view.leaf is not None and type(member) in _LEAVES[view.leaf]:
                    continue
                if view is None:
                    if self._node.get("additionalProperties") is False and key not in self.properties:
                        return False
                elif not view.conforms(member, depth + 1):
                    return False
        elif isinstance(value, list):
            prefix = self.prefix
            for i, item in enumerate(value):
                view = prefix[i] if i < len(prefix) else self.items
                if view is not None and not view.conforms(item, depth + 1):
                    return False
        return True


# The Python types that plainly are a leaf's: what is not here is looked at more closely.
_LEAVES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, Num), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip
_SCALARS = frozenset(("string", "integer", "number", "boolean", "null"))


def is_type(value: Value, name: str) -> bool:
    """JSON Schema's idea of a type: 3.0 is an integer, True is no number."""
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, str):
        return name == "string"
    if isinstance(value, int):
        return name in ("integer", "number")
    if isinstance(value, float):
        return name == "number" or (name == "integer" and value.is_integer())
    if isinstance(value, dict):
        return name == "object"
    if isinstance(value, list):
        return name == "array"
    return value is None and name == "null"


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


def get_schema_type(schema: Any) -> str | None:
    """The type a schema wants, the preferred one of several, or None where it does not say.

    >>> get_schema_type({"items": {}})
    'array'
    """
    types = view_of(schema).types
    return types[0] if types else None


def _resolve(node: Any, root: Any) -> Any:
    """A node with its references followed and its allOf members merged into it."""
    node = unwrap_json_schema(node)
    for _ in range(_MAX_REFS):
        if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
            break
        target = _at(root, node["$ref"])
        rest = {k: v for k, v in node.items() if k != "$ref"}
        node = {**target, **rest} if isinstance(target, Mapping) else rest
    else:
        return {}  # a circle of references says nothing
    if isinstance(node, Mapping) and isinstance(node.get("allOf"), list):
        merged: dict[str, Any] = {k: v for k, v in node.items() if k != "allOf"}
        for part in node["allOf"]:
            part = _resolve(part, root)
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


def _at(root: Any, ref: str) -> Any:
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


@lru_cache(maxsize=2048)
def _cached(schema_json: str) -> View:
    node = unwrap_json_schema(read_plain(schema_json))
    return View(node, node)


def view_of(schema: Any) -> View:
    """The view of a schema given as JSON text (cached), mapping, bool or None."""
    if isinstance(schema, str):
        return _cached(schema)
    if isinstance(schema, Mapping):
        return _cached(write_canonical(dict(schema)))
    return View(schema, schema)
