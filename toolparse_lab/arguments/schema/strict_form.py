"""The form of a schema that a provider's strict mode takes, and arguments on their way into that
form and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...core.errors import NoStrictForm
from ...core.types import JsonSchema
from ...core.values import Value, escape_token, nodes, pointer_tokens, read_plain, write_canonical
from .conforms import Budget, OverBudget, TooDeep, conforms, is_member
from .kinds import is_type
from .sound import Sound, node_at, sound_schema
from .view import Root, View, view_of

# How it works. A strict mode decodes by the schema, and takes only a part of JSON Schema: every
# object is closed, and every property of it is required. One that may be left out is a union with
# null in its place, so that null comes to mean "left out". `strict_form` translates a schema, node
# by node, with three kinds of keywords: those that the mode knows are sent; those that only narrow
# a value further are left out and named in `omitted` (the answer is validated by the schema as it
# was); and those that say something the mode cannot be told are refused.
#
# Invariant: what is valid under a schema, and has no undeclared members, is valid under its strict
# form once `strict_arguments` has written its missing members as null, and `plain_arguments` takes
# just these away again. A schema for which that cannot hold has no strict form: where null means
# something of its own already, nobody could tell the two apart.
#
# Cost: linear in the schema, and a translation is kept for each schema's text.

# Keywords that are sent as they stand.
_SENT = (
    "title", "description", "enum", "const", "pattern", "format", "multipleOf", "minimum",
    "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems",
)  # fmt: skip
_WORDS = _SENT[:2]
# Keywords that narrow what the strict form already says, so that it says enough without them.
_NARROWING = (
    "minLength", "maxLength", "uniqueItems", "minProperties", "maxProperties", "propertyNames",
    "contains", "minContains", "maxContains",
)  # fmt: skip
# Keywords that say what the strict form has no words for.
_REFUSED = (
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
    "patternProperties", "prefixItems", "unevaluatedItems", "$dynamicRef", "$recursiveRef",
)  # fmt: skip
_OPEN_OBJECTS = ("additionalProperties", "unevaluatedProperties")
_UNIONS = ("anyOf", "oneOf", "allOf")
_OF_OBJECTS = ("properties", "required", *_OPEN_OBJECTS)
_ASSERTING = {*_SENT[2:], *_NARROWING, *_REFUSED, *_UNIONS, *_OF_OBJECTS, "items", "$ref"}
_DEFINITIONS = ("$defs", "definitions")
_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
)
_LIMITS = ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_NULL = {"type": "null"}
# From the narrower to the wider: whole numbers are integers.
_SCALARS = ("string", "integer", "number", "boolean", "null")


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A schema as a strict mode takes it."""

    schema_json: str
    omitted: tuple[str, ...] = ()

    @property
    def schema(self) -> Any:
        """The schema as a new object."""
        return read_plain(self.schema_json)


def strict_form(schema: JsonSchema) -> StrictForm:
    """Return a schema of arguments in the form that a strict mode takes.

    schema: a mapping, JSON text, bool or None. Raises NoStrictForm with the keyword that stands in
    the way and its place.
    """
    text = schema if isinstance(schema, str) else write_canonical(schema)
    return _strict_form(text)


@lru_cache(maxsize=1024)
def _strict_form(schema_json: str) -> StrictForm:
    translation = _Translation(sound_schema(schema_json))
    return StrictForm(write_canonical(translation.whole()), tuple(translation.omitted))


