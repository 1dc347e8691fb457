"""Reading a recorded answer as the middleware would: a forced tool choice is read as one call of JSON."""

from __future__ import annotations

from typing import Any

from ..api import parse
from ..middleware.choice import read_choice, read_tools
from ..middleware.forced import parse_forced
from ..toolspec import tool_specs
from ..types import ParseOptions, ParseResult


def read_answer(
    raw: str, protocol: Any, tools: Any = None, options: Any = None, tool_choice: Any = "auto"
) -> ParseResult:
    """`parse`, and where `tool_choice` (in any shape the middleware takes) forces a call, the forced reading.

    Raises what `parse` raises, and BadToolChoice.
    """
    specs = tool_specs(tools)
    choice = read_choice(tool_choice, read_tools(specs))
    if not choice.forced:
        return parse(raw, protocol, specs, options)
    allowed = tuple(t for t in specs if choice.name in (None, t.name))
    return parse_forced(raw, protocol, specs, allowed, ParseOptions.of(options))
