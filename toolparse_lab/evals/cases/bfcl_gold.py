"""The leaderboard's own notation: its type words as JSON Schema, its lists of right values as
targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from .target import is_wish

Strings: TypeAlias = Literal["exact", "bfcl"]

_TYPES: Mapping[str, str | None] = {
    **dict.fromkeys(("string", "String", "char"), "string"),
    **dict.fromkeys(("integer", "int", "long", "short", "byte", "Bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "Boolean", "bool"), "boolean"),
    **dict.fromkeys(
        ("array", "Array", "ArrayList", "list", "tuple", "Queue", "Stack", "Set"), "array"
    ),
    **dict.fromkeys(("object", "dict", "HashMap", "Hashtable"), "object"),
    "null": "null",
    **dict.fromkeys(("any", "Any", ""), None),
}
"""Type word -> JSON Schema type; None says nothing about the type."""


def schema_of(parameters: Any) -> Any:
    """Return a function's parameters as JSON Schema.

    parameters: a schema in the leaderboard's own type words, at any depth. Anything that is not an
        object comes back as it is.

    Raises KeyError with a type word that is unknown.

    >>> schema_of({"type": "dict", "properties": {"x": {"type": "tuple", "items": {}}}})
    {'type': 'object', 'properties': {'x': {'type': 'array', 'items': {}}}}
    """
    if not isinstance(parameters, Mapping):
        return parameters

    schema: dict[str, Any] = {}
    for key, value in parameters.items():
        # A list of types is JSON Schema already, and stays as it is.
        if key == "type" and isinstance(value, str):
            word = _TYPES[value]
            if word is not None:
                schema["type"] = word
        elif key == "properties" and isinstance(value, Mapping):
            schema[key] = {name: schema_of(inner) for name, inner in value.items()}
        else:
            schema[key] = schema_of(value) if key in ("items", "additionalProperties") else value
    return schema


def with_language(schema: Any, parameters: Any, language: str, truth: list[Any]) -> Any:
    """Return a function's schema with the changes that Java or JavaScript make to it.

    Each parameter's own type word is told in its description, since `HashMap` and `long` are no
    JSON types. If a right value is the name of a variable, a text is a legal value, too.

    schema: as `schema_of` made it of `parameters`. truth: the right calls of the entry.

    >>> with_language({"properties": {"m": {"type": "object"}}},
    ...     {"properties": {"m": {"type": "HashMap"}}}, "Java", [{"f": {"m": ["docs"]}}])
    {'properties': {'m': {'type': ['object', 'string'], 'description': '(Java type HashMap)'}}}
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return schema

    right: dict[str, list[Any]] = {}  # by argument, over all right calls
    for call in truth:
        for arguments in call.values():
            for key, values in arguments.items():
                right.setdefault(key, []).extend(values if isinstance(values, list) else [])
    typed = {}
    for key, inner in properties.items():
        typed[key] = inner
        if not isinstance(inner, Mapping):
            continue
        typed[key] = described = dict(inner)
        word = parameters["properties"][key].get("type")
        is_named = any(isinstance(value, str) and value for value in right.get(key, ()))
        if is_named and isinstance(described.get("type"), str) and described["type"] != "string":
            described["type"] = [described["type"], "string"]
        if isinstance(word, str):
            words = f"({language} type {word})"
            described["description"] = f"{described.get('description', '')} {words}".strip()
    return {**schema, "properties": typed}


def wanted_call(
    name: str, arguments: Mapping[str, Any], strings: Strings = "exact"
) -> dict[str, Any]:
    """Return a call of the right answer as a call of a target.

    arguments: argument -> list of right values. An empty text in it means that the argument may be
        absent.
    strings: ``exact``, or ``bfcl`` to compare texts as the leaderboard does.

    >>> wanted_call("f", {"city": ["Oslo", "Oslo, Norway"], "days": ["", 1]})["arguments"]
    {'city': {'$any': ['Oslo', 'Oslo, Norway']}, 'days': {'$optional': True, '$any': [1]}}
    """
    return {
        "name": name,
        "arguments": {key: _wish(values, strings) for key, values in arguments.items()},
    }


def _wish(alternatives: Any, strings: Strings) -> Any:
    # One entry of the data set has its only value without a list around it.
    if not isinstance(alternatives, list):
        return _scalar(alternatives, strings)
    if not alternatives:
        # Written for a list that stays empty; the leaderboard's own check accepts no value at all.
        return {"$any": [[]]}
    values = [alternative for alternative in alternatives if alternative != ""]
    optional = {"$optional": True} if len(values) < len(alternatives) else {}
    if optional:
        # An empty text says that the argument may be left out. It is a value as well where it is
        # the only one, and where the leaderboard would take it: among texts alone.
        if not values or (strings == "bfcl" and all(isinstance(value, str) for value in values)):
            values.insert(0, "")
        elif strings == "bfcl" and all(isinstance(value, list) for value in values):
            # Its check goes through an empty text as through a list, which is an empty one.
            values.insert(0, [])
    return {**optional, "$any": [_value(value, strings) for value in values]}


def _value(x: Any, strings: Strings) -> Any:
    # Inside an object, and in objects of a list, every member has its own list of alternatives. A
    # list inside a list holds plain values, even where these are objects.
    if isinstance(x, Mapping):
        return _plain({key: _wish(values, strings) for key, values in x.items()})
    if isinstance(x, list):
        return [(_value if isinstance(v, Mapping) else _scalar)(v, strings) for v in x]
    return _scalar(x, strings)


def _scalar(x: Any, strings: Strings) -> Any:
    # A right value that has no alternatives inside.
    if isinstance(x, str) and strings == "bfcl":
        return {"$match": "bfcl", "$value": x}
    if isinstance(x, list):
        return [_scalar(v, strings) for v in x]
    if isinstance(x, Mapping):
        return _plain({k: _scalar(v, strings) for k, v in x.items()})
    return x


def _plain(x: dict[str, Any]) -> dict[str, Any]:
    # An object that is read as itself, even where its keys look like a wish.
    return {"$value": x} if is_wish(x) else x


def doubts(truth: list[Any], schemas: Mapping[str, Any]) -> list[str]:
    """Return sentences on what in a right answer contradicts the functions it is for.

    truth: calls with their alternatives, ``[{name: {argument: […]}}]``.
    schemas: the JSON Schema of each function's parameters, by its name.

    >>> doubts([{"f": {"x": []}}], {"f": {"properties": {"x": {}}}})
    ['no value is right for x of f']
    """
    sentences: list[str] = []
    for call in truth:
        for name, arguments in call.items():
            if name not in schemas:
                sentences.append(f"there is no function {name}")
                continue
            schema = schemas[name] if isinstance(schemas[name], Mapping) else {}
            parameters = schema.get("properties") or {}
            required = schema.get("required") or ()
            sentences += [f"{name} has no parameter {k}" for k in arguments if k not in parameters]
            sentences += [f"{name} requires {k}" for k in required if k not in arguments]
            empty = [key for key, values in arguments.items() if values == []]
            sentences += [f"no value is right for {key} of {name}" for key in empty]
    return sentences