class _Translation:
    def __init__(self, sound: Sound) -> None:
        self.root = sound.schema
        self._faults = sound.faults
        self.omitted: list[str] = []
        self._views = Root(sound)
        self._definitions: dict[str, Any] = {}  # by reference, None while it is being translated

    def whole(self) -> dict[str, Any]:
        for place in self._faults:
            keyword = place.rpartition("/")[2]
            keyword = keyword if keyword in _ASSERTING else "type"
            raise NoStrictForm(keyword, place, "this part of the schema cannot be used")
        root = self.root if isinstance(self.root, Mapping) else {}
        place = ""
        if set(root) - {*_WORDS, *_DEFINITIONS} == {"$ref"}:
            # A model that holds itself is written as a reference to its own definition.
            place = str(root["$ref"]).removeprefix("#")
            root = self._target(root["$ref"], "")
        for keyword in _UNIONS:
            if keyword in root:
                raise NoStrictForm(keyword, "", "the arguments as a whole may not be a union")
        if _types_of(root) not in ([], ["object"]):
            raise NoStrictForm("type", "", "the arguments as a whole are one object")

        schema = self._node({"properties": {}, **root, "type": "object"}, place)
        for reference, definition in self._definitions.items():
            keyword, name = reference[2:].split("/")
            schema.setdefault(keyword, {})[next(iter(pointer_tokens(f"/{name}")))] = definition
        return schema

    def _node(self, node: Any, path: str) -> dict[str, Any]:
        if not isinstance(node, Mapping):
            raise NoStrictForm("type", path, f"{node!r} says nothing of a value")
        for keyword in _REFUSED:
            if keyword in node:
                raise NoStrictForm(keyword, f"{path}/{keyword}", "a strict mode has no such words")
        for keyword in ("$ref", *_UNIONS):
            if keyword in node:
                return self._union(node, keyword, path)

        types = _types_of(node)
        if not types:
            raise NoStrictForm("type", path, "the type of this value is not said")
        schema: dict[str, Any] = {"type": types[0] if len(types) == 1 else types}
        schema |= self._keywords(node, path)
        if "object" in types:
            schema |= self._members(node, path)
        if "array" in types:
            schema["items"] = self._items(node, path)
        return schema

    def _keywords(self, node: Mapping[str, Any], path: str) -> dict[str, Any]:
        keywords: dict[str, Any] = {}
        for keyword in (*_SENT, *_NARROWING):
            if keyword not in node:
                continue
            value = node[keyword]
            is_known = keyword in _SENT and (keyword not in _LIMITS or not isinstance(value, bool))
            if keyword == "format":
                is_known = value in _FORMATS
            elif keyword == "pattern":
                is_known = isinstance(value, str) and "(?" not in value
            if is_known:
                keywords[keyword] = value
            else:
                self.omitted.append(f"{path}/{keyword}")
        return keywords

    def _members(self, node: Mapping[str, Any], path: str) -> dict[str, Any]:
        for keyword in _OPEN_OBJECTS:
            if node.get(keyword, False) is not False:
                reason = "members of any name cannot be listed"
                raise NoStrictForm(keyword, f"{path}/{keyword}", reason)
        members, required = node.get("properties"), node.get("required", [])
        if not isinstance(members, Mapping):
            raise NoStrictForm("properties", path, "the members of this object are not listed")
        for name in required:
            if name not in members:
                reason = f"{name!r} is required and has no schema"
                raise NoStrictForm("required", f"{path}/required", reason)

        properties: dict[str, Any] = {}
        for name, member in members.items():
            place = f"{path}/properties/{escape_token(name)}"
            schema = self._node(member, place)
            properties[name] = schema if name in required else self._or_null(schema, member, place)
        closed = {"required": list(properties), "additionalProperties": False}
        return {"properties": properties, **closed}

    def _or_null(self, schema: dict[str, Any], member: Any, path: str) -> dict[str, Any]:
        # schema: the strict form of `member`.
        if not self._views.view(member).admits_null():
            return _with_null(schema)
        # Where the default is null, leaving out and null are one by the schema's own word.
        if "default" in member and member["default"] is None:
            return schema
        reason = "null would mean both null and that it is left out"
        raise NoStrictForm(
            "required", path, reason, hint='make it required, or give it "default": null'
        )

    def _items(self, node: Mapping[str, Any], path: str) -> dict[str, Any]:
        if isinstance(node.get("items"), list):
            raise NoStrictForm("items", f"{path}/items", "items of a place each cannot be listed")
        if "items" not in node:
            raise NoStrictForm("items", path, "the items of this array are not described")
        return self._node(node["items"], f"{path}/items")

    def _union(self, node: Mapping[str, Any], keyword: str, path: str) -> dict[str, Any]:
        beside = sorted((_ASSERTING - {keyword}).intersection(node))
        if beside:
            reason = f"{', '.join(beside)} beside it cannot be said in a strict form"
            raise NoStrictForm(keyword, f"{path}/{keyword}", reason)

        words = {name: node[name] for name in _WORDS if name in node}
        if keyword == "$ref":
            reference = self._reference(node["$ref"], f"{path}/$ref")
            # A reference stands alone in its object.
            return {"anyOf": [reference], **words} if words else reference

        place = f"{path}/{keyword}"
        branches = node[keyword]
        if not isinstance(branches, list) or not branches:
            raise NoStrictForm(keyword, place, "it is a list of schemas")
        if keyword == "allOf" and len(branches) > 1:
            raise NoStrictForm(keyword, place, "a strict mode has no such words")
        if keyword == "oneOf":
            self.omitted.append(place)  # that no two branches fit is not said any more
        self._check_alternatives(node, place)
        return {"anyOf": [self._node(b, f"{place}/{i}") for i, b in enumerate(branches)], **words}

    def _reference(self, reference: Any, path: str) -> dict[str, Any]:
        self._target(reference, path)
        if reference != "#" and reference not in self._definitions:
            self._definitions[reference] = None  # it may refer to itself
            place = reference.removeprefix("#")
            self._definitions[reference] = self._node(node_at(self.root, reference), place)
        return {"$ref": reference}

    def _target(self, reference: Any, path: str) -> Mapping[str, Any]:
        parts = reference[2:].split("/") if isinstance(reference, str) else []
        is_definition = len(parts) == 2 and parts[0] in _DEFINITIONS
        target = node_at(self.root, reference) if is_definition or reference == "#" else None
        if not isinstance(target, Mapping) or not target:
            reason = f"{reference!r} is none of the definitions of this schema"
            raise NoStrictForm("$ref", path, reason)
        return target

    def _check_alternatives(self, union: Mapping[str, Any], path: str) -> None:
        # Refuse objects of the same members if one of these is null in one branch and left out in
        # another: the branch could not be told from the members.
        objects = [view for view in self._views.view(union).alternatives if view.allows("object")]
        for i, view in enumerate(objects):
            for other in objects[:i]:
                if view.properties.keys() != other.properties.keys() or _differ(view, other):
                    continue
                for name, member in view.properties.items():
                    asks = is_null_asked(view, name), is_null_asked(other, name)
                    if any(asks) and (member.admits_null() or other.properties[name].admits_null()):
                        reason = f"null of {name!r} would mean null in one branch, and that it is"
                        raise NoStrictForm("anyOf", path, f"{reason} left out in another")


