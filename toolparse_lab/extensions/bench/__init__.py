"""The Berkeley Function Calling Leaderboard: its cases, and its verdicts on calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.late import late_names

if TYPE_CHECKING:
    from .bfcl import load_bfcl, schema_of, wanted_call
else:
    __getattr__ = late_names(__name__, {"bfcl": "load_bfcl schema_of wanted_call"})

__all__ = ["load_bfcl", "schema_of", "wanted_call"]
