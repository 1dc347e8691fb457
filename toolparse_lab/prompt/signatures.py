"""Tools as a model reads them: compact JSON, Python-like signatures, outlines of XML elements.

All three come from the same ToolSpecs. References are followed, and nesting deeper than `max_depth` is shortened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from ..toolspec import ToolSpec
from ..values import write_canonical
from . import shape

_PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "any": "Any"}
_MAX_CHOICES = 40


def write_tools_json(tools: Sequence[ToolSpec]) -> str:
    """A JSON array with one compact object {name, description, parameters} a tool, one tool a line."""
    return "[" + ",\n".join(_tool_json(t) for t in tools) + "]"


@lru_cache(maxsize=1024)
def _tool_json(tool: ToolSpec) -> str:
    return write_canonical(tool.to_dict())


def write_tools_signatures(tools: Sequence[ToolSpec], *, max_depth: int = 4) -> str:
    """One signature a tool, required parameters first, with what the schema says about them indented below.

    >>> print(write_tools_signatures([ToolSpec("beep", "Make a sound.", '{"properties":{"n":{"type":"integer"}}}')]))
    beep(n: int = ...)
        Make a sound.
    """
    return "\n".join(_signature(t, max_depth) for t in tools)


@lru_cache(maxsize=1024)
def _signature(tool: ToolSpec, max_depth: int) -> str:
    root = tool.schema
    parameters: list[str] = []
    notes: list[str] = []
    for name, schema, required in shape.properties(shape.resolve(root, root)):
        node = shape.resolve(schema, root)
        default = "" if required else f" = {write_canonical(node['default']) if 'default' in node else '...'}"
        parameters.append(f"{name}: {python_type(node, root, max_depth=max_depth)}{default}")
        if note := _note(node):
            notes.append(f"    {name}: {note}")
    description = [f"    {_one_line(tool.description)}"] if tool.description else []
    return "\n".join([f"{tool.name}({', '.join(parameters)})", *description, *notes])


def python_type(node: Mapping[str, Any], root: Any, *, max_depth: int = 4) -> str:
    """The type of a resolved schema node in Python's notation, choices spelt out.

    >>> python_type({"type": "array", "items": {"enum": ["a", "b"]}}, {})
    'list["a" | "b"]'
    """
    kind = shape.kind(node)
    if kind in _PYTHON:
        return _PYTHON[kind]
    if kind == "choice":
        return _choice_text(node)
    if kind == "union":
        members = [python_type(m, root, max_depth=max_depth) for m in shape.alternatives(node, root)]
        return " | ".join(dict.fromkeys(members))
    if max_depth <= 0:
        return "list" if kind == "array" else "dict"
    if kind == "array":
        positions = [python_type(shape.resolve(p, root), root, max_depth=max_depth - 1) for p in shape.prefix(node)]
        if positions:
            return f"tuple[{', '.join(positions)}]"
        member = shape.resolve(shape.items(node), root)
        return f"list[{python_type(member, root, max_depth=max_depth - 1)}]" if member else "list"
    fields = [
        f"{name}{'' if required else '?'}: {python_type(shape.resolve(s, root), root, max_depth=max_depth - 1)}"
        for name, s, required in shape.properties(node)
    ]
    if fields:
        return "{" + ", ".join(fields) + "}"
    extra = node.get("additionalProperties")
    if isinstance(extra, Mapping):
        return f"dict[str, {python_type(shape.resolve(extra, root), root, max_depth=max_depth - 1)}]"
    return "dict"


def write_tools_xml(tools: Sequence[ToolSpec], *, max_depth: int = 4) -> str:
    """One element a tool, its parameters as elements whose text says what belongs there.

    >>> print(write_tools_xml([ToolSpec("beep", "Make a sound.", '{"properties":{"n":{"type":"integer"}}}')]))
    <beep> Make a sound.
      <n>integer, optional</n>
    </beep>
    """
    return "\n".join(_outline(t, max_depth) for t in tools)


@lru_cache(maxsize=1024)
def _outline(tool: ToolSpec, max_depth: int) -> str:
    root = tool.schema
    lines = _children(shape.resolve(root, root), root, 1, max_depth)
    opener = f"<{tool.name}>{' ' + _one_line(tool.description) if tool.description else ''}"
    return "\n".join([opener, *lines, f"</{tool.name}>"])


def _children(node: Mapping[str, Any], root: Any, depth: int, max_depth: int) -> list[str]:
    lines: list[str] = []
    pad = "  " * depth
    for name, schema, required in shape.properties(node):
        child = shape.resolve(schema, root)
        repeated = shape.kind(child) == "array" and not shape.prefix(child)
        member = shape.resolve(shape.items(child), root) if repeated else child
        words = [] if required else ["optional"]
        if repeated:
            words.append("repeat the element for every item")
        if note := _note(child):
            words.append(note)
        if shape.kind(member) == "object" and shape.properties(member) and depth < max_depth:
            lines.append(f"{pad}<{name}>{' ' + ', '.join(words) if words else ''}")
            lines += _children(member, root, depth + 1, max_depth)
            lines.append(f"{pad}</{name}>")
        else:
            told = ", ".join([_plain_type(member, root), *words]).replace(", (", " (")
            lines.append(f"{pad}<{name}>{told}</{name}>")
    return lines


def _plain_type(node: Mapping[str, Any], root: Any) -> str:
    kind = shape.kind(node)
    if kind == "choice":
        return "one of " + _choice_text(node, bare=True)
    if kind == "union":
        return " or ".join(dict.fromkeys(_plain_type(m, root) for m in shape.alternatives(node, root)))
    if kind in ("array", "object"):
        return f"JSON {kind}"
    return "any text" if kind == "any" else kind


def _choice_text(node: Mapping[str, Any], *, bare: bool = False) -> str:
    values = shape.choices(node)
    texts = [v if bare and isinstance(v, str) else write_canonical(v) for v in values[:_MAX_CHOICES]]
    if len(values) > _MAX_CHOICES:
        texts.append("...")
    return " | ".join(texts)


def _note(node: Mapping[str, Any]) -> str:
    description = node.get("description")
    words = [_one_line(description)] if isinstance(description, str) and description.strip() else []
    limits = [
        f"{label} {write_canonical(node[key])}"
        for key, label in (
            ("minimum", "at least"),
            ("maximum", "at most"),
            ("format", "format"),
            ("pattern", "pattern"),
        )
        if key in node
    ]
    return " ".join([*words, f"({', '.join(limits)})"] if limits else words)


def _one_line(text: str) -> str:
    return " ".join(text.split())
