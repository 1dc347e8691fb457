"""Evaluate and debug how text of language models becomes exact tool calls.

>>> import toolparse_lab as tp
>>> tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
>>> result = tp.parse('<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>', "hermes", tools)
>>> result.calls[0].arguments
{'a': 1}
>>> result.calls[0].origin("/a").span
Span(start=45, end=46)

What needs pandas, litellm or a notebook is imported when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors, rjson, rxml
from .api import parse, stream
from .protocols.base import Protocol
from .registry import protocols
from .schema.coerce import Coerced, coerce, coerce_by_schema
from .schema.view import get_schema_type, unwrap_json_schema
from .toolspec import ToolSpec
from .types import (
    CallDelta,
    CallEnd,
    CallStart,
    Edit,
    Event,
    Markup,
    Origin,
    ParseOptions,
    ParseResult,
    Problem,
    ReasoningDelta,
    Recovered,
    Retract,
    Segment,
    Span,
    Step,
    TextDelta,
    ToolCall,
)

if TYPE_CHECKING:
    from .capture import Captured
    from .detection import Candidate, detect
    from .evals.cases.case import Case, Cases, load_cases
    from .evals.cases.shipped import example_cases, example_conversations, example_recording
    from .evals.readings.compare import Comparison, compare
    from .lab import Lab
    from .law_report import LawReport, check_protocol
    from .middleware import (
        create_dynamic_if_then_else_schema,
        create_tool_middleware,
        fix_tool_call_with_schema,
        gemma_tool_middleware,
        hermes_tool_middleware,
        xml_tool_middleware,
    )
    from .protocols.json_mix import json_mix_protocol
    from .protocols.morph_xml import morph_xml_protocol
    from .runner.types import Model
    from .settings import Settings, load_settings
    from .stream_report import StreamReport, check_stream

__version__ = "0.1.0"

# name -> module, for what would make the import slow
_LATE = {
    "Candidate": "toolparse_lab.detection",
    "Captured": "toolparse_lab.capture",
    "Case": "toolparse_lab.evals.cases.case",
    "Cases": "toolparse_lab.evals.cases.case",
    "Comparison": "toolparse_lab.evals.readings.compare",
    "Lab": "toolparse_lab.lab",
    "LawReport": "toolparse_lab.law_report",
    "Model": "toolparse_lab.runner.types",
    "Settings": "toolparse_lab.settings",
    "StreamReport": "toolparse_lab.stream_report",
    "check_protocol": "toolparse_lab.law_report",
    "check_stream": "toolparse_lab.stream_report",
    "compare": "toolparse_lab.evals.readings.compare",
    "create_dynamic_if_then_else_schema": "toolparse_lab.middleware",
    "create_tool_middleware": "toolparse_lab.middleware",
    "detect": "toolparse_lab.detection",
    "example_cases": "toolparse_lab.evals.cases.shipped",
    "example_conversations": "toolparse_lab.evals.cases.shipped",
    "example_recording": "toolparse_lab.evals.cases.shipped",
    "fix_tool_call_with_schema": "toolparse_lab.middleware",
    "gemma_tool_middleware": "toolparse_lab.middleware",
    "hermes_tool_middleware": "toolparse_lab.middleware",
    "json_mix_protocol": "toolparse_lab.protocols.json_mix",
    "load_cases": "toolparse_lab.evals.cases.case",
    "load_settings": "toolparse_lab.settings",
    "morph_xml_protocol": "toolparse_lab.protocols.morph_xml",
    "xml_tool_middleware": "toolparse_lab.middleware",
}

__all__ = [
    "CallDelta",
    "CallEnd",
    "CallStart",
    "Candidate",
    "Captured",
    "Case",
    "Cases",
    "Coerced",
    "Comparison",
    "Edit",
    "Event",
    "Lab",
    "LawReport",
    "Markup",
    "Model",
    "Origin",
    "ParseOptions",
    "ParseResult",
    "Problem",
    "Protocol",
    "ReasoningDelta",
    "Recovered",
    "Retract",
    "Segment",
    "Settings",
    "Span",
    "Step",
    "StreamReport",
    "TextDelta",
    "ToolCall",
    "ToolSpec",
    "__version__",
    "check_protocol",
    "check_stream",
    "coerce",
    "coerce_by_schema",
    "compare",
    "create_dynamic_if_then_else_schema",
    "create_tool_middleware",
    "detect",
    "errors",
    "example_cases",
    "example_conversations",
    "example_recording",
    "fix_tool_call_with_schema",
    "gemma_tool_middleware",
    "get_schema_type",
    "hermes_tool_middleware",
    "json_mix_protocol",
    "load_cases",
    "load_settings",
    "morph_xml_protocol",
    "parse",
    "protocols",
    "rjson",
    "rxml",
    "stream",
    "unwrap_json_schema",
    "xml_tool_middleware",
]


def __getattr__(name: str) -> Any:
    if name in _LATE:
        value = getattr(importlib.import_module(_LATE[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'toolparse_lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
