"""The one place where a low layer reaches upward: rich display, `.debug()` and `.frame()`.

The modules named here belong to L6 and are imported when first asked for, never at import time.
"""

from __future__ import annotations

import importlib
from typing import Any

_PROVIDERS = {
    "debug": ("toolparse_lab.notebook", "debug"),
    "frame": ("toolparse_lab.notebook", "frame"),
    "html": ("toolparse_lab.notebook", "html"),
    "text": ("toolparse_lab.notebook", "text"),
}


def call(name: str, subject: Any, **options: Any) -> Any:
    """The L6 function of that name applied to `subject`; raises MissingExtra where its libraries are missing."""
    module, function = _PROVIDERS[name]
    return getattr(importlib.import_module(module), function)(subject, **options)


def mimebundle(subject: Any) -> dict[str, str]:
    """text/plain and text/html only: no widget model, so that it reads the same with no kernel."""
    return {"text/plain": call("text", subject), "text/html": call("html", subject)}
