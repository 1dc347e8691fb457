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
    """Return a schema out of any number of {jsonSchema: …} wrappers."""
    while _is_wrapper(schema):
        schema = schema["jsonSchema"]

    return schema


def _is_wrapper(schema: Any) -> bool:
    # A property that is called jsonSchema and holds anything else is not a wrapper.
    if not isinstance(schema, Mapping) or "jsonSchema" not in schema:
        return False
    return isinstance(schema["jsonSchema"], (Mapping, bool))


def resolve(node: Any, root: Any) -> Any:
    """Return a node with its references followed and its allOf members merged into it."""
    return _Resolution(root).resolve(node, frozenset())


class _Resolution:
    __slots__ = ("_budget", "_root")

    def __init__(self, root: Any) -> None:
        self._root = root
        self._budget = _MAX_PARTS

    def resolve(self, node: Any, trail: frozenset[str]) -> Any:
        node, trail = self._followed(unwrap_json_schema(node), trail)
        if isinstance(node, Mapping) and isinstance(node.get("allOf"), list):
            return self._merged(node, trail)

        return node

    def _followed(self, node: Any, trail: frozenset[str]) -> tuple[Any, frozenset[str]]:
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
            ref = node["$ref"]
            if ref in trail:
                return {}, trail  # a circle of references says nothing
            trail |= {ref}
            node = self._target(node, ref)

        return node, trail

    def _target(self, node: Mapping[str, Any], ref: str) -> Mapping[str, Any]:
        # Draft 7 ignored the keywords next to a reference, later drafts keep to them. Authors mean
        # them.
        beside = {k: v for k, v in node.items() if k != "$ref"}
        target = node_at(self._root, ref)
        return {**target, **beside} if isinstance(target, Mapping) else beside

    def _merged(self, node: Mapping[str, Any], trail: frozenset[str]) -> dict[str, Any]:
        # A view for reading arguments, not for validation, which takes allOf as it is.
        merged: dict[str, Any] = {k: v for k, v in node.items() if k != "allOf"}
        for part in node["allOf"]:
            self._budget -= 1
            if self._budget < 0:
                break

            resolved = self.resolve(part, trail)
            if isinstance(resolved, Mapping):
                _merge(merged, resolved)

        return merged


def _merge(into: dict[str, Any], part: Mapping[str, Any]) -> None:
    for key, value in part.items():
        if key not in into:
            into[key] = value
        elif key in ("properties", "patternProperties"):
            _merge_members(into, key, value)
        elif key == "required":
            _merge_required(into, value)


def _merge_members(into: dict[str, Any], key: str, members: Any) -> None:
    earlier = into[key]
    if isinstance(earlier, Mapping) and isinstance(members, Mapping):
        into[key] = {**earlier, **members}


def _merge_required(into: dict[str, Any], names: Any) -> None:
    earlier = into["required"]
    if isinstance(earlier, list) and isinstance(names, list):
        into["required"] = [*earlier, *(name for name in names if name not in earlier)]


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
        node = _below(node, token.replace("~1", "/").replace("~0", "~").replace("%25", "%"))
        if node is _NOWHERE:
            return {}

    return node


_NOWHERE = object()


def _below(node: Any, token: str) -> Any:
    if isinstance(node, Mapping):
        return node.get(token, _NOWHERE)
    if isinstance(node, list) and token.isdigit() and int(token) < len(node):
        return node[int(token)]

    return _NOWHERE
