"""Evaluate and debug how text of language models becomes exact tool calls.

>>> import toolparse_lab as tp
>>> schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
>>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
>>> result = tp.parse(text, "hermes", [{"name": "f", "parameters": schema}])
>>> result.calls[0].arguments
{'a': 1}
>>> result.calls[0].origin("/a").span
Span(start=45, end=46)

Each name loads what it needs when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .core import VERSION
from .core.late import late_names

if TYPE_CHECKING:
    from .arguments import rjson
    from .arguments.schema.coerce import Coerced, coerce, coerce_by_schema
    from .core import errors
    from .core.toolspec import ToolLike, ToolsLike, ToolSpec
    from .core.types import (
        Edit,
        Event,
        JsonSchema,
        JsonValue,
        Origin,
        ParseOptions,
        ParseResult,
        Problem,
        RawLike,
        RequestLike,
        Segment,
        Span,
        Step,
        ToolCall,
    )
    from .entry.capture import Captured
    from .entry.detect import Candidate, detect
    from .entry.parse import parse, stream
    from .evals.cases.case import Case
    from .evals.cases.collection import Cases
    from .evals.cases.loading import (
        example_cases,
        example_conversations,
        example_recording,
        load_cases,
    )
    from .evals.parsers.compare import Comparison, compare
    from .evals.reparse import read_table
    from .evals.reports.figures.report import report
    from .formats import rxml
    from .formats.base import Protocol
    from .formats.json.mix import json_mix_protocol
    from .formats.like import ProtocolLike
    from .formats.models import protocol_for
    from .formats.registry import protocols
    from .formats.xml.morph_xml import morph_xml_protocol
    from .lab import Lab
    from .middleware import (
        create_tool_middleware,
        gemma_tool_middleware,
        hermes_tool_middleware,
        xml_tool_middleware,
    )
    from .notebook.display import workbench
    from .runner.exchange.types import Model
    from .runner.settings import Settings, load_settings

__version__ = VERSION

# Module -> its names. A program that only imports the package, or asks for its version, waits for
# none of them.
_LATE = {
    "arguments": "rjson",
    "arguments.schema.coerce": "Coerced coerce coerce_by_schema",
    "core": "errors",
    "core.toolspec": "ToolLike ToolsLike ToolSpec",
    "core.types": "Edit Event JsonSchema JsonValue Origin ParseOptions ParseResult Problem RawLike "
    "RequestLike Segment Span Step ToolCall",
    "entry.capture": "Captured",
    "entry.detect": "Candidate detect",
    "entry.parse": "parse stream",
    "evals.cases.case": "Case",
    "evals.cases.collection": "Cases",
    "evals.cases.loading": "example_cases example_conversations example_recording load_cases",
    "evals.parsers.compare": "Comparison compare",
    "evals.reparse": "read_table",
    "evals.reports.figures.report": "report",
    "formats": "rxml",
    "formats.base": "Protocol",
    "formats.json.mix": "json_mix_protocol",
    "formats.like": "ProtocolLike",
    "formats.models": "protocol_for",
    "formats.registry": "protocols",
    "formats.xml.morph_xml": "morph_xml_protocol",
    "lab": "Lab",
    "middleware": "create_tool_middleware gemma_tool_middleware hermes_tool_middleware "
    "xml_tool_middleware",
    "notebook.display": "workbench",
    "runner.exchange.types": "Model",
    "runner.settings": "Settings load_settings",
}
# package from elsewhere -> the extra that brings it
_EXTRAS = {
    **dict.fromkeys(
        ("litellm", "pandas", "numpy", "pyarrow", "scipy", "sqlalchemy", "tqdm"), "lab"
    ),
    **dict.fromkeys(("anywidget", "ipywidgets", "traitlets"), "jupyter"),
}

__all__ = [
    "Candidate",
    "Captured",
    "Case",
    "Cases",
    "Coerced",
    "Comparison",
    "Edit",
    "Event",
    "JsonSchema",
    "JsonValue",
    "Lab",
    "Model",
    "Origin",
    "ParseOptions",
    "ParseResult",
    "Problem",
    "Protocol",
    "ProtocolLike",
    "RawLike",
    "RequestLike",
    "Segment",
    "Settings",
    "Span",
    "Step",
    "ToolCall",
    "ToolLike",
    "ToolSpec",
    "ToolsLike",
    "__version__",
    "coerce",
    "coerce_by_schema",
    "compare",
    "create_tool_middleware",
    "detect",
    "errors",
    "example_cases",
    "example_conversations",
    "example_recording",
    "gemma_tool_middleware",
    "hermes_tool_middleware",
    "json_mix_protocol",
    "load_cases",
    "load_settings",
    "morph_xml_protocol",
    "parse",
    "protocol_for",
    "protocols",
    "read_table",
    "report",
    "rjson",
    "rxml",
    "stream",
    "workbench",
    "xml_tool_middleware",
]

# A type checker that saw this would take every misspelt name for one that exists.
if not TYPE_CHECKING:
    __getattr__ = late_names(__name__, _LATE, _EXTRAS)


def __dir__() -> list[str]:
    """Return the public names, those too that are not imported yet."""
    return sorted(__all__)
