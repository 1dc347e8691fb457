"""A tool behind HTTP, for tests: it checks its arguments and refuses them in the dialect of a
validator that is named in the path (`/go`, `/pydantic`, `/jsonschema`, `/fastapi`), or with the
status that is named there (`/status/503`)."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import unquote

import jsonschema
import pydantic

SCHEMA = {
    "type": "object",
    "properties": {
        "lat": {"type": "number"},
        "days": {"type": "integer"},
        "unit": {"enum": ["C", "F"]},
    },
    "required": ["lat"],
}
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


class ToolServer:
    """`with ToolServer() as server`: `server.url` ends without a slash; `bodies` came in."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        tool = self

        class Answer(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                """Silence."""

            def do_POST(self) -> None:
                arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                tool.bodies.append(arguments)
                status, body = tool.answer(self.path, arguments)
                content = body.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def answer(self, path: str, arguments: Any) -> tuple[int, str]:
        """Status and body for some arguments."""
        dialect, _, rest = path.lstrip("/").partition("/")
        if dialect == "status":
            status, _, body = rest.partition("/")
            return int(status), unquote(body)
        error = {
            "go": lambda: _go(arguments),
            "pydantic": lambda: _pydantic(arguments, wrap=False),
            "fastapi": lambda: _pydantic(arguments, wrap=True),
            "jsonschema": lambda: _jsonschema(arguments),
        }[dialect]()
        if error is not None:
            return 422 if dialect == "fastapi" else 400, error
        return 200, json.dumps({"got": arguments})

    def __enter__(self) -> ToolServer:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
