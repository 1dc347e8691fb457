"""Flows: generators that yield Requests and are sent Completions, so that one body of code runs live, sync or async,
and from a recording."""

from __future__ import annotations

from .conversation import STOPS, Conversation, ConversationTurn, Stop, ToolRun
from .drive import Flow, adrive, advance, drive
from .reading import read_answer
from .tool_loop import Runnable, tool_loop

__all__ = [
    "STOPS",
    "Conversation",
    "ConversationTurn",
    "Flow",
    "Runnable",
    "Stop",
    "ToolRun",
    "adrive",
    "advance",
    "drive",
    "read_answer",
    "tool_loop",
]
