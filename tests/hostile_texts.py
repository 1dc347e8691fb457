"""Texts that would run, load or hide something where a view does not escape them: every payload in
every context that it might break out of."""

from __future__ import annotations

from tests.render_samples import HOSTILE
from tests.tables import table

_ROWS = table(__file__)
TEXTS = [
    *HOSTILE.values(),
    *(
        context["context"].format(payload["payload"])
        for payload in _ROWS
        if "payload" in payload
        for context in _ROWS
        if "context" in context
    ),
]
"""More than 200 texts."""
