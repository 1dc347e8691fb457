"""Flows: generators that yield Requests and are sent Completions, so that one body of code runs
live, sync or async, and from a recording.
"""

from __future__ import annotations

from ..drive import Flow, adrive, advance, drive
from .reading import (
    answer_reader,
    asked_of,
    is_unlifted,
    read_answer,
    recorded_tokens,
    with_recorded,
)
from .tool_loop import (
    OPEN,
    STOPS,
    Conversation,
    ConversationTurn,
    Middleware,
    NativeTools,
    Record,
    Runnable,
    Stop,
    ToolRun,
    result_row,
    tool_loop,
)

__all__ = [
    "OPEN", "STOPS", "Conversation", "ConversationTurn", "Flow", "Middleware", "NativeTools",
    "Record", "Runnable", "Stop", "ToolRun", "adrive", "advance", "answer_reader", "asked_of",
    "drive", "is_unlifted", "read_answer", "recorded_tokens", "result_row", "tool_loop",
    "with_recorded",
]  # fmt: skip
