"""The part of a tool's schema that can be used, in one dialect, with its references resolved.

Coercion, validation, prompts and scoring all read this form, so that they cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...core.values import Num, escape_token, read_plain, write_canonical
from .kinds import is_type, type_name
from .patterns import compiled

# How it works. A schema is gone through once, node by node, into a schema of draft 2020-12. What
# an older draft, OpenAPI or a common slip of a generator writes in another way is translated. A
# keyword that cannot be used is left out alone and noted with its place. Then each reference is
# resolved, and is from there on a pointer into this schema; one that leads nowhere, or in a circle
# without a look at a member, is left out as well.
#
# A node of which nothing is left that could judge a value gets the keyword `UNUSABLE`: its values
# are unchecked. Where less of a schema would refuse more (`not`, `oneOf`, `if`, `unevaluated…`),
# the keyword that would do so is weakened too, if something was left out below it.
#
# Invariant: a value that the whole schema accepts is accepted by this form.
# Cost: linear in the schema, once for each text.

UNUSABLE = "$unusable"
"""The keyword of a node whose values cannot be checked."""

_NODE = (
    "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_NODES = ("allOf", "anyOf", "oneOf", "prefixItems")
_NODES_BY_NAME = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_IN_PLACE = (
    "$ref", "$dynamicRef", "allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf",
    "then",
)  # fmt: skip
_ASSERTING = frozenset(
    (*_NODE, *_NODES, "$dynamicRef", "$ref", "const", "dependentRequired", "dependentSchemas",
     "enum", "exclusiveMaximum", "exclusiveMinimum", "items", "maxContains", "maxItems",
     "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength",
     "minProperties", "minimum", "multipleOf", "pattern", "patternProperties", "properties",
     "required", "type", "uniqueItems")
)  # fmt: skip
_COUNTS = frozenset(
    f"{bound}{what}"
    for bound in ("min", "max")
    for what in ("Length", "Items", "Properties", "Contains")
)
_NUMBERS = frozenset(
    ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "divisibleBy")
)
_SWITCHES = frozenset(("uniqueItems", "deprecated", "readOnly", "writeOnly"))
_TEXTS = frozenset(("title", "description", "format", "$comment", "$schema", "contentEncoding"))
# Keywords of older drafts that are read together with others.
_OLDER = frozenset(
    ("$recursiveAnchor", "$recursiveRef", "additionalItems", "dependencies", "id", "items",
     "nullable")
)  # fmt: skip
_WORDS = {"true": True, "false": False}
_OLD_DRAFTS = re.compile(r"json-schema\.org/draft-0[3-7]/")
_MOST_IN_PLACE = 90  # nodes that judge one value, one inside the other
_LONGEST_PLACE = 200  # characters of it in a note
_RECURSIVE = "toolparse-recursive"

# The formats that people write as a type.
_FORMATS = {
    **{name: name for name in ("date", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname",
                               "duration", "date-time", "binary", "byte", "password", "regex")},
    "datetime": "date-time", "guid": "uuid", "url": "uri", "bytes": "byte", "base64": "byte",
}  # fmt: skip
_ANY = frozenset(
    ("any", "mixed", "unknown", "*", "object|any", "typing.any", "anything", "variant")
)
_OF_ENUM = frozenset(("enum", "const", "literal"))
_OPTIONAL = re.compile(r"(?:typing\.)?optional\s*\[(.+)\]|(.+)\?", re.IGNORECASE | re.DOTALL)
_LIST = re.compile(
    r"(?:typing\.)?(?:list|array|set|sequence|iterable)\s*[\[<(](.+)[\]>)]|(.+)\[\]",
    re.IGNORECASE | re.DOTALL,
)
_MAP = re.compile(r"(?:typing\.)?(?:dict|map|record|mapping)\s*[\[<(](.+)[\]>)]", re.I | re.DOTALL)
_UNION = re.compile(r"(?:typing\.)?union\s*\[(.+)\]", re.IGNORECASE | re.DOTALL)
_OWN_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


@dataclass(frozen=True, slots=True)
class Sound:
    """A schema of draft 2020-12 without what cannot be used.

    schema: a mapping or bool. notes: what was left out or read in another way, one sentence each,
    with its JSON Pointer. type_names: types by another name, with their meaning. faults: the places
    of what leaves values unchecked.
    """

    schema: Any
    notes: tuple[str, ...] = ()
    type_names: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    has_unusable: bool = False
    has_conditions: bool = False

    @property
    def is_unusable(self) -> bool:
        """True if nothing of the schema as a whole can be used."""
        schema = self.schema
        return isinstance(schema, dict) and UNUSABLE in schema and _ASSERTING.isdisjoint(schema)

    @property
    def is_plainly_written(self) -> bool:
        """True if the schema stands as its author wrote it."""
        return not self.notes and not self.type_names


@lru_cache(maxsize=2048)
def sound_schema(schema_json: str) -> Sound:
    """Return the usable form of a schema's JSON text. Raises ValueError for text that is not JSON.

    >>> sound = sound_schema('{"type": "date", "minimum": "x"}')
    >>> sound.schema, sound.notes
    ({'type': 'string', 'format': 'date'}, ('/minimum is no number and is left out',))
    """
    return _Reader(read_plain(schema_json)).sound()


def unwrap_json_schema(schema: Any) -> Any:
    """Return a schema out of any number of {jsonSchema: …} wrappers.

    >>> unwrap_json_schema({"jsonSchema": {"type": "object"}})
    {'type': 'object'}
    """
    # A property that is called jsonSchema and holds anything else is not a wrapper.
    while isinstance(schema, Mapping) and isinstance(schema.get("jsonSchema"), (Mapping, bool)):
        schema = schema["jsonSchema"]

    return schema


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
        if "%" in token:
            token = _unquoted(token)
        token = token.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        else:
            return {}

    return node


def _unquoted(token: str) -> str:
    from urllib.parse import unquote

    return unquote(token)


def specifications() -> Any:
    """Return the registry of the specifications' own schemas, which retrieves nothing else."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    return REGISTRY


