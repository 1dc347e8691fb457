"""The leaderboard's own notation: its type words as JSON Schema, its lists of right values as targets."""

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
    **dict.fromkeys(("array", "Array", "ArrayList", "list", "tuple", "Queue", "Stack", "Set"), "array"),
    **dict.fromkeys(("object", "dict", "HashMap", "Hashtable"), "object"),
    "null": "null",
    **dict.fromkeys(("any", "Any", ""), None),
}
"""Type word -> JSON Schema type; None says nothing about the type."""


def schema_of(parameters: Any) -> Any:
    """A function's parameters as JSON Schema; raises KeyError with a type word that is not known.

    >>> schema_of({"type": "dict", "properties": {"x": {"type": "tuple", "items": {"type": "float"}}}})
    {'type': 'object', 'properties': {'x': {'type': 'array', 'items': {'type': 'number'}}}}
    """
    if not isinstance(parameters, Mapping):
        return parameters
    out: dict[str, Any] = {}
    for key, value in parameters.items():
        if key == "type" and isinstance(value, str):
            if (word := _TYPES[value]) is not None:
                out["type"] = word
        elif key == "properties" and isinstance(value, Mapping):
            out[key] = {name: schema_of(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = schema_of(value)
        else:
            out[key] = value
    return out


def wanted_call(name: str, arguments: Mapping[str, Any], strings: Strings = "exact") -> dict[str, Any]:
    """A call of the right answer as a call of a target.

    >>> wanted_call("f", {"city": ["Oslo", "Oslo, Norway"], "days": ["", 1]})["arguments"]
    {'city': {'$any': ['Oslo', 'Oslo, Norway']}, 'days': {'$optional': True, '$any': [1]}}
    """
    return {"name": name, "arguments": {key: _wish(values, strings) for key, values in arguments.items()}}


def _wish(alternatives: Any, strings: Strings) -> Any:
    if not isinstance(alternatives, list):
        return _scalar(alternatives, strings)  # one entry has its value bare
    if not alternatives:
        # Written for a list that stays empty; the leaderboard's own check accepts no value at all.
        return {"$any": [[]]}
    optional = "" in alternatives
    kept = [a for a in alternatives if a != ""]
    texts = [a for a in kept if isinstance(a, str)]
    if not kept or (optional and strings == "bfcl" and len(texts) == len(kept)):
        kept.insert(0, "")
    values = [_value(a, strings) for a in kept]
    return {"$optional": True, "$any": values} if optional else {"$any": values}


def _value(x: Any, strings: Strings) -> Any:
    """One right value: inside an object, and in objects of a list, every member has its own alternatives."""
    if isinstance(x, Mapping):
        return _plain({k: _wish(v, strings) for k, v in x.items()})
    if isinstance(x, list):
        return [_value(v, strings) if isinstance(v, Mapping) else _scalar(v, strings) for v in x]
    return _scalar(x, strings)


def _scalar(x: Any, strings: Strings) -> Any:
    if isinstance(x, str) and strings == "bfcl":
        return {"$match": "bfcl", "$value": x}
    if isinstance(x, list):
        return [_scalar(v, strings) for v in x]
    if isinstance(x, Mapping):
        return _plain({k: _scalar(v, strings) for k, v in x.items()})
    return x


def _plain(x: dict[str, Any]) -> dict[str, Any]:
    """An object that is itself, even where its keys look like a wish."""
    return {"$value": x} if is_wish(x) else x


def doubts(truth: list[Any], schemas: Mapping[str, Any]) -> list[str]:
    """Where a right answer contradicts the functions it is for."""
    found: list[str] = []
    for call in truth:
        for name, arguments in call.items():
            if name not in schemas:
                found.append(f"there is no function {name}")
                continue
            schema = schemas[name] if isinstance(schemas[name], Mapping) else {}
            known = schema.get("properties") or {}
            found += [f"{name} has no parameter {key}" for key in arguments if key not in known]
            found += [f"{name} requires {key}" for key in schema.get("required") or () if key not in arguments]
            found += [f"no value is right for {key} of {name}" for key, values in arguments.items() if values == []]
    return found