def _differ(view: View, other: View) -> bool:
    for name in view.required & other.required & view.properties.keys():
        own, values = view.properties[name].enum, other.properties[name].enum
        if own is None or values is None:
            continue
        if not any(is_member(value, values) for value in own):
            return True
    return False


def is_null_asked(view: View, name: str) -> bool:
    """Return True if null of a member says, in the strict form, that it is left out."""
    return name not in view.required and not view.properties[name].admits_null()


def _types_of(node: Mapping[str, Any]) -> list[str]:
    types = node.get("type")
    if isinstance(types, str):
        return [types]
    if isinstance(types, list):
        return types
    members = node["enum"] if isinstance(node.get("enum"), list) else []
    if "const" in node:
        members = [node["const"]]
    if members:
        own = {next((s for s in _SCALARS if is_type(member, s)), "") for member in members}
        return [name for name in _SCALARS if name in own]
    if "properties" in node:
        return ["object"]
    return ["array"] if "items" in node else []


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    types = _types_of(schema)
    if types and not {"enum", "const"}.intersection(schema) and set(types) <= set(_SCALARS):
        return {**schema, "type": [*types, "null"]}
    words: dict[str, Any] = {name: schema[name] for name in _WORDS if name in schema}
    inner = {name: value for name, value in schema.items() if name not in words}
    if set(inner) == {"anyOf"}:
        return {"anyOf": [*inner["anyOf"], _NULL], **words}
    return {"anyOf": [inner, _NULL], **words}


