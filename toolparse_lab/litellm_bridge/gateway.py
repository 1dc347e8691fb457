"""Requests with tools where the `mcp` package is not installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

_ASKING = "litellm.responses.mcp.chat_completions_handler"
_ANSWERING = "litellm.responses.mcp.litellm_proxy_mcp_handler"


def allow_tools_without_mcp() -> None:
    """Lets litellm take requests with tools where the `mcp` package is missing.

    litellm 1.106 asks two of its modules whether a tool belongs to its own gateway, and they need `mcp`: without it
    every request with tools fails, whatever the provider. Where they cannot be imported, modules of their names say
    that function tools do not belong there. Nothing is done where `mcp` is installed, or with another litellm.
    """
    if importlib.util.find_spec("mcp") is not None or _ASKING in sys.modules:
        return
    try:
        importlib.import_module("litellm.responses.mcp.chat_completions_handler")
    except ModuleNotFoundError as e:
        if e.name is None or e.name.partition(".")[0] != "mcp":
            return
        missing = e
    else:
        return

    def belongs(tools: Iterable[Any] | None) -> bool:
        for tool in tools or ():
            if isinstance(tool, Mapping) and tool.get("type") == "mcp":
                raise ModuleNotFoundError(f"{missing}: tools of type mcp need it", name=missing.name)
        return False

    answering, asking = ModuleType(_ANSWERING), ModuleType(_ASKING)
    names = {"should_use_litellm_mcp_gateway": staticmethod(belongs)}
    names["_should_use_litellm_mcp_gateway"] = names["should_use_litellm_mcp_gateway"]
    answering.__dict__["LiteLLM_Proxy_MCP_Handler"] = type("LiteLLM_Proxy_MCP_Handler", (), names)
    asking.__dict__["acompletion_with_mcp"] = None  # imported beside the question, used only after a yes
    sys.modules[_ANSWERING], sys.modules[_ASKING] = answering, asking
