"""What a schema says about one value, as far as prompts and grammars need it: refs followed, allOf merged, one kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import BadToolSpec
from ..values import pointer_get

_MAX_HOPS = 16
_SCALARS = ("string", "integer", "number", "boolean", "null")


def resolve(node: Any, root: Any) -> dict[str, Any]:
    """`node` with its local `$ref`s followed and its `allOf` members merged in; keywords beside a ref win.

    `root` is the schema that `#` means. A true schema is `{}`. Raises BadToolSpec for a ref that is not local, names
    nothing or only leads to further refs.

    >>> resolve({"$ref": "#/$defs/a", "title": "A"}, {"$defs": {"a": {"type": "string"}}})
    {'type': 'string', 'title': 'A'}
    """
    out = dict(node) if isinstance(node, Mapping) else {}
    for _ in range(_MAX_HOPS):
        if "$ref" in out:
            out = {**_target(out.pop("$ref"), root), **out}
        elif "allOf" in out:
            members = out.pop("allOf")
            for member in members if isinstance(members, list) else ():
                out = _merge(out, resolve(member, root))
        else:
            return out
    raise BadToolSpec("a $ref of this schema leads in a circle", got=node, expected="a schema behind the reference")


def _target(ref: Any, root: Any) -> dict[str, Any]:
    if isinstance(ref, str) and ref.startswith("#"):
        try:
            found = pointer_get(root, ref[1:])
        except (KeyError, ValueError):
            found = None
        if isinstance(found, Mapping):
            return dict(found)
        if found is True:
            return {}
    raise BadToolSpec("a $ref of this schema names nothing in it", got=ref, expected="a reference such as #/$defs/Name")


def _merge(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    merged = {**b, **a}
    if "properties" in a and "properties" in b:
        merged["properties"] = {**b["properties"], **a["properties"]}
    if "required" in a and "required" in b:
        merged["required"] = list(dict.fromkeys([*a["required"], *b["required"]]))
    return merged


def kind(node: Mapping[str, Any]) -> str:
    """choice | union | string | integer | number | boolean | null | array | object | any, of a resolved node.

    >>> kind({"enum": ["a"]}), kind({"type": ["string", "null"]}), kind({"properties": {}}), kind({})
    ('choice', 'union', 'object', 'any')
    """
    if "const" in node or isinstance(node.get("enum"), list):
        return "choice"
    if node.get("anyOf") or node.get("oneOf"):
        return "union"
    declared = node.get("type")
    if isinstance(declared, list):
        return "union" if len(declared) > 1 else kind({**node, "type": declared[0]}) if declared else "any"
    if declared in (*_SCALARS, "array", "object"):
        return str(declared)
    if "properties" in node or isinstance(node.get("additionalProperties"), Mapping):
        return "object"
    if "items" in node or "prefixItems" in node:
        return "array"
    return "any"


def choices(node: Mapping[str, Any]) -> list[Any]:
    """The values a choice admits, in schema order."""
    return [node["const"]] if "const" in node else list(node["enum"])


def alternatives(node: Mapping[str, Any], root: Any) -> list[dict[str, Any]]:
    """The resolved members of a union, in schema order."""
    members = node.get("anyOf") or node.get("oneOf")
    if members:
        shared = {k: v for k, v in node.items() if k not in ("anyOf", "oneOf", "description", "title", "default")}
        return [_merge(resolve(m, root), shared) for m in members]
    return [{**node, "type": t} for t in node["type"]]


def properties(node: Mapping[str, Any]) -> list[tuple[str, Any, bool]]:
    """(name, schema, required) of every property that may be given, required ones first, else in schema order."""
    found = node.get("properties") or {}
    required = [str(n) for n in node.get("required") or ()]
    rows = [(str(n), s, n in required) for n, s in found.items() if s is not False]
    rows += [(n, {}, True) for n in required if n not in found]
    return sorted(rows, key=lambda row: not row[2])


def prefix(node: Mapping[str, Any]) -> list[Any]:
    """The schemas of a tuple's positions: prefixItems, or the list that draft 7 writes as items; else empty."""
    found = node.get("prefixItems")
    if not isinstance(found, list) and isinstance(node.get("items"), list):
        found = node["items"]
    return found if isinstance(found, list) else []


def items(node: Mapping[str, Any]) -> Any:
    """The schema of an array's further items; False where none may follow."""
    return node.get("additionalItems", {}) if isinstance(node.get("items"), list) else node.get("items", {})
