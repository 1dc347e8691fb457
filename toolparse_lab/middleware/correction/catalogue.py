"""Agents and their capabilities, as an orchestrator has them: a capability is a tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.toolspec import ToolSpec


def find_capability_schema(agent: Mapping[str, Any] | None, capability: str) -> ToolSpec | None:
    """Return the capability of an agent as a tool with its schema.

    None for no agent, or no such capability.

    Args:
        agent: `{name, capabilities: [{name, parameters | input_summary}]}`.

    Raises BadToolSpec for an unreadable capability.

    >>> agent = {"name": "a", "capabilities": [{"name": "f", "parameters": []}]}
    >>> find_capability_schema(agent, "f").name
    'f'
    """
    capabilities = agent.get("capabilities") if agent is not None else None
    for entry in capabilities or ():
        if isinstance(entry, Mapping) and entry.get("name") == capability:
            return ToolSpec.of(entry)
    return None
