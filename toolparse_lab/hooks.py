"""The one place where a low layer reaches upward: rich display, `.debug()`, `.frame()`, a protocol's reading methods, a
middleware's calls of litellm.

The modules named here belong to L6, to L5 (litellm) or, where a protocol asks the engine, to L3. They are imported
when first asked for, never at import time.
"""

from __future__ import annotations

import importlib
from typing import Any

_PROVIDERS = {
    "acompletion": ("toolparse_lab.litellm_bridge.calls", "acompletion_with"),
    "completion": ("toolparse_lab.litellm_bridge.calls", "completion_with"),
    "create_stream_parser": ("toolparse_lab.parts", "create_stream_parser"),
    "debug": ("toolparse_lab.notebook", "debug"),
    "extract_tool_call_segments": ("toolparse_lab.parts", "extract_tool_call_segments"),
    "frame": ("toolparse_lab.notebook", "frame"),
    "html": ("toolparse_lab.notebook", "html"),
    "parse_generated_text": ("toolparse_lab.parts", "parse_generated_text"),
    "text": ("toolparse_lab.notebook", "text"),
}


def call(name: str, subject: Any, **options: Any) -> Any:
    """The function of that name applied to `subject`; raises MissingExtra where its libraries are missing."""
    module, function = _PROVIDERS[name]
    return getattr(importlib.import_module(module), function)(subject, **options)


def mimebundle(subject: Any) -> dict[str, str]:
    """text/plain and text/html only: no widget model, so that it reads the same with no kernel."""
    return {"text/plain": call("text", subject), "text/html": call("html", subject)}
