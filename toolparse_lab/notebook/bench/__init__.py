"""The workbench: change a text or how it is read, and see the parse change."""

from __future__ import annotations

from .view import conversation_of, next_steps, setups_of, verdict_sentence
from .workbench import Desk, Workbench, bench_module, bench_style, workbench

__all__ = [
    "Desk",
    "Workbench",
    "bench_module",
    "bench_style",
    "conversation_of",
    "next_steps",
    "setups_of",
    "verdict_sentence",
    "workbench",
]
