"""A tool behind HTTP, for tests: it checks its arguments and refuses them in the dialect of a
validator that is named in the path (`/go`, `/pydantic`, `/jsonschema`, `/fastapi`), or with the
status that is named there (`/status/503`)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import jsonschema
import pydantic

from tests.replay_server import Answer, Asked, ReplayServer
from tests.tools import object_schema

SCHEMA = object_schema(required=["lat"], lat="number", days="integer", unit={"enum": ["C", "F"]})
TOOL = {"name": "weather", "parameters": SCHEMA}
_GO_KINDS = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    dict: "object",
    list: "array",
}


class _Weather(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    lat: float
    days: int = 1
    unit: pydantic.constr(pattern="^[CF]$") = "C"  # type: ignore[valid-type]  # a type of its own


def _go(arguments: Any) -> str | None:
    for name, kinds, kind in (("lat", (int, float), "float64"), ("days", (int,), "int")):
        value = arguments.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, kinds):
            got = _GO_KINDS[type(value)]
            return f"json: cannot unmarshal {got} into Go struct field WeatherRequest.{name} of type {kind}"
    unit = arguments.get("unit", "C")
    return None if unit in ("C", "F") else f"invalid value for unit: {unit}"


def _pydantic(arguments: Any, wrap: bool) -> str | None:
    try:
        _Weather(**arguments)
    except pydantic.ValidationError as e:
        rows = [
            {"type": r["type"], "loc": [*(["body"] if wrap else []), *r["loc"]], "msg": r["msg"]}
            for r in e.errors()
        ]
        return json.dumps({"detail": rows} if wrap else rows)
    return None


def _jsonschema(arguments: Any) -> str | None:
    try:
        jsonschema.validate(arguments, SCHEMA)
    except jsonschema.ValidationError as e:
        return str(e)
    return None


class ToolServer(ReplayServer):
    """`with ToolServer() as server`: `server.url` ends without a slash; `bodies` came in."""

    @property
    def bodies(self) -> list[Any]:
        return [asked.json for asked in self.asked]

    def reply(self, asked: Asked) -> Answer:
        arguments = asked.json
        dialect, _, rest = asked.path.lstrip("/").partition("/")
        if dialect == "status":
            status, _, body = rest.partition("/")
            return _said(int(status), unquote(body))
        error = {
            "go": lambda: _go(arguments),
            "pydantic": lambda: _pydantic(arguments, wrap=False),
            "fastapi": lambda: _pydantic(arguments, wrap=True),
            "jsonschema": lambda: _jsonschema(arguments),
        }[dialect]()
        if error is not None:
            return _said(422 if dialect == "fastapi" else 400, error)
        return _said(200, json.dumps({"got": arguments}))


def _said(status: int, body: str) -> Answer:
    return Answer([body.encode()], status, {})