_Node = dict[str, Any]


class _Reader:
    def __init__(self, source: Any) -> None:
        self.source = unwrap_json_schema(source)
        declared = self.source.get("$schema") if isinstance(self.source, Mapping) else None
        self.draft = declared if isinstance(declared, str) else ""
        self.is_old = _OLD_DRAFTS.search(self.draft) is not None
        self.notes: list[str] = []
        self.type_names: dict[str, str] = {}
        # A node as it was written -> the new one; a new node -> its place, and what is above it.
        self.made: dict[int, Any] = {}
        self.places: dict[int, str] = {}
        self.nodes: list[_Node] = []
        self.resources: dict[int, tuple[_Node, ...]] = {}  # new node -> the nodes with an id above
        self.references: list[tuple[_Node, str, str]] = []  # node, reference, place as written
        self.todo: list[tuple[Any, str, str, tuple[_Node, ...], Callable[[Any], None]]] = []
        self.lossy: set[int] = set()  # new nodes of which something is left out
        self.blind: set[int] = set()  # of these, where it cannot be told which members are judged
        self.faults: list[str] = []
        self.kept: list[Any] = []  # sources of our own, whose identity is in `made`
        self._targets: dict[int, _Node] = {}  # new node -> the node it refers to
        self._names = 0

    def note(self, place: str, what: str) -> None:
        if len(place) > _LONGEST_PLACE:
            place = f"{place[:_LONGEST_PLACE]}…"
        self.notes.append(f"{place or 'the whole schema'} {what}")

    def sound(self) -> Sound:
        box: list[Any] = []
        self.todo.append((self.source, "", "", (), box.append))
        self.work()
        root = self.root = box[0]
        if not isinstance(root, dict):
            return Sound(root)
        for node, reference, place in self.references:  # grows, where one leads to a new place
            self.resolve(node, reference, place)
        self.cut_circles()
        self.weaken()
        # References by a dynamic scope are the library's, and so are the names that they need.
        if not any("$dynamicRef" in node for node in self.nodes):
            for node in self.nodes:
                for keyword in ("$id", "$anchor", "$dynamicAnchor"):
                    node.pop(keyword, None)
                if id(node) in self._targets and "$ref" in node:
                    place = self.places[id(self._targets[id(node)])]
                    node["$ref"] = "#" + place.replace("%", "%25")
        return Sound(
            root,
            tuple(self.notes),
            self.type_names,
            tuple(self.faults),
            any(UNUSABLE in node for node in self.nodes),
            any("if" in node or "dependentSchemas" in node for node in self.nodes),
        )

    def work(self) -> None:
        while self.todo:
            source, place, written, above, put = self.todo.pop()
            put(self.node(source, place, written, above))

    # nodes

    def node(self, source: Any, place: str, written: str, above: tuple[_Node, ...]) -> Any:
        # place: in the new schema. written: in the schema as it was written. above: the nodes
        # with an identifier of their own on the way here.
        source = unwrap_json_schema(source)
        if isinstance(source, bool):
            return source
        if isinstance(source, str) and source.lower() in _WORDS:
            self.note(written, f"is read as {source.lower()}")
            return _WORDS[source.lower()]
        if isinstance(source, str) and self.fragment(source, {}) is not None:
            self.note(written, f"is read as the type {source!r}")
            source = {"type": source}
        if source == [] and written:  # how PHP writes an empty object
            source = {}
        node: _Node = {}
        self.nodes.append(node)
        self.places[id(node)] = place
        if not isinstance(source, Mapping):
            self.drop(node, written, "is no schema", whole=True)
            return node
        self.made[id(source)] = node
        if self.is_old and isinstance(source.get("$ref"), str) and source is not self.source:
            # These drafts ignore what is next to a reference.
            source = {"$ref": source["$ref"]}
        self.identify(source, node, above)
        is_nullable = source.get("nullable") in (True, "true")
        if is_nullable and source.get("type") is None:
            source = self.nullable(source, node, written)
        self.has_enum = "enum" in source or "const" in source
        for keyword, value in source.items():
            if keyword not in _OLDER and keyword not in ("$id", "$anchor", "$dynamicAnchor"):
                self.keyword(node, keyword, value, written)
        self.older(source, node, written)
        if id(node) in self.lossy and _ASSERTING.isdisjoint(node):
            node[UNUSABLE] = True
            self.faults.append(written)
        if is_nullable and "type" in node:
            names = node["type"] if isinstance(node["type"], list) else [node["type"]]
            node["type"] = list(dict.fromkeys([*names, "null"]))
        return node

    def nullable(self, source: Mapping[str, Any], node: _Node, written: str) -> Mapping[str, Any]:
        # OpenAPI's word next to a reference or branches: null is one branch more.
        if not {"$ref", "allOf", "anyOf", "oneOf"}.intersection(source):
            return source
        inner = {k: v for k, v in source.items() if k in _ASSERTING or k in _OLDER}
        del inner["nullable"]
        self.kept.append(inner)
        branches = node["anyOf"] = [True, {"type": "null"}]
        self.below(node, inner, "/anyOf/0", written, branches, 0)
        return {k: v for k, v in source.items() if k not in inner and k != "nullable"}

    def lose(self, node: _Node, whole: bool = False) -> None:
        self.lossy.add(id(node))
        if whole:
            self.blind.add(id(node))
            node[UNUSABLE] = True

    def drop(self, node: _Node, written: str, why: str, whole: bool = False) -> None:
        self.note(written, f"{why} and is left out")
        self.lose(node, whole)
        if whole:
            self.faults.append(written)

    def below(
        self, node: _Node, source: Any, steps: str, written: str, into: Any, key: Any
    ) -> None:
        # Put the node of `source` into a container of `node`, when its turn comes.
        def put(made: Any) -> None:
            if not isinstance(into, dict) or not isinstance(into.get(key), _Opened):
                into[key] = made

        put(True)  # keeps the order of keywords
        place = self.places[id(node)] + steps
        self.todo.append((source, place, written, self.resources[id(node)], put))

    def identify(self, source: Mapping[str, Any], node: _Node, above: tuple[_Node, ...]) -> None:
        names = ("$id", "id") if re.search(r"draft-0[34]/", self.draft) else ("$id",)
        for name in names:
            own = source.get(name)
            if not isinstance(own, str):
                continue
            if own.startswith("#"):
                node["$anchor"] = own[1:]
            else:
                node["$id"] = own.removesuffix("#")
                above = (*above, node)
        for name in ("$anchor", "$dynamicAnchor"):
            own = source.get(name)
            if isinstance(own, str) and re.fullmatch(r"[A-Za-z_][-A-Za-z0-9._]*", own):
                node[name] = own
        if source.get("$recursiveAnchor") is True:
            node["$dynamicAnchor"] = _RECURSIVE
        self.resources[id(node)] = above

    # keywords

    def keyword(self, node: _Node, keyword: str, value: Any, written: str) -> None:
        at = f"{written}/{escape_token(keyword)}"
        if keyword in _NODE:
            self.below(node, value, f"/{keyword}", at, node, keyword)
        elif keyword in _NODES:
            self.list_of_nodes(node, keyword, value, at)
        elif keyword in _NODES_BY_NAME:
            self.nodes_by_name(node, keyword, value, at)
        elif keyword in ("$ref", "$dynamicRef"):
            if isinstance(value, str):
                node[keyword] = value
                self.references.append((node, keyword, at))
            else:
                self.drop(node, at, "is no reference", whole=True)
        elif keyword == "type":
            self.types(node, value, at)
        elif keyword == "required":
            self.required(node, value, at)
        elif keyword == "dependentRequired":
            self.dependent_names(node, value, at)
        elif keyword in _COUNTS or keyword in _NUMBERS:
            self.number(node, keyword, value, at)
        elif keyword in _SWITCHES:
            self.switch(node, keyword, value, at)
        elif keyword == "enum":
            if isinstance(value, list):
                node[keyword] = value
            else:
                self.drop(node, at, "is no list")
        elif keyword == "pattern":
            why = _pattern_fault(value)
            if why:
                self.drop(node, at, why)
            else:
                node[keyword] = value
        elif keyword in _TEXTS and not isinstance(value, str):
            self.note(at, "is no text and is left out")
        elif keyword == "extends" and "draft-03/" in self.draft:
            parts = value if isinstance(value, list) else [value]
            self.list_of_nodes(node, "allOf", parts, at)
        elif keyword == "disallow" and "draft-03/" in self.draft:
            self.kept.append(gone := {"type": value})
            self.below(node, gone, "/not", at, node, "not")
        elif keyword not in ("$schema", "$vocabulary", UNUSABLE):
            node[keyword] = value

    def list_of_nodes(self, node: _Node, keyword: str, value: Any, at: str) -> None:
        if not isinstance(value, list) or (not value and keyword != "prefixItems"):
            self.drop(node, at, "is no list of schemas", whole=True)
            return
        into = node.setdefault(keyword, [])  # a type's union may be there
        first = len(into)
        into += [True] * len(value)
        for i, inner in enumerate(value):
            self.below(node, inner, f"/{keyword}/{first + i}", f"{at}/{i}", into, first + i)

    def nodes_by_name(self, node: _Node, keyword: str, value: Any, at: str) -> None:
        if value is None or value == []:  # as Go and PHP write none
            self.note(at, "is read as an empty object")
            value = {}
        if not isinstance(value, Mapping):
            if keyword in ("properties", "patternProperties"):
                self.drop(node, at, "is no object of schemas")
                self.open(node)
            elif keyword == "dependentSchemas":
                self.drop(node, at, "is no object of schemas", whole=True)
            else:
                self.note(at, "is no object of schemas and is left out")
            return
        into = node.setdefault(keyword, {})
        for name, inner in value.items():
            inner_at = f"{at}/{escape_token(name)}"
            why = _pattern_fault(name) if keyword == "patternProperties" else ""
            if why:
                self.drop(node, inner_at, why)
                self.open(node)
                continue
            is_member = keyword == "properties" and isinstance(inner, Mapping)
            if is_member and inner.get("required") in (True, "true"):  # as draft 3 says it
                self.note(f"{inner_at}/required", f"is read as: {name} is required")
                self.names(node, "required", [name])
            self.below(node, inner, f"/{keyword}/{escape_token(name)}", inner_at, into, name)

    def open(self, node: _Node) -> None:
        # Which members are undeclared cannot be told any more, so none of them is judged by that.
        opened = node["additionalProperties"] = _Opened({UNUSABLE: True})
        self.nodes.append(opened)
        self.blind.add(id(node))

    def names(self, node: _Node, keyword: str, names: list[str]) -> None:
        node[keyword] = list(dict.fromkeys([*node.get(keyword, ()), *names]))

    def required(self, node: _Node, value: Any, at: str) -> None:
        if isinstance(value, bool) or value in ("true", "false"):
            if not re.search(r"/properties/[^/]*/required\Z", at):
                self.note(at, "is no list of names and is left out")
            return
        if value is None:
            self.note(at, "is read as an empty list")
            return
        if isinstance(value, str):
            self.note(at, "is read as a list of one name")
            value = [value]
        if not isinstance(value, list):
            self.drop(node, at, "is no list of names")
            return
        for i, name in enumerate(value):
            if not isinstance(name, str):
                self.drop(node, f"{at}/{i}", "is no name")
        self.names(node, "required", [name for name in value if isinstance(name, str)])

    def dependent_names(self, node: _Node, value: Any, at: str) -> None:
        if not isinstance(value, Mapping):
            self.drop(node, at, "is no object of lists of names")
            return
        for name, names in value.items():
            if isinstance(names, str):
                names = [names]
            if isinstance(names, list) and all(isinstance(n, str) for n in names):
                node.setdefault("dependentRequired", {})[name] = names
            else:
                self.drop(node, f"{at}/{escape_token(name)}", "is no list of names")

    def number(self, node: _Node, keyword: str, value: Any, at: str) -> None:
        if isinstance(value, str):
            number = _number(value)
            if number is not None:
                self.note(at, f"is read as the number {value.strip()}")
                value = number
        is_switch = isinstance(value, bool) or value in ("true", "false")
        if is_switch and keyword in ("exclusiveMinimum", "exclusiveMaximum"):
            return  # draft 4, see `older`
        if not is_type(value, "number"):
            self.drop(node, at, "is no number")
        elif keyword in _COUNTS and (not is_type(value, "integer") or value < 0):
            self.drop(node, at, "is no number of things")
        elif keyword in ("multipleOf", "divisibleBy") and not value > 0:
            self.drop(node, at, "is not above 0")
        else:
            node["multipleOf" if keyword == "divisibleBy" else keyword] = value

    def switch(self, node: _Node, keyword: str, value: Any, at: str) -> None:
        if isinstance(value, str) and value.lower() in _WORDS:
            self.note(at, f"is read as {value.lower()}")
            value = _WORDS[value.lower()]
        if isinstance(value, bool):
            node[keyword] = value
        elif keyword in _ASSERTING:
            self.drop(node, at, "is neither true nor false")
        else:
            self.note(at, "is neither true nor false and is left out")

    def older(self, source: Mapping[str, Any], node: _Node, written: str) -> None:
        # What is said by two keywords together, or was in an older draft.
        for bound in ("minimum", "maximum"):
            exclusive = f"exclusive{bound.capitalize()}"
            value = source.get(exclusive)
            if value in ("true", "false") or isinstance(value, bool):
                if value in (True, "true") and bound in node:
                    node[exclusive] = node.pop(bound)
                elif value in (True, "true"):
                    self.note(f"{written}/{exclusive}", f"has no {bound} and is left out")
        if "items" in source:
            self.items(source, node, written)
        if "dependencies" in source:
            self.dependencies(node, source["dependencies"], f"{written}/dependencies")
        if "$recursiveRef" in source:
            above = self.resources[id(node)]
            top = above[-1] if above else self.made[id(self.source)]
            is_dynamic = top.get("$dynamicAnchor") == _RECURSIVE
            keyword = "$dynamicRef" if is_dynamic or "$ref" in node else "$ref"
            node[keyword] = f"#{_RECURSIVE}" if is_dynamic else "#"
            self.references.append((node, keyword, f"{written}/$recursiveRef"))

    def items(self, source: Mapping[str, Any], node: _Node, written: str) -> None:
        value, at = source["items"], f"{written}/items"
        if not isinstance(value, list):
            self.below(node, value, "/items", at, node, "items")
            return
        if "prefixItems" in node:
            self.drop(node, at, "stands next to prefixItems")
            return
        into = node["prefixItems"] = [True] * len(value)
        for i, inner in enumerate(value):
            self.below(node, inner, f"/prefixItems/{i}", f"{at}/{i}", into, i)
        if "additionalItems" in source:
            rest, place = source["additionalItems"], f"{written}/additionalItems"
            self.below(node, rest, "/items", place, node, "items")

    def dependencies(self, node: _Node, value: Any, at: str) -> None:
        if not isinstance(value, Mapping):
            self.drop(node, at, "is no object")
            return
        for name, inner in value.items():
            if isinstance(inner, (list, str)):
                self.dependent_names(node, {name: inner}, at)
            else:
                into = node.setdefault("dependentSchemas", {})
                steps = f"/dependentSchemas/{escape_token(name)}"
                self.below(node, inner, steps, f"{at}/{escape_token(name)}", into, name)

    # types

    def types(self, node: _Node, value: Any, at: str) -> None:
        names = value if isinstance(value, list) else [value]
        if any(isinstance(name, Mapping) and name for name in names):  # as draft 3 says a union
            branches = [name if isinstance(name, Mapping) else {"type": name} for name in names]
            self.kept.append(union := {"anyOf": branches})
            self.list_of_nodes(node, "allOf", [union], at)
            return
        if None in names and len(names) > 1:  # as YAML reads a type's name without quotes
            self.note(f"{at}/{names.index(None)}", "is read as the type 'null'")
            names = value = ["null" if name is None else name for name in names]
        if names and all(isinstance(name, str) and name in _OWN_TYPES for name in names):
            once = list(dict.fromkeys(names))
            node["type"] = once if isinstance(value, list) else value
            return
        fragments = [self.fragment(name, self.has_enum) for name in names]
        if not names or any(fragment is None for fragment in fragments):
            self.drop(node, at, f"names no type: {_brief(value)},")
            return
        for name, fragment in zip(names, fragments, strict=True):
            if isinstance(name, str) and name not in _OWN_TYPES:
                self.type_names[name] = _meaning(fragment)
        fragment = _union([f for f in fragments if f is not None])
        for keyword, said in fragment.items():
            if keyword == "anyOf":
                node.setdefault("allOf", []).append({"anyOf": said})
            else:
                node.setdefault(keyword, said)

    def fragment(self, name: Any, has_enum: Any) -> dict[str, Any] | None:
        # The schema that a type's name means, None if it means none.
        if not isinstance(name, str):
            return None
        name = name.strip()
        low = name.lower()
        if low in _ANY:
            return {}
        own = type_name(name)
        if own in _OWN_TYPES:
            return {"type": own, **({"minimum": 0} if low.startswith("uint") else {})}
        if low in _FORMATS:
            return {"type": "string", "format": _FORMATS[low]}
        if low in _OF_ENUM and has_enum:
            return {}
        if (union := _UNION.fullmatch(name)) is not None:
            return self.union_of(_split(union[1], ","), has_enum)
        if (optional := _OPTIONAL.fullmatch(name)) is not None:
            return self.union_of([optional[1] or optional[2], "null"], has_enum)
        alternatives = [part for part in re.split(r"\||/|,|\bor\b", name) if part.strip()]
        if len(alternatives) > 1 and not re.search(r"[\[<(]", name):
            return self.union_of(alternatives, has_enum)
        if "|" in name and len(_split(name, "|")) > 1:
            return self.union_of(_split(name, "|"), has_enum)
        if (items := _LIST.fullmatch(name)) is not None:
            inner = self.fragment(items[1] or items[2], False)
            return (
                None if inner is None else {"type": "array", **({"items": inner} if inner else {})}
            )
        if (members := _MAP.fullmatch(name)) is not None:
            inner = self.fragment(_split(members[1], ",")[-1], False)
            return {"type": "object", **({"additionalProperties": inner} if inner else {})}
        return None

    def union_of(self, names: list[str], has_enum: Any) -> dict[str, Any] | None:
        fragments = [self.fragment(name, has_enum) for name in names]
        known = [fragment for fragment in fragments if fragment is not None]
        return _union(known) if len(known) == len(fragments) else None

    # references

    def resolve(self, node: _Node, keyword: str, written: str) -> None:
        reference = node[keyword]
        target = self.target(node, reference)
        if keyword == "$dynamicRef" and isinstance(target, dict):
            own = target.get("$dynamicAnchor")
            alike = [n for n in self.nodes if own and n.get("$dynamicAnchor") == own]
            if len(alike) > 1:
                self._targets[id(node)] = target  # the library resolves it
                return
            del node["$dynamicRef"]
            if "$ref" in node:
                holder: _Node = {"$ref": "#"}
                self.nodes.append(holder)
                parts = node.setdefault("allOf", [])
                self.places[id(holder)] = f"{self.places[id(node)]}/allOf/{len(parts)}"
                self.resources[id(holder)] = self.resources[id(node)]
                parts.append(holder)
                node = holder
            node["$ref"] = reference
        if isinstance(target, bool):
            node.pop(keyword, None)
            if not target:
                node["not"] = {}
            return
        if target is None:
            node.pop(keyword, None)
            what = "leads out of the schema" if ":" in reference else "leads nowhere"
            self.drop(node, written, f"{what} ({_brief(reference)})", whole=True)
            return
        if target is not _KNOWN:
            self._targets[id(node)] = target

    def target(self, node: _Node, reference: str) -> Any:
        above = self.resources[id(node)]
        if reference.startswith("#") and not above:
            if reference == "#":
                return self.root
            if reference.startswith("#/"):
                missing: dict[str, Any] = {}
                found = node_at(self.source, reference)
                if found == missing and id(found) not in self.made:
                    return None
                return self.taken(found, reference, above)
        return self.looked_up(above, reference)

    def looked_up(self, above: tuple[_Node, ...], reference: str) -> Any:
        from referencing.jsonschema import DRAFT202012

        try:
            resource = DRAFT202012.create_resource(self.root)
            base = str(self.root.get("$id", ""))
            registry = specifications().with_resource(base, resource)
            resolver = registry.resolver(base)
            for node in above:
                if node is not self.root:
                    resolver = resolver.in_subresource(DRAFT202012.create_resource(node))
            found = resolver.lookup(reference).contents
        except Exception:  # whatever a reference can be that leads nowhere
            if re.match(r"#/", reference):
                found = node_at(self.source, reference)
                return self.taken(found, reference, above) if id(found) in self.made else None
            return None
        if isinstance(found, bool) or id(found) in self.places:
            return found
        if re.match(r"https?://json-schema\.org/", reference):
            return _KNOWN
        return self.taken(found, reference, above)

    def taken(self, found: Any, reference: str, above: tuple[_Node, ...]) -> Any:
        # The node of a place that may not have been one so far.
        found = unwrap_json_schema(found)
        if isinstance(found, bool):
            return found
        made = self.made.get(id(found))
        if made is None and not isinstance(found, (Mapping, list)):
            return None
        if made is None:
            definitions = self.root.setdefault("$defs", {})
            name = reference.removeprefix("#/").replace("/", ".")
            while name in definitions:
                self._names += 1
                name = f"{name}.{self._names}"
            definitions[name] = True
            place = f"/$defs/{escape_token(name)}"
            put = lambda node: definitions.__setitem__(name, node)  # noqa: E731
            self.todo.append((found, place, reference.removeprefix("#"), above, put))
            self.work()
            made = definitions[name]
        return made

    # circles, and depth in one place

    def cut_circles(self) -> None:
        while self.walk_in_place():
            pass

    def walk_in_place(self) -> bool:
        # Look at the nodes that judge one value together: cut the references that lead in a
        # circle, and what nests too deep. Returns True if the walk has to begin again.
        heights: dict[int, int] = {}
        open_: dict[int, int] = {}
        for start in self.nodes:
            if id(start) in heights:
                continue
            stack: list[tuple[_Node, bool, Iterator[tuple[_Node, bool]], list[int]]] = []
            stack.append((start, False, iter(self.in_place(start)), [0]))
            open_[id(start)] = 0
            while stack:
                node, _, inner, height = stack[-1]
                child, is_reference = next(inner, (None, False))
                if child is None:
                    stack.pop()
                    del open_[id(node)]
                    own = height[0]
                    if own >= _MOST_IN_PLACE:
                        self.empty(node)
                        own = 0
                    heights[id(node)] = own
                    if stack:
                        stack[-1][3][0] = max(stack[-1][3][0], own + 1)
                elif id(child) in heights:
                    height[0] = max(height[0], heights[id(child)] + 1)
                elif id(child) in open_:
                    if is_reference:
                        self.cut(node)
                        continue
                    # Reached by a reference further up: that one is cut.
                    on_circle = stack[open_[id(child)] + 1 :]
                    entry = next(i for i in reversed(range(len(on_circle))) if on_circle[i][1])
                    self.cut(stack[open_[id(child)] + entry][0])
                    return True
                else:
                    open_[id(child)] = len(stack)
                    stack.append((child, is_reference, iter(self.in_place(child)), [0]))
        return False

    def in_place(self, node: _Node) -> list[tuple[_Node, bool]]:
        inner = [(child, False) for child in _children(node, _IN_PLACE)]
        target = self._targets.get(id(node))
        if target is not None and "$ref" in node:
            inner.append((target, True))
        return inner

    def cut(self, node: _Node) -> None:
        node.pop("$ref", None)
        self._targets.pop(id(node), None)
        self.drop(node, f"{self.places[id(node)]}/$ref", "leads in a circle", whole=True)

    def empty(self, node: _Node) -> None:
        kept: _Node = {key: node[key] for key in ("$defs", "definitions") if key in node}
        node.clear()
        node.update(kept)
        self._targets.pop(id(node), None)
        self.drop(node, self.places[id(node)], "nests too deep", whole=True)

    # what must not refuse more because something was left out

    def weaken(self) -> None:
        if not self.lossy:
            return
        weak = self.spread(self.lossy, None)
        for node in self.nodes:
            if id(node) in weak:
                self.weaken_node(node, weak)
        blind = self.spread(self.blind, _IN_PLACE)
        for node in list(self.nodes):
            for keyword in ("unevaluatedItems", "unevaluatedProperties"):
                if keyword in node and id(node) in blind:
                    node[keyword] = {UNUSABLE: True}
                    self.nodes.append(node[keyword])

    def spread(self, nodes: set[int], keywords: tuple[str, ...] | None) -> set[int]:
        # The nodes, and those that ask one of them by these keywords, or by any.
        users: dict[int, list[_Node]] = {}
        for node in self.nodes:
            target = self._targets.get(id(node))
            for child in (*_children(node, keywords), *((target,) if target is not None else ())):
                users.setdefault(id(child), []).append(node)
        reached = set(nodes)
        todo = list(nodes)
        while todo:
            for user in users.get(todo.pop(), ()):
                if id(user) not in reached:
                    reached.add(id(user))
                    todo.append(id(user))
        return reached

    def weaken_node(self, node: _Node, weak: set[int]) -> None:
        if id(node.get("not")) in weak:
            del node["not"]
            node[UNUSABLE] = True
        if any(id(branch) in weak for branch in node.get("oneOf", ())):
            branches = {"anyOf": node.pop("oneOf")}
            if "anyOf" in node:
                node.setdefault("allOf", []).append(branches)
            else:
                node.update(branches)
        if id(node.get("contains")) in weak:
            node.pop("maxContains", None)
            if _ASSERTING.isdisjoint(node["contains"]):
                for keyword in ("contains", "minContains"):
                    node.pop(keyword, None)
                node[UNUSABLE] = True
        if id(node.get("if")) in weak:
            del node["if"]
            branches = {"anyOf": [node.pop("then", True), node.pop("else", True)]}
            node.setdefault("allOf", []).append(branches)
            self.lose(node, whole=True)


