"""Schemas of forty tools, each with arguments that it takes. What it refuses is made from those."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]
S, N, I_, B = ({"type": name} for name in ("string", "number", "integer", "boolean"))


def obj(required: str = "", **members: Any) -> Schema:
    """A closed object of members, with its required names."""
    schema: Schema = {"type": "object", "properties": members}
    if required:
        schema["required"] = required.split()
    return {**schema, "additionalProperties": False}


def part(required: str, **members: Any) -> Schema:
    """An object that may have other members."""
    schema = obj(required, **members)
    del schema["additionalProperties"]
    return schema


def arr(items: Any, **rest: Any) -> Schema:
    return {"type": "array", "items": items, **rest}


def enum(*values: Any) -> Schema:
    return {"enum": list(values)}


def text(**rest: Any) -> Schema:
    return {"type": "string", **rest}


def num(kind: str = "integer", **rest: Any) -> Schema:
    return {"type": kind, **rest}


POINT = obj("lat lon", lat=num("number", minimum=-90, maximum=90), lon=N)
NODE = obj("name", name=S, parts=arr({"$ref": "#/$defs/Node"}))
PHONE = text(pattern=r"^\+\d{6,14}$")
DAY = text(pattern=r"^\d{4}-\d{2}-\d{2}$")
REF = {"$ref": "#/$defs/P"}

# fmt: off
TOOLS: list[tuple[Schema, list[dict[str, Any]]]] = [
    (obj("city", city=S, days=num(minimum=1, maximum=14)), [{"city": "Oslo"}, {"city": "Rome", "days": 3}]),
    (obj("query", query=text(minLength=1), limit=num(exclusiveMinimum=0)), [{"query": "tide", "limit": 5}]),
    (obj("to body", to=arr(text(pattern="@"), minItems=1), body=S, urgent=B), [{"to": ["a@b.c"], "body": "x", "urgent": True}]),
    (obj("a b", a=N, b=N, op=enum("add", "sub", "mul")), [{"a": 1.5, "b": 2, "op": "add"}]),
    (obj("at", at=POINT, zoom=num(minimum=0, maximum=20)), [{"at": {"lat": 1.5, "lon": 2}, "zoom": 4}]),
    (obj("path", path=arr(POINT, minItems=2)), [{"path": [{"lat": 1, "lon": 2}, {"lat": 3, "lon": 4}]}]),
    ({**obj("root", root={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}}, [{"root": {"name": "a", "parts": [{"name": "b"}]}}]),
    ({**obj("p", p=REF, q=REF), "$defs": {"P": text(minLength=2)}}, [{"p": "ab", "q": "cd"}]),
    (obj("value", value={"anyOf": [I_, text(maxLength=3)]}), [{"value": 5}, {"value": "abc"}]),
    (obj("value", value={"oneOf": [obj("n", n=I_), obj("s", s=S)]}), [{"value": {"n": 1}}, {"value": {"s": "x"}}]),
    (obj("id", id=text(pattern="^[a-f0-9]{8}$"), tags=arr(S, uniqueItems=True)), [{"id": "deadbeef", "tags": ["a", "b"]}]),
    (obj("phone", phone=PHONE, name=S), [{"phone": "+4712345678", "name": "Kari"}]),
    (obj("from to", **{"from": DAY, "to": DAY}), [{"from": "2024-01-01", "to": "2024-02-01"}]),
    (obj("sql", sql=S, params={"type": "object", "additionalProperties": {"type": ["string", "number"]}}), [{"sql": "x", "params": {"a": 1, "b": "c"}}]),
    (obj("env", env={"type": "object", "patternProperties": {"^[A-Z_]+$": S}, "additionalProperties": False}), [{"env": {"PATH": "/bin"}}]),
    (obj("matrix", matrix=arr(arr(N, minItems=2, maxItems=2))), [{"matrix": [[1, 2], [3, 4]]}]),
    (obj("pair", pair={"type": "array", "prefixItems": [S, I_], "items": False, "minItems": 2}), [{"pair": ["a", 1]}]),
    (obj("step", step=num("number", multipleOf=0.5)), [{"step": 1.5}]),
    (obj("kind", kind={"const": "berth"}, length=num("number", exclusiveMinimum=0)), [{"kind": "berth", "length": 12.5}]),
    ({**obj("kind", kind=enum("a", "b"), n=I_), "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["n"]}}, [{"kind": "b"}, {"kind": "a", "n": 1}]),
    ({**obj("", card=S, address=S), "dependentRequired": {"card": ["address"]}}, [{"card": "1", "address": "x"}, {"address": "y"}]),
    ({**obj("", card=S, cvc=text(pattern=r"^\d{3}$")), "dependentSchemas": {"card": {"required": ["cvc"]}}}, [{"card": "1", "cvc": "123"}]),
    (obj("name", name={"allOf": [text(minLength=2), text(maxLength=5)]}), [{"name": "abc"}]),
    (obj("word", word={"type": "string", "not": {"enum": ["root", "admin"]}}), [{"word": "kari"}]),
    (obj("flags", flags=arr(enum("r", "w", "x"), maxItems=3)), [{"flags": ["r", "x"]}]),
    (obj("user", user=obj("name age", name=S, age=num(minimum=0), mail=text(pattern="@"))), [{"user": {"name": "a", "age": 3, "mail": "a@b"}}]),
    (obj("items", items=arr(obj("sku qty", sku=S, qty=num(minimum=1)), minItems=1)), [{"items": [{"sku": "a", "qty": 2}]}]),
    (obj("note", note={"type": ["string", "null"]}), [{"note": None}, {"note": "x"}]),
    (obj("when", when={"anyOf": [DAY, {"type": "null"}]}), [{"when": None}, {"when": "2024-01-01"}]),
    ({"allOf": [part("a", a=I_), part("b", b=S)], "unevaluatedProperties": False}, [{"a": 1, "b": "x"}]),
    ({**obj("shape", shape={"oneOf": [{"$ref": "#/$defs/C"}, {"$ref": "#/$defs/R"}]}), "$defs": {"C": obj("r", r=N), "R": obj("w h", w=N, h=N)}}, [{"shape": {"r": 1}}, {"shape": {"w": 1, "h": 2}}]),
    (obj("scores", scores={"type": "object", "additionalProperties": num(minimum=0, maximum=10), "minProperties": 1}), [{"scores": {"a": 3}}]),
    (obj("bits", bits=arr(enum(0, 1), minItems=1, contains={"const": 1})), [{"bits": [0, 1]}]),
    (obj("keys", keys={"type": "object", "propertyNames": {"pattern": "^k"}, "additionalProperties": I_}), [{"keys": {"k1": 1}}]),
    (obj("deep", deep=obj("deep", deep=obj("deep", deep=obj("n", n=I_)))), [{"deep": {"deep": {"deep": {"n": 1}}}}]),
    (obj("page", page=num(minimum=1), size=enum(10, 20, 50), sort=arr(obj("by", by=S, desc=B))), [{"page": 1, "size": 20, "sort": [{"by": "a", "desc": False}]}]),
    (obj("cmd", cmd=arr(S, minItems=1), cwd=S, timeout=num("number", exclusiveMinimum=0, maximum=600)), [{"cmd": ["ls"], "timeout": 5}]),
    (obj("amount currency", amount=num("number", minimum=0.01), currency=text(pattern="^[A-Z]{3}$")), [{"amount": 1.25, "currency": "NOK"}]),
    (obj("rule", rule={"anyOf": [obj("and", **{"and": arr(S, minItems=1)}), obj("or", **{"or": arr(S)})]}), [{"rule": {"and": ["a"]}}, {"rule": {"or": []}}]),
    (obj("ship", ship=part("imo", imo=text(pattern=r"^\d{7}$"), crew=arr(obj("rank", rank=enum("mate", "cook"))))), [{"ship": {"imo": "1234567", "crew": [{"rank": "cook"}]}}]),
]
# fmt: on
WRONG: list[Any] = ["zzz", -7, 0.25, True, [], {}, None, {"x": 1}, ["zzz"]]


def variants(value: Any) -> Iterator[Any]:
    """Copies of a value with one place changed, left out, or one member more."""
    for path in paths_of(value):
        for wrong in WRONG:
            if path:
                changed = copy.deepcopy(value)
                at(changed, path[:-1])[path[-1]] = wrong
                yield changed
        if path and isinstance(path[-1], str):
            changed = copy.deepcopy(value)
            del at(changed, path[:-1])[path[-1]]
            yield changed
        if isinstance(at(value, path), dict):
            changed = copy.deepcopy(value)
            at(changed, path)["extra"] = 1
            yield changed


def paths_of(value: Any) -> Iterator[tuple[Any, ...]]:
    """The paths of all values in a value, its own first."""
    yield ()
    keys = value if isinstance(value, dict) else range(len(value)) if type(value) is list else ()
    for key in keys:
        inner = value[key]
        for path in paths_of(inner):
            yield (key, *path)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value
