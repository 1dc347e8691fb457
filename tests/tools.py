"""Definitions of tools in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def object_schema(
    *, required: Sequence[str] | None = None, **properties: str | dict[str, Any]
) -> dict[str, Any]:
    """The schema of an object; a property is its type or its whole schema."""
    schemas = {k: {"type": v} if isinstance(v, str) else v for k, v in properties.items()}
    schema: dict[str, Any] = {"type": "object", "properties": schemas}
    return schema if required is None else {**schema, "required": [*required]}


def tool_named(name: str, description: str | None = None, /, **schema: Any) -> dict[str, Any]:
    """A tool with the properties of `object_schema`."""
    said = {} if description is None else {"description": description}
    return {"name": name, **said, "parameters": object_schema(**schema)}


def function_named(name: str, /, *said: str, **schema: Any) -> dict[str, Any]:
    """`tool_named` as OpenAI writes it."""
    return {"type": "function", "function": tool_named(name, *said, **schema)}
