"""The frozen types that every layer shares: spans, edits, steps, problems, calls, results and
events.

Offsets are Python code points, half-open. `raw` is never changed.
"""

from .call import (
    EXECUTABLE,
    VERDICTS,
    CallStatus,
    OriginTable,
    Reading,
    Source,
    Sources,
    ToolCall,
    Verdict,
    calls_by_segment,
)
from .events import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Markup,
    ReasoningDelta,
    Recovered,
    Retract,
    TextDelta,
    Withdrawn,
)
from .options import (
    DEFAULT_OPTIONS,
    JsonSchema,
    JsonValue,
    ParseOptions,
    Policy,
    RawLike,
    RequestLike,
    TokenizerLike,
)
from .result import ParseResult
from .server import ServerCall, ServerReading
from .spans import Edit, Origin, Problem, Segment, SegmentKind, Span, Step

__all__ = [
    "DEFAULT_OPTIONS",
    "EXECUTABLE",
    "VERDICTS",
    "CallDelta",
    "CallEnd",
    "CallStart",
    "CallStatus",
    "Edit",
    "Event",
    "JsonSchema",
    "JsonValue",
    "Markup",
    "Origin",
    "OriginTable",
    "ParseOptions",
    "ParseResult",
    "Policy",
    "Problem",
    "RawLike",
    "Reading",
    "ReasoningDelta",
    "Recovered",
    "RequestLike",
    "Retract",
    "Segment",
    "SegmentKind",
    "ServerCall",
    "ServerReading",
    "Source",
    "Sources",
    "Span",
    "Step",
    "TextDelta",
    "TokenizerLike",
    "ToolCall",
    "Verdict",
    "Withdrawn",
    "calls_by_segment",
]
