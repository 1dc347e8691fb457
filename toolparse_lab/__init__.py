"""Evaluate and debug how text of language models becomes exact tool calls.

>>> import toolparse_lab as tp
>>> schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
>>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
>>> result = tp.parse(text, "hermes", [{"name": "f", "parameters": schema}])
>>> result.calls[0].arguments
{'a': 1}
>>> result.calls[0].origin("/a").span
Span(start=45, end=46)

What needs pandas, litellm or a notebook loads when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .arguments import rjson
from .arguments.schema.coerce import Coerced, coerce, coerce_by_schema
from .arguments.schema.references import unwrap_json_schema
from .arguments.schema.view import get_schema_type
from .core import VERSION, errors
from .core.toolspec import ToolLike, ToolsLike, ToolSpec
from .core.types import (
    CallDelta,
    CallEnd,
    CallStart,
    Edit,
    Event,
    JsonSchema,
    JsonValue,
    Markup,
    Origin,
    ParseOptions,
    ParseResult,
    Problem,
    RawLike,
    ReasoningDelta,
    Recovered,
    RequestLike,
    Retract,
    Segment,
    Span,
    Step,
    TextDelta,
    ToolCall,
    Withdrawn,
)
from .entry.parse import parse, stream
from .formats import rxml
from .formats.base import Protocol
from .formats.like import ProtocolLike
from .formats.registry import protocols

if TYPE_CHECKING:
    from .entry.capture import Captured
    from .entry.detect import Candidate, detect
    from .evals.cases.case import Case
    from .evals.cases.collection import Cases
    from .evals.cases.loading import (
        example_cases,
        example_conversations,
        example_recording,
        load_cases,
    )
    from .evals.readings.compare import Comparison, compare
    from .evals.readings.readers import reader
    from .evals.reports.figures.report import report
    from .evals.scoring.reward import reward
    from .evals.scoring.shrink import shrink
    from .experiments.ingest.shapes import shapes
    from .formats.json.mix import json_mix_protocol
    from .formats.models import protocol_for
    from .formats.xml.morph_xml import morph_xml_protocol
    from .lab import Lab
    from .middleware import (
        create_dynamic_if_then_else_schema,
        create_tool_middleware,
        fix_tool_call_with_schema,
        gemma_tool_middleware,
        hermes_tool_middleware,
        xml_tool_middleware,
    )
    from .notebook.display import workbench
    from .runner.exchange.types import Model
    from .runner.settings import Settings, load_settings

__version__ = VERSION

# Name -> its module, for what would make the import slow.
_LATE = {
    name: module
    for module, names in {
        "toolparse_lab.evals.cases.case": "Case",
        "toolparse_lab.evals.cases.collection": "Cases",
        "toolparse_lab.evals.cases.loading": "example_cases example_conversations "
        "example_recording load_cases",
        "toolparse_lab.evals.readings.compare": "Comparison compare",
        "toolparse_lab.evals.readings.readers": "reader",
        "toolparse_lab.evals.reports.figures.report": "report",
        "toolparse_lab.evals.scoring.reward": "reward",
        "toolparse_lab.evals.scoring.shrink": "shrink",
        "toolparse_lab.experiments.ingest.shapes": "shapes",
        "toolparse_lab.formats.json.mix": "json_mix_protocol",
        "toolparse_lab.formats.models": "protocol_for",
        "toolparse_lab.formats.xml.morph_xml": "morph_xml_protocol",
        "toolparse_lab.lab": "Lab",
        "toolparse_lab.middleware": "create_dynamic_if_then_else_schema create_tool_middleware "
        "fix_tool_call_with_schema gemma_tool_middleware hermes_tool_middleware "
        "xml_tool_middleware",
        "toolparse_lab.notebook.display": "workbench",
        "toolparse_lab.entry.capture": "Captured",
        "toolparse_lab.entry.detect": "Candidate detect",
        "toolparse_lab.runner.exchange.types": "Model",
        "toolparse_lab.runner.settings": "Settings load_settings",
    }.items()
    for name in names.split()
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
    "JsonSchema",
    "JsonValue",
    "Lab",
    "Markup",
    "Model",
    "Origin",
    "ParseOptions",
    "ParseResult",
    "Problem",
    "Protocol",
    "ProtocolLike",
    "RawLike",
    "ReasoningDelta",
    "Recovered",
    "RequestLike",
    "Retract",
    "Segment",
    "Settings",
    "Span",
    "Step",
    "TextDelta",
    "ToolCall",
    "ToolLike",
    "ToolSpec",
    "ToolsLike",
    "Withdrawn",
    "__version__",
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
    "protocol_for",
    "protocols",
    "reader",
    "report",
    "reward",
    "rjson",
    "rxml",
    "shapes",
    "shrink",
    "stream",
    "unwrap_json_schema",
    "workbench",
    "xml_tool_middleware",
]


# package from elsewhere -> the extra that brings it
_EXTRAS = {
    **dict.fromkeys(
        ("litellm", "pandas", "numpy", "pyarrow", "scipy", "sqlalchemy", "tqdm"), "lab"
    ),
    **dict.fromkeys(("anywidget", "ipywidgets", "traitlets"), "jupyter"),
}


def _missing_extra(name: str, error: ModuleNotFoundError) -> Exception:
    # Of a package of no extra, the error itself.
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        return error
    extra = _EXTRAS[package]
    return errors.MissingExtra(
        f"toolparse_lab.{name} needs the package {package}",
        got=f"no module named {error.name}",
        expected=f"the extra {extra!r}",
        hint=f"in a checkout: pip install '.[{extra}]'",
    )


# A type checker that saw this would take every misspelt name for one that exists.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a name whose module loads when it is first asked for."""
        if name in _LATE:
            try:
                module = importlib.import_module(_LATE[name])
            except ModuleNotFoundError as e:
                raise _missing_extra(name, e) from e
            value = getattr(module, name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'toolparse_lab' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, those too that are not imported yet."""
    return sorted(__all__)
