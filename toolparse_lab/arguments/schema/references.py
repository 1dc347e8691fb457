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
    while _is_wrapper(schema):
        schema = schema["jsonSchema"]

    return schema


def _is_wrapper(schema: Any) -> bool:
    """Tell if a schema is a mapping that only carries another one.

    A property that is called jsonSchema and holds anything else is no wrapper.

    >>> _is_wrapper({"jsonSchema": {}}), _is_wrapper({"jsonSchema": "text"})
    (True, False)
    """
    if not isinstance(schema, Mapping) or "jsonSchema" not in schema:
        return False
    return isinstance(schema["jsonSchema"], (Mapping, bool))


def resolve(node: Any, root: Any) -> Any:
    """Return a node with its references followed and its allOf members merged into it.

    root: the whole schema, in which references are looked up. A reference that leads back to itself
    says nothing, and so does the parts of an allOf beyond its two thousandth member.

    >>> root = {"$defs": {"km": {"type": "number"}}}
    >>> resolve({"$ref": "#/$defs/km"}, root)
    {'type': 'number'}
    """
    return _Resolution(root).resolve(node, frozenset())


class _Resolution:
    """One node under resolution, with the budget that all allOf members below it share.

    Without the budget a schema of a few lines, each naming the next one twice, would take
    exponential time.
    """

    __slots__ = ("_budget", "_root")

    def __init__(self, root: Any) -> None:
        """Begin to resolve nodes of one schema.

        root: the whole schema, in which references are looked up.
        """
        self._root = root
        self._budget = _MAX_PARTS

    def resolve(self, node: Any, trail: frozenset[str]) -> Any:
        """Return the node that `node` stands for. trail: the references that led here.

        References are followed one after the other. allOf members by recursion, each with the trail
        of its own, since two of them may well name the same node.
        """
        node, trail = self._followed(unwrap_json_schema(node), trail)
        if isinstance(node, Mapping) and isinstance(node.get("allOf"), list):
            return self._merged(node, trail)

        return node

    def _followed(self, node: Any, trail: frozenset[str]) -> tuple[Any, frozenset[str]]:
        """Return the node at the end of a chain of references, and the trail that leads to it.

        {} for a chain that comes back to itself.
        """
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
            ref = node["$ref"]
            if ref in trail:
                return {}, trail  # a circle of references says nothing
            trail |= {ref}
            node = self._target(node, ref)

        return node, trail

    def _target(self, node: Mapping[str, Any], ref: str) -> Mapping[str, Any]:
        """Return the node a reference names.

        Keywords beside the reference come before its own.

        Draft 7 ignored the text beside a reference, later drafts hold to it. Authors mean it.

        node: the one with the reference.
        ref: the reference's text. One that leads nowhere leaves the text beside it.
        """
        beside = {k: v for k, v in node.items() if k != "$ref"}
        target = node_at(self._root, ref)
        return {**target, **beside} if isinstance(target, Mapping) else beside

    def _merged(self, node: Mapping[str, Any], trail: frozenset[str]) -> dict[str, Any]:
        """Return a node and the members of its allOf as one.

        The node's own members come first.

        This is a view for reading arguments, not for validation, which takes allOf as it stands.

        trail: the references that led here, so that a circle is noticed.
        """
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
    """Add one member of an allOf to everything merged so far.

    Members of objects and required names add up. Of any other keyword the first one counts.

    >>> node = {"required": ["a"]}
    >>> _merge(node, {"required": ["b"], "title": "T"})
    >>> node
    {'required': ['a', 'b'], 'title': 'T'}
    """
    for key, value in part.items():
        if key not in into:
            into[key] = value
        elif key in ("properties", "patternProperties"):
            _merge_members(into, key, value)
        elif key == "required":
            _merge_required(into, value)


def _merge_members(into: dict[str, Any], key: str, members: Any) -> None:
    """Add the members of a part under a keyword that is there.

    The later ones win.

    What is no mapping on either side is broken, and left for validation to complain of.

    >>> node = {"properties": {"a": True}}
    >>> _merge_members(node, "properties", {"b": False})
    >>> node
    {'properties': {'a': True, 'b': False}}
    """
    earlier = into[key]
    if isinstance(earlier, Mapping) and isinstance(members, Mapping):
        into[key] = {**earlier, **members}


def _merge_required(into: dict[str, Any], names: Any) -> None:
    """Add required names, each once, in the order they first appear in.

    What is no list on either side is broken, and left for validation to complain of.

    >>> node = {"required": ["a"]}
    >>> _merge_required(node, ["b", "a"])
    >>> node
    {'required': ['a', 'b']}
    """
    earlier = into["required"]
    if isinstance(earlier, list) and isinstance(names, list):
        into["required"] = [*earlier, *(name for name in names if name not in earlier)]


def node_at(root: Any, ref: str) -> Any:
    """Return the node a local reference names, {} if there is none.

    Nothing is ever fetched.

    >>> node_at({"$defs": {"a/b": {"type": "null"}}}, "#/$defs/a~1b")
    {'type': 'null'}
    """
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
    """Return the member or item of a node that a token names, or `_NOWHERE` if there is none.

    token: one part of a JSON Pointer, its escapes undone.

    >>> _below({"a": 1}, "a"), _below([5, 6], "1"), _below([5], "2") is _NOWHERE
    (1, 6, True)
    """
    if isinstance(node, Mapping):
        return node.get(token, _NOWHERE)
    if isinstance(node, list) and token.isdigit() and int(token) < len(node):
        return node[int(token)]

    return _NOWHERE
