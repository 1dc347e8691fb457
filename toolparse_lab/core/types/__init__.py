"""The frozen types that every layer shares: spans, edits, steps, problems, calls, results and
events.

Offsets are Python code points, half-open. `raw` is never changed.
"""

from .blame import BLAME_CODES, LAYERS, Blame, Evidence, Layer
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
    is_held_back,
    is_meant,
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
from .result import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    HeldBack,
    Markup,
    ParseResult,
    ReasoningDelta,
    Recovered,
    Retract,
    TextDelta,
    Withdrawn,
)
from .server import ServerCall, ServerReading
from .spans import Edit, Origin, Problem, Segment, SegmentKind, Span, Step

__all__ = [
    "BLAME_CODES", "DEFAULT_OPTIONS", "EXECUTABLE", "LAYERS", "VERDICTS", "Blame", "CallDelta",
    "CallEnd", "CallStart", "CallStatus", "Edit", "Event", "Evidence", "HeldBack", "JsonSchema",
    "JsonValue", "Layer", "Markup", "Origin", "OriginTable", "ParseOptions", "ParseResult",
    "Policy", "Problem", "RawLike", "Reading", "ReasoningDelta", "Recovered", "RequestLike",
    "Retract", "Segment", "SegmentKind", "ServerCall", "ServerReading", "Source", "Sources", "Span",
    "Step", "TextDelta", "TokenizerLike", "ToolCall", "Verdict", "Withdrawn", "calls_by_segment",
    "is_held_back", "is_meant",
]  # fmt: skip
