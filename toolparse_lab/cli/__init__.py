"""The command line.

Exit codes: 0 ok, 1 a gate failed, 2 usage or bad input, 3 incomplete, 130 interrupted, 143
ended by SIGTERM.
"""

from __future__ import annotations

from .app import main
from .parser import build_parser

__all__ = ["build_parser", "main"]