_KNOWN = object()  # a schema that the library brings along


class _Opened(dict[str, Any]):
    """The node of undeclared members, where they cannot be told from declared ones."""


def _children(node: _Node, keywords: tuple[str, ...] | None) -> Iterator[_Node]:
    for keyword in (*_NODE, "items"):
        inner = node.get(keyword)
        if isinstance(inner, dict) and (keywords is None or keyword in keywords):
            yield inner
    for keyword in _NODES:
        if keyword in node and (keywords is None or keyword in keywords):
            yield from (inner for inner in node[keyword] if isinstance(inner, dict))
    for keyword in _NODES_BY_NAME:
        if keyword in node and (keywords is None or keyword in keywords):
            yield from (inner for inner in node[keyword].values() if isinstance(inner, dict))


def _union(fragments: list[dict[str, Any]]) -> dict[str, Any]:
    if len(fragments) == 1:
        return fragments[0]
    if not all(fragments):
        return {}  # one of them admits anything
    if all(set(f) == {"type"} for f in fragments):
        names: list[str] = []
        for f in fragments:
            names += f["type"] if isinstance(f["type"], list) else [f["type"]]
        names = list(dict.fromkeys(names))
        return {"type": names if len(names) > 1 else names[0]}
    with_format = [f for f in fragments if "format" in f]
    if len(with_format) == 1 and all(set(f) <= {"type", "format"} for f in fragments):
        plain = [{"type": f["type"]} for f in fragments]
        return {**_union(plain), "format": with_format[0]["format"]}
    return {"anyOf": fragments}


def _meaning(fragment: Any) -> str:
    if not fragment:
        return "any value"
    names = fragment.get("type")
    if names is None:
        return "a union"
    words = " or ".join(names) if isinstance(names, list) else str(names)
    return f"{words} ({fragment['format']})" if "format" in fragment else words


def _split(text: str, by: str) -> list[str]:
    # The parts of a text between separators that stand in no brackets.
    parts, depth = [""], 0
    for char in text:
        depth += (char in "[<(") - (char in "]>)")
        if char == by and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _number(text: str) -> Any:
    text = text.strip()
    if not re.fullmatch(r"-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,15})?", text):
        return None
    return Num(text) if "." in text else int(text)


def _pattern_fault(pattern: Any) -> str:
    if not isinstance(pattern, str):
        return "is no pattern"
    try:
        compiled(pattern)
    except Exception as error:  # of the package, or of Python where it nests too deep
        return f"is no pattern that can be read ({_brief(error)})"
    return ""


def _brief(x: Any) -> str:
    text = x if isinstance(x, str) else str(x) if isinstance(x, Exception) else write_canonical(x)
    return text if len(text) <= 60 else text[:59] + "…"
