"""The workbench: change a text or how it is read, and see the parse change."""

from __future__ import annotations

from .view import conversation_of, next_steps, setups_of
from .workbench import Desk, Workbench, workbench

__all__ = [
    "Desk",
    "Workbench",
    "conversation_of",
    "next_steps",
    "setups_of",
    "workbench",
]
