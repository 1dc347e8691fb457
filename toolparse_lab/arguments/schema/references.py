"""A schema's nodes as they are meant: references followed, `allOf` merged, wrappers taken off.

Only references inside the schema itself are followed. Nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# How it works. A node is replaced by what it refers to until there is no reference left; then the
# members of its allOf, each resolved in the same way, are merged into it. The trail of references
# ends circles, and a budget ends what is no circle and still doubles at every step.

_MAX_PARTS = 2_000  # allOf members of one node, those of its members included


def unwrap_json_schema(schema: Any) -> Any:
    """Return a schema out of any number of {jsonSchema: …} wrappers.

    >>> unwrap_json_schema({"jsonSchema": {"type": "object"}})
    {'type': 'object'}
    """
    # A property that is called jsonSchema and holds anything else is not a wrapper.
    while isinstance(schema, Mapping) and isinstance(schema.get("jsonSchema"), (Mapping, bool)):
        schema = schema["jsonSchema"]

    return schema


def resolve(node: Any, root: Any) -> Any:
    """Return a node with its references followed and its allOf members merged into it."""
    budget = _MAX_PARTS

    def resolved(node: Any, trail: frozenset[str]) -> Any:
        # trail: the references that led here.
        nonlocal budget
        node = unwrap_json_schema(node)
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
            ref = node["$ref"]
            if ref in trail:
                return {}  # a circle of references says nothing
            trail |= {ref}
            # Draft 7 ignored the keywords next to a reference, later drafts keep to them. Authors
            # mean them. A reference that leads nowhere leaves them alone.
            own = {k: v for k, v in node.items() if k != "$ref"}
            target = node_at(root, ref)
            node = {**target, **own} if isinstance(target, Mapping) else own

        if not isinstance(node, Mapping) or not isinstance(node.get("allOf"), list):
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


def _merge(into: dict[str, Any], part: Mapping[str, Any]) -> None:
    # Members of objects and required names add up. Of any other keyword the first one counts, and
    # so of a malformed one, which validation complains of.
    for key, value in part.items():
        earlier = into.get(key)
        if key not in into:
            into[key] = value
        elif key in ("properties", "patternProperties"):
            if isinstance(earlier, Mapping) and isinstance(value, Mapping):
                into[key] = {**earlier, **value}
        elif key == "required" and isinstance(earlier, list) and isinstance(value, list):
            into[key] = [*earlier, *(name for name in value if name not in earlier)]


def node_at(root: Any, ref: str) -> Any:
    """Return the node a local reference names, {} if there is none."""
    # The whole schema: how a tree refers to its own nodes.
    if ref == "#":
        return root
    if not ref.startswith("#/"):
        return {}

    node = root
    for token in ref[2:].split("/"):
        # A JSON Pointer in a URI fragment: its own two escapes, and the percent sign's.
        token = token.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(node, Mapping) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        else:
            return {}

    return node
