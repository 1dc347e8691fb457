"""Examples of a tool's input that its author gives, as calls of the format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...arguments.schema.validate import validate
from ...core.errors import UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.values import read_plain

if TYPE_CHECKING:
    from .messages import Explained

_HEADING = "# Input examples"


class LeftOut(NamedTuple):
    """An example that the prompt does not show, and why. text: of its JSON."""

    tool: str
    text: str
    why: str


def input_examples(
    protocol: Explained, tools: Iterable[ToolSpec]
) -> tuple[tuple[str, ...], tuple[LeftOut, ...]]:
    """Return the calls of all examples of some tools, and the examples that are left out: they are
    no objects, break the tool's schema, or the format cannot write them.
    """
    calls: list[str] = []
    left_out: list[LeftOut] = []
    for tool in tools:
        for text in tool.examples:
            why = _objection(text, tool)
            if not why:
                try:
                    calls.append(protocol.write_call(tool.name, text, tool))
                    continue
                except UnwritableCall as e:
                    why = e.message
            left_out.append(LeftOut(tool.name, text, why))
    return tuple(calls), tuple(left_out)


def with_input_examples(prompt: str, protocol: Explained, tools: Iterable[ToolSpec]) -> str:
    """Return a prompt with the examples of its tools at the end, itself if they have none."""
    calls, _ = input_examples(protocol, tools)
    return "\n\n".join((prompt.rstrip("\n"), _HEADING, *calls)) if calls else prompt


def _objection(text: str, tool: ToolSpec) -> str:
    value = read_plain(text)
    if not isinstance(value, dict):
        return "an example is an object"
    problems = validate(value, tool.schema_json)
    return next((p.message for p in problems if p.severity == "error"), "")
