"""Tools as a model reads them: compact JSON, Python-like signatures, outlines of XML elements.

All three are made from the same ToolSpecs. References are followed, and nesting deeper than
`max_depth` is shortened to its kind. Texts are cached by tool: the cases of a dataset share theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from .shape import (
    alternatives_of,
    choices_of,
    items_of,
    kind_of,
    positions_of,
    properties_of,
    resolve,
)

_PYTHON_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "any": "Any",
}
# A longer list of choices costs more tokens than it is worth.
_MAX_CHOICES = 40
# Keyword of a schema -> its words in a note.
_LIMITS = {"minimum": "at least", "maximum": "at most", "format": "format", "pattern": "pattern"}


def write_tools_json(tools: Sequence[ToolSpec], *, examples: bool = False) -> str:
    """Return a JSON array with one compact object {name, description, parameters} a tool.

    Each tool has a line of its own. examples: with the member inputExamples where it has some.
    """
    return "[" + ",\n".join(_tool_json(tool, examples) for tool in tools) + "]"


def write_tools_lines(tools: Sequence[ToolSpec]) -> str:
    """Return one JSON object in OpenAI's shape a line, as chat templates write them.

    >>> print(write_tools_lines([ToolSpec("beep", "", "{}")]))
    {"type": "function", "function": {"name":"beep","description":"","parameters":{}}}
    """
    return "\n".join(f'{{"type": "function", "function": {_tool_json(tool)}}}' for tool in tools)


@lru_cache(maxsize=1024)
def _tool_json(tool: ToolSpec, examples: bool = False) -> str:
    return write_canonical(tool.to_dict() if examples else tool.to_openai()["function"])


def write_tools_signatures(tools: Sequence[ToolSpec], *, max_depth: int = 4) -> str:
    """Return one signature a tool, with the schema's facts about its parameters indented below.

    Required parameters come first.

    >>> schema = '{"properties":{"n":{"type":"integer"}}}'
    >>> print(write_tools_signatures([ToolSpec("beep", "Make a sound.", schema)]))
    beep(n: int = ...)
        Make a sound.
    """
    return "\n".join(_signature(tool, max_depth) for tool in tools)


@lru_cache(maxsize=1024)
def _signature(tool: ToolSpec, max_depth: int) -> str:
    root = tool.schema
    parameters: list[str] = []
    notes: list[str] = []
    for name, schema, required in properties_of(resolve(root, root)):
        node = resolve(schema, root)
        parameter = f"{name}: {python_type(node, root, max_depth=max_depth)}"
        if not required:
            default = write_canonical(node["default"]) if "default" in node else "..."
            parameter += f" = {default}"
        parameters.append(parameter)

        note = _note(node)
        if note:
            notes.append(f"    {name}: {note}")

    lines = [f"{tool.name}({', '.join(parameters)})"]
    if tool.description:
        lines.append(f"    {_one_line(tool.description)}")
    return "\n".join([*lines, *notes])


def python_type(node: Mapping[str, Any], root: Any, *, max_depth: int = 4) -> str:
    """Return the type of a resolved schema node in Python's notation, choices written out.

    root: the schema that `#` means in references. max_depth: the levels that are written out below
    this one.

    >>> python_type({"type": "array", "items": {"enum": ["a", "b"]}}, {})
    'list["a" | "b"]'
    """
    kind = kind_of(node)
    if kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind]
    if kind == "choice":
        return _choice_text(node)
    if kind == "union":
        # A union adds no level: its members are written where it is.
        members = alternatives_of(node, root)
        types = [python_type(member, root, max_depth=max_depth) for member in members]
        return " | ".join(dict.fromkeys(types))

    if max_depth <= 0:
        return "list" if kind == "array" else "dict"

    def inner(schema: Any) -> str:
        return python_type(resolve(schema, root), root, max_depth=max_depth - 1)

    if kind == "array":
        positions = positions_of(node)
        if positions:
            return f"tuple[{', '.join(map(inner, positions))}]"
        items = items_of(node)
        return f"list[{inner(items)}]" if resolve(items, root) else "list"
    # A question mark follows the name of an optional property.
    fields = [
        f"{name}{'' if required else '?'}: {inner(schema)}"
        for name, schema, required in properties_of(node)
    ]
    if fields:
        return "{" + ", ".join(fields) + "}"
    extra = node.get("additionalProperties")
    return f"dict[str, {inner(extra)}]" if isinstance(extra, Mapping) else "dict"


def write_tools_xml(tools: Sequence[ToolSpec], *, max_depth: int = 4) -> str:
    """Return one element a tool, its parameters as elements whose text names their type.

    >>> schema = '{"properties":{"n":{"type":"integer"}}}'
    >>> print(write_tools_xml([ToolSpec("beep", "Make a sound.", schema)]))
    <beep> Make a sound.
      <n>integer, optional</n>
    </beep>
    """
    return "\n".join(_outline(tool, max_depth) for tool in tools)


@lru_cache(maxsize=1024)
def _outline(tool: ToolSpec, max_depth: int) -> str:
    root = tool.schema
    opener = f"<{tool.name}>"
    if tool.description:
        opener += f" {_one_line(tool.description)}"
    lines = _children(resolve(root, root), root, 1, max_depth)
    return "\n".join([opener, *lines, f"</{tool.name}>"])


def _children(node: Mapping[str, Any], root: Any, depth: int, max_depth: int) -> list[str]:
    # From `max_depth` on an object is named as JSON instead of being written out.
    lines: list[str] = []
    pad = "  " * depth
    for name, schema, required in properties_of(node):
        child = resolve(schema, root)
        repeated = kind_of(child) == "array" and not positions_of(child)
        member = resolve(items_of(child), root) if repeated else child
        words = [] if required else ["optional"]
        words += ["repeat the element for every item"] * repeated
        words += filter(None, [_note(child)])

        if kind_of(member) == "object" and properties_of(member) and depth < max_depth:
            # Words after an opener are apart from it, as a tool's description is.
            note = f" {', '.join(words)}" if words else ""
            lines.append(f"{pad}<{name}>{note}")
            lines += _children(member, root, depth + 1, max_depth)
            lines.append(f"{pad}</{name}>")
        else:
            # A note in brackets is about the type and follows it without a comma.
            text = ", ".join([_plain_type(member, root), *words]).replace(", (", " (")
            lines.append(f"{pad}<{name}>{text}</{name}>")
    return lines


def _plain_type(node: Mapping[str, Any], root: Any) -> str:
    kind = kind_of(node)
    if kind == "choice":
        return "one of " + _choice_text(node, bare=True)
    if kind == "union":
        types = [_plain_type(member, root) for member in alternatives_of(node, root)]
        return " or ".join(dict.fromkeys(types))
    if kind in ("array", "object"):
        return f"JSON {kind}"
    return "any text" if kind == "any" else kind


def _choice_text(node: Mapping[str, Any], *, bare: bool = False) -> str:
    # bare: texts are written without their quotes
    values = choices_of(node)
    texts = [
        value if bare and isinstance(value, str) else write_canonical(value)
        for value in values[:_MAX_CHOICES]
    ]
    return " | ".join(texts + ["..."] * (len(values) > _MAX_CHOICES))


def _note(node: Mapping[str, Any]) -> str:
    description = node.get("description")
    words = []
    if isinstance(description, str) and description.strip():
        words.append(_one_line(description))
    limits = [f"{_LIMITS[key]} {write_canonical(node[key])}" for key in _LIMITS if key in node]
    if limits:
        words.append(f"({', '.join(limits)})")
    return " ".join(words)


def _one_line(text: str) -> str:
    return " ".join(text.split())
