"""The short ways of validation and coercion, for plain schemas, of which our own view knows all.

A schema is plain if it has no other keywords than those `conforms` looks at, annotations, and
bounds of its members. A value that plainly conforms to one never reaches the validator library.
Raw texts under an object of plain scalars are read in one pass (`read_texts`): formats of tags give
nothing but texts, and most tools take nothing but scalars.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from json.encoder import encode_basestring
from typing import Any, NamedTuple, TypeAlias

from ...core.types import Policy
from ...core.values import Num, Value, escape_surrogates, escape_token, read_strict, write_canonical
from ..rjson.strict import read_if_strict
from .conforms import OverBudget, TooDeep, conforms
from .kinds import LEAVES, is_type
from .scalars import (
    SPACE,
    TEXT_READERS,
    Record,
    from_raw_text,
    holds_bare_null,
    holds_typed_text,
)
from .sound import node_at, sound_schema
from .view import View, view_of

# How it works. The keywords of every node are gone through once a schema, and the answer is cached
# by its text. What is left for each value is one pass of `conforms` and a comparison a bound. The
# short way may only ever say "this value is right": whatever it is not sure of is asked of the
# library, which also has the words for what is wrong.

_CHANGES_NOTHING: tuple[Policy, ...] = ("none", "safe")  # they leave whatever conforms as it is
# The keywords that never make a value wrong.
_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "$schema", "$comment", "deprecated", "readOnly",
     "writeOnly", "format")
)  # fmt: skip
_DEFINITIONS = frozenset(("$defs", "definitions"))
# The keywords of a plain node -> the types of their values, and the nodes in these. Tuples of
# draft 7 and other odd values are left to the library.
_PLAIN: Mapping[str, tuple[Any, Callable[[Any], Iterable[Any]]]] = {
    **dict.fromkeys((*_ANNOTATIONS, "type", "const"), (object, lambda value: ())),
    **dict.fromkeys(("required", "enum"), (list, lambda value: ())),
    **dict.fromkeys((*_DEFINITIONS, "properties"), (dict, dict.values)),
    **dict.fromkeys(("prefixItems", "anyOf"), (list, iter)),
    "items": (dict, lambda node: (node,)),
    "additionalProperties": ((dict, bool), lambda node: (node,)),
}


def fits(value: Value, schema_json: str, policy: Policy = "safe", raw_text: bool = False) -> bool:
    """Return True if a value plainly conforms to a plain schema.

    Then the policy changes nothing in it, and `validate` finds no problem. False says nothing.
    raw_text: the value was written as raw text, see `coerce`, and a text that fits may be more.
    """
    if raw_text and holds_bare_null(value):
        return False

    plain = _plain_schema(schema_json)
    if plain is None:
        return False

    view, bounds = plain
    if raw_text and holds_typed_text(value, view):
        return False
    try:
        # These two policies are asked about for nearly every call, and leave whatever conforms.
        if policy in _CHANGES_NOTHING:
            stays = conforms(view, value)
        else:
            # `middleware` reads text by the schema even where text is legal, so under it only plain
            # scalars are sure to stay. Of the others nothing is known.
            stays = policy == "middleware" and type(value) is dict and view.box is dict
            stays = stays and len(_right_leaves(value, view)) == len(value)
            stays = stays and view.required <= value.keys()
        if not stays:
            return False
    except (OverBudget, TooDeep):
        return False

    return not bounds or _within(value, bounds)


@lru_cache(maxsize=2048)
def parameter_names(schema_json: str) -> tuple[frozenset[str], bool] | None:
    """Return the arguments that a tool has, and whether its schema says that there are no others.

    None for a schema that allows others, or lists no arguments at all.
    """
    try:
        names: set[str] = set()
        lists_any = False
        root = sound_schema(schema_json).schema
        todo, visited = [root], set[int]()
        while todo:
            node = todo.pop()
            if not isinstance(node, dict) or id(node) in visited:
                continue
            visited.add(id(node))
            told = _TELLS_OF_OTHERS.intersection(node)
            if told == {"additionalProperties"} and node["additionalProperties"] is False:
                own = node.get("properties")
                return frozenset(own if isinstance(own, dict) else ()), True
            if told:
                return None
            if isinstance(own := node.get("properties"), dict):
                lists_any = True
                names.update(own)
            names.update(node.get("required", ()))
            if isinstance(ref := node.get("$ref"), str):
                todo.append(node_at(root, ref))
            todo += [node[k] for k in ("if", "then", "else") if k in node]
            todo += [inner for k in ("allOf", "anyOf", "oneOf") for inner in node.get(k, ())]
            todo += node.get("dependentSchemas", {}).values()
    except Exception:  # of all the ways in which a schema can be broken
        return None
    return (frozenset(names), False) if lists_any else None


def takes_arguments(schema_json: str) -> bool:
    """Return False for the schema of a tool that says of no argument that it has it."""
    names = parameter_names(schema_json)
    if names is not None:
        return bool(names[0])
    schema = read_strict(schema_json)
    return not isinstance(schema, dict) or not _SAYS_NOTHING.issuperset(schema)


_SAYS_NOTHING = frozenset(("type", "title", "description", "$schema"))
_TELLS_OF_OTHERS = frozenset(
    ("$dynamicRef", "$unusable", "additionalProperties", "patternProperties", "propertyNames",
     "unevaluatedProperties")
)  # fmt: skip
_NAMES = frozenset(("arguments", "parameters", "properties", "input", "args", "kwargs"))


def may_be_wrapped(value: object) -> bool:
    """Return True if arguments have one member, with a name for arguments."""
    return isinstance(value, dict) and len(value) == 1 and not _NAMES.isdisjoint(value)


def plain_members(value: Value, schema_json: str) -> frozenset[str]:
    """Return the members of an object that plainly are right: the library need not be asked.

    A member with bounds is left to the library, which has the words for a value out of bounds.
    """
    plain = _plain_schema(schema_json)
    if plain is None or '"$ref"' in schema_json:
        return frozenset()  # a reference may lead to another member's schema

    view, bounds = plain
    if type(value) is not dict or view.box is not dict:
        return frozenset()

    return frozenset(_right_leaves(value, view)).difference(name for name, _ in bounds)


def _right_leaves(value: dict[str, Value], view: View) -> list[str]:
    # The members that are scalars, each plainly of its own type.
    leaves = view.leaves
    return [name for name, member in value.items() if type(member) in leaves.get(name, ())]


@lru_cache(maxsize=2048)
def _plain_schema(schema_json: str) -> tuple[View, _Bounds] | None:
    # The view of the schema and the bounds of its members, None for a schema that is not plain.
    try:
        return _plain_or_raise(schema_json)
    except Exception:  # of all the ways in which a schema can be broken; looked at once a schema
        return None


def _plain_or_raise(schema_json: str) -> tuple[View, _Bounds] | None:
    sound = sound_schema(schema_json)
    if not sound.is_plainly_written:
        return None  # each of its calls gets the notes
    schema, bounds = _split_bounds(sound.schema)
    stack: list[Any] = [schema]
    visited: set[int] = set()

    while stack:
        node = stack.pop()
        if isinstance(node, bool) or id(node) in visited:
            continue

        # By identity, so that a definition that refers to itself is gone through once.
        visited.add(id(node))
        if not isinstance(node, dict):
            return None
        if "$ref" in node:
            # What a reference leads to must be plain as well. If it is the whole schema,
            # definitions may be next to it.
            beside = node.keys() - _ANNOTATIONS - {"$ref"}
            if beside - (_DEFINITIONS if node is schema else frozenset()):
                return None
            target = node_at(schema, node["$ref"]) if isinstance(node["$ref"], str) else None
            if not isinstance(target, dict) or not target or "$ref" in target:
                return None
            stack.append(target)
            continue
        for keyword, value in node.items():
            types, nodes_in = _PLAIN.get(keyword, ((), iter))
            if not isinstance(value, types):
                return None
            stack.extend(nodes_in(value))

    return view_of(schema_json), bounds


# bounds

# The comparison that must hold, what is compared, the bound.
_Check: TypeAlias = tuple[Callable[[Any, Any], bool], str, Any]
# (member, its checks), in the schema's order.
_Bounds: TypeAlias = tuple[tuple[str, tuple[_Check, ...]], ...]

# keyword -> the comparison that must hold, and what is compared: the number itself, or a length
_KEYWORDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "number"),
    "maximum": (operator.le, "number"),
    "exclusiveMinimum": (operator.gt, "number"),
    "exclusiveMaximum": (operator.lt, "number"),
    "minLength": (operator.ge, "string"),
    "maxLength": (operator.le, "string"),
    "minItems": (operator.ge, "array"),
    "maxItems": (operator.le, "array"),
}


def _split_bounds(schema: Any) -> tuple[Any, _Bounds]:
    # The schema without the bounds of its members, and those bounds. A bound that is not a number
    # stays where it is, for the library to complain of. Nodes with a reference stay whole: the node
    # of the reference may have bounds of its own.
    members = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(members, dict) or "$ref" in schema:
        return schema, ()

    bounds: list[tuple[str, tuple[_Check, ...]]] = []
    unbounded: dict[str, Any] = {}
    for name, node in members.items():
        limits: dict[str, Any] = {}
        if isinstance(node, dict) and "$ref" not in node:
            limits = {k: v for k, v in node.items() if k in _KEYWORDS and is_type(v, "number")}
        if limits:
            bounds.append((name, tuple((*_KEYWORDS[k], limit) for k, limit in limits.items())))
            node = {k: v for k, v in node.items() if k not in limits}
        unbounded[name] = node
    return ({**schema, "properties": unbounded} if bounds else schema), tuple(bounds)


def _within(value: Value, bounds: _Bounds) -> bool:
    # Wrong types pass: `type` reports them. Lengths count code points, as JSON Schema does.
    if not isinstance(value, dict):
        return True
    for name, checks in bounds:
        if name in value:
            member = value[name]
            for holds, kind, bound in checks:
                measured = is_type(member, kind)
                if measured and not holds(member if kind == "number" else len(member), bound):
                    return False
    return True


# raw texts

# How it works. What the members are is found out once a schema. The short way may only ever say
# what `coerce` under `safe` and `validate` would say: at the first text that is not plainly of its
# member's type it gives up, and they are asked. Each value is written as JSON on the way, since a
# second pass for that would take as long as the reading.

_Reader: TypeAlias = Callable[[Record, str, str], Value]
_READ_AS = ("integer", "number", "boolean")
_SURE = (dict, list, *dict.fromkeys(kind for kinds in LEAVES.values() for kind in kinds))
_UNSURE: Any = object()
_MAX_DEPTH = 200  # of JSON in a text


class _Member(NamedTuple):
    # reader: None for a text, which stays as it is. key: its name in JSON, with a comma before it
    # and the colon.
    reader: _Reader | None
    classes: tuple[type, ...]
    path: str
    key: str


class _Members(NamedTuple):
    by_name: dict[str, _Member]
    required: frozenset[str]
    bounds: _Bounds


def read_texts(texts: Iterable[tuple[str, Value]], schema_json: str, record: Record) -> str | None:
    """Return raw texts read as a schema wants them, as canonical JSON.

    None where `coerce` has to be asked. The result is that of the policy `safe` for raw text, and
    is valid. texts: the arguments with their names.
    """
    members = _members_of(schema_json)
    if members is None:
        return None

    by_name, required, bounds = members
    values: dict[str, Value] = {}
    parts: list[str] = []
    for name, text in texts:
        member = by_name.get(name)
        if member is None or type(text) is not str:
            return None
        reader, classes, path, key = member
        if reader is None:
            values[name] = text
            parts.append(key)
            parts.append(encode_basestring(text))
            continue
        values[name] = value = reader(record, text, path)
        kind = type(value)
        if kind not in classes:
            return None
        # As `write_canonical`, which would be a call more for every number.
        parts.append(key)
        if kind is Num:
            parts.append(value.text)
        elif kind is int:
            parts.append(f"{value}")
        elif kind is bool:
            parts.append("true" if value else "false")
        else:
            parts.append(write_canonical(value))

    # A name that is there twice is not for this way.
    if 2 * len(values) < len(parts) or not required <= values.keys():
        return None
    if bounds and not _within(values, bounds):
        return None
    if not parts:
        return "{}"
    # Joined once, since a text may be long.
    parts[0] = "{" + parts[0][1:]
    parts.append("}")
    return escape_surrogates("".join(parts))


def _read_by_view(record: Record, text: str, path: str, view: View) -> Value:
    # What is no scalar: a container that is strict JSON, null or another type beside text, or the
    # text as it is, each only if it conforms. Another object, of no type, where that is not sure.
    value = from_raw_text(record, text, path, view)
    if value is text and view.box and not view.union:
        values = read_if_strict(text.strip(SPACE), _MAX_DEPTH) or ()
        if len(values) != 1 or type(values[0]) is not view.box:
            return _UNSURE
        value = record.note("coerce.json-from-string", path, text, values[0])
    try:
        return value if conforms(view, value) else _UNSURE
    except (OverBudget, TooDeep):
        return _UNSURE


@lru_cache(maxsize=2048)
def _members_of(schema_json: str) -> _Members | None:
    plain = _plain_schema(schema_json)
    if plain is None:
        return None
    view, bounds = plain
    if view.box is not dict:
        return None

    by_name: dict[str, _Member] = {}
    for name, child in view.properties.items():
        leaf = child.leaf
        key = f",{write_canonical(name)}:"
        if leaf == "string":
            by_name[name] = _Member(None, LEAVES[leaf], "", key)
        elif leaf in _READ_AS:
            path = "/" + escape_token(name)
            by_name[name] = _Member(TEXT_READERS[leaf], LEAVES[leaf], path, key)
        elif name not in _NAMES or not child.admits_string():  # else it may be left as it is
            path = "/" + escape_token(name)
            by_name[name] = _Member(partial(_read_by_view, view=child), _SURE, path, key)
    return _Members(by_name, frozenset(view.required), bounds)
