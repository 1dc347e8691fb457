"""The tool-call middleware: pure functions over messages, tools and results.

Parts are its view of an answer.

`hermes_tool_middleware`, `gemma_tool_middleware` and `xml_tool_middleware` are made when they are
first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .answer import Answer, fix_tool_call_with_schema
from .choice import create_dynamic_if_then_else_schema
from .content_parts import (
    PartStream,
    create_stream_parser,
    extract_tool_call_segments,
    failures_of,
    parse_generated_text,
    parts_of,
)
from .core import ToolCallMiddleware, create_tool_middleware
from .corrections import (
    AskAgain,
    CallCorrection,
    CorrectedAnswer,
    Reply,
    acorrect_answer,
    correct_answer,
    corrections,
)
from .stream import AnswerStream
from .turn import Turn

if TYPE_CHECKING:
    gemma_tool_middleware: ToolCallMiddleware
    hermes_tool_middleware: ToolCallMiddleware
    xml_tool_middleware: ToolCallMiddleware

_PRESETS = {
    "gemma_tool_middleware": "gemma",
    "hermes_tool_middleware": "hermes",
    "xml_tool_middleware": "morph_xml",
}

__all__ = [
    "Answer", "AnswerStream", "AskAgain", "CallCorrection", "CorrectedAnswer", "PartStream",
    "Reply", "ToolCallMiddleware", "Turn", "acorrect_answer", "correct_answer", "corrections",
    "create_dynamic_if_then_else_schema", "create_stream_parser", "create_tool_middleware",
    "extract_tool_call_segments", "failures_of", "fix_tool_call_with_schema",
    "gemma_tool_middleware", "hermes_tool_middleware", "parse_generated_text", "parts_of",
    "xml_tool_middleware",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Make one of the three presets when it is first asked for, and keep it."""
    if name in _PRESETS:
        value = create_tool_middleware(_PRESETS[name])
        globals()[name] = value
        return value

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