# arguments

# How it works. A value is walked beside the view of its schema, as it was before the translation.
# Under a union the branch is looked for whose members the object has: of the way there, those that
# it may have; of the way back, exactly those, because in the strict form all are required. Nothing
# that fits no branch is changed.
#
# Cost: linear in the value; under a union times its branches. The budget of all questions about
# values ends what branches more often, and such a value stays as it is.


@dataclass(frozen=True, slots=True)
class DroppedNulls:
    """One object of arguments of which nulls were dropped."""

    path: str
    before: dict[str, Value]
    after: dict[str, Value]


def strict_arguments(arguments: Value, schema: JsonSchema) -> Value:
    """Return arguments as a strict mode writes them: what is left out is null."""
    return _walked(arguments, schema, restoring=False)[0]


def plain_arguments(arguments: Value, schema: JsonSchema) -> tuple[Value, tuple[DroppedNulls, ...]]:
    """Return arguments without the nulls that only the strict form asked for."""
    if all(node is not None for node in nodes(arguments)):
        return arguments, ()
    return _walked(arguments, schema, restoring=True)


def _walked(
    arguments: Value, schema: JsonSchema, *, restoring: bool
) -> tuple[Value, tuple[DroppedNulls, ...]]:
    walk = _Walk(restoring, Budget(arguments))
    try:
        return walk.value(arguments, view_of(schema), ""), tuple(walk.changes)
    except (TooDeep, OverBudget, RecursionError):
        return arguments, ()


@dataclass(slots=True)
class _Walk:
    restoring: bool
    budget: Budget
    changes: list[DroppedNulls] = field(default_factory=list)

    def value(self, value: Value, view: View, path: str) -> Value:
        self.budget.spend()
        if not isinstance(value, (dict, list)):
            return value
        own = self._branch(value, view) if view.union else view
        if own is None:
            return value
        if isinstance(value, list):
            return self._items(value, own, path)
        return self._members(value, own, path)

    def _items(self, items: list[Value], view: View, path: str) -> Value:
        values = [
            self.value(item, inner, f"{path}/{i}") if (inner := view.item(i)) else item
            for i, item in enumerate(items)
        ]
        return values if any(a is not b for a, b in zip(values, items, strict=True)) else items

    def _members(self, value: dict[str, Value], view: View, path: str) -> Value:
        own = value
        if self.restoring:
            nulls = {
                name
                for name, member in value.items()
                if member is None and name in view.properties and is_null_asked(view, name)
            }
            if nulls:
                own = {k: v for k, v in value.items() if k not in nulls}
        elif missing := [name for name in view.properties if name not in value]:
            own = {**value, **dict.fromkeys(missing)}
        if own is not value:
            self.changes.append(DroppedNulls(path, value, own))
        members = {
            name: self.value(member, view.properties[name], f"{path}/{escape_token(name)}")
            if name in view.properties
            else member
            for name, member in own.items()
        }
        return members if any(members[name] is not own[name] for name in own) else own

    def _branch(self, value: Value, view: View) -> View | None:
        kind = "object" if isinstance(value, dict) else "array"
        branches = [branch for branch in view.alternatives if branch.allows(kind)]
        if len(branches) == 1:
            return branches[0]
        for branch in branches:
            self.budget.spend()
            if isinstance(value, dict):
                names, declared = value.keys(), branch.properties.keys()
                may_be = (
                    names == declared if self.restoring else branch.required <= names <= declared
                )
                if not may_be:
                    continue
            # Valid is the value as it was before the nulls, or will be without them.
            own = value
            if self.restoring:
                own = _Walk(True, self.budget).value(value, branch, "")
            if conforms(branch, own, self.budget):
                return branch
        return None
