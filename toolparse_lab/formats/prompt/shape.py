"""The shape of one value as its schema describes it, as far as prompts and grammars need it.

References are followed, `allOf` is merged, and every node is of exactly one kind. The functions
after `resolve` take nodes that it returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...core.errors import BadToolSpec
from ...core.values import pointer_get

# More steps than any schema written by hand takes; a circle of references ends here.
_MAX_HOPS = 16
_DECLARABLE = ("string", "integer", "number", "boolean", "null", "array", "object")
# Keywords of a union that are about the union itself and not about each of its members.
_OF_THE_UNION = ("anyOf", "oneOf", "description", "title", "default")


def resolve(node: Any, root: Any) -> dict[str, Any]:
    """Return `node` with its local `$ref`s followed and its `allOf` members merged in.

    Keywords next to a reference win. `root` is the schema that `#` means. A true schema is `{}`.
    Raises BadToolSpec for a reference that is not local, names nothing or only leads to further
    references.

    >>> resolve({"$ref": "#/$defs/a", "title": "A"}, {"$defs": {"a": {"type": "string"}}})
    {'type': 'string', 'title': 'A'}
    """
    resolved = dict(node) if isinstance(node, Mapping) else {}

    # What a reference leads to may hold another reference, or an allOf that does.
    for _ in range(_MAX_HOPS):
        if "$ref" in resolved:
            resolved = {**_target(resolved.pop("$ref"), root), **resolved}
        elif "allOf" in resolved:
            members = resolved.pop("allOf")
            if not isinstance(members, list):
                continue
            for member in members:
                resolved = _merge(resolved, resolve(member, root))
        else:
            return resolved

    raise BadToolSpec(
        "a $ref of this schema leads in a circle",
        got=node,
        expected="a schema that the reference leads to",
    )


def _target(ref: Any, root: Any) -> dict[str, Any]:
    target = None
    if isinstance(ref, str) and ref.startswith("#"):
        with suppress(KeyError, ValueError):
            target = pointer_get(root, ref[1:])

    if isinstance(target, Mapping):
        return dict(target)
    if target is True:
        return {}
    raise BadToolSpec(
        "a $ref of this schema names nothing in it",
        got=ref,
        expected="a reference such as #/$defs/Name",
    )


def _merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    # properties and required names add up, else the first wins
    merged = {**second, **first}
    if "properties" in first and "properties" in second:
        merged["properties"] = {**second["properties"], **first["properties"]}
    if "required" in first and "required" in second:
        merged["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return merged


def kind_of(node: Mapping[str, Any]) -> str:
    """Return the one kind of a resolved node.

    One of choice, union, string, integer, number, boolean, null, array, object and any.

    >>> kind_of({"enum": ["a"]}), kind_of({"type": ["string", "null"]}), kind_of({"properties": {}})
    ('choice', 'union', 'object')
    >>> kind_of({})
    'any'
    """
    if "const" in node or isinstance(node.get("enum"), list):
        return "choice"
    if node.get("anyOf") or node.get("oneOf"):
        return "union"

    declared = node.get("type")
    if isinstance(declared, list):
        # A list of one type is written for that type, an empty one for no type at all.
        if len(declared) == 1:
            return kind_of({**node, "type": declared[0]})
        return "union" if declared else "any"
    if declared in _DECLARABLE:
        return str(declared)
    if "properties" in node or isinstance(node.get("additionalProperties"), Mapping):
        return "object"
    return "array" if "items" in node or "prefixItems" in node else "any"


def choices_of(node: Mapping[str, Any]) -> list[Any]:
    """Return the values that a choice admits, in schema order.

    node: of the kind "choice". A constant is a choice of one.
    """
    if "const" in node:
        return [node["const"]]
    return list(node["enum"])


def alternatives_of(node: Mapping[str, Any], root: Any) -> list[dict[str, Any]]:
    """Return the resolved members of a union, in schema order.

    node: of the kind "union". Keywords next to `anyOf` count for each member, apart from those that
    describe the union as a whole.

    >>> alternatives_of({"type": ["integer", "null"], "minimum": 1}, {})
    [{'type': 'integer', 'minimum': 1}, {'type': 'null', 'minimum': 1}]
    """
    members = node.get("anyOf") or node.get("oneOf")
    if not members:
        return [{**node, "type": type_name} for type_name in node["type"]]

    shared = {key: value for key, value in node.items() if key not in _OF_THE_UNION}
    return [_merge(resolve(member, root), shared) for member in members]


def properties_of(node: Mapping[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return (name, schema, required) of every property that may be set.

    Required ones come first, else the order is the schema's. A required name that no property
    describes has the schema `{}`. A property whose schema is false may not be set.

    >>> properties_of({"properties": {"a": {}, "b": {}, "c": False}, "required": ["b"]})
    [('b', {}, True), ('a', {}, False)]
    """
    declared = node.get("properties") or {}
    required = [str(name) for name in node.get("required") or ()]

    # Python sorts stably, so each of the two groups keeps its order.
    rows = [(str(n), s, n in required) for n, s in declared.items() if s is not False]
    rows += [(name, {}, True) for name in required if name not in declared]
    return sorted(rows, key=lambda row: not row[2])


def positions_of(node: Mapping[str, Any]) -> list[Any]:
    """Return the schemas of a tuple's positions, or empty if the array is no tuple.

    They are `prefixItems`, or the list that draft 7 writes as `items`.

    >>> positions_of({"items": [{"type": "string"}, {}]}), positions_of({"items": {}})
    ([{'type': 'string'}, {}], [])
    """
    arrays = (node.get(keyword) for keyword in ("prefixItems", "items"))
    return next((positions for positions in arrays if isinstance(positions, list)), [])


def items_of(node: Mapping[str, Any]) -> Any:
    """Return the schema of an array's items after its positions.

    False if none may follow.

    Draft 7 writes it as `additionalItems` if `items` is the list of positions.
    """
    if isinstance(node.get("items"), list):
        return node.get("additionalItems", {})
    return node.get("items", {})
