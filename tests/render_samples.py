"""Results for the view tests, built by hand so that a view's test fails for a view's fault alone:
`render_samples.jsonl` has some, and texts that would run, load or hide something."""

from __future__ import annotations

import json

from tests.tables import table
from toolparse_lab.core.types import (
    Edit,
    Origin,
    OriginTable,
    ParseOptions,
    ParseResult,
    Problem,
    Segment,
    Span,
    Step,
    ToolCall,
)

_ROWS = {row["title"]: row for row in table(__file__)}
HOSTILE: dict[str, str] = {
    title: row["hostile"] for title, row in _ROWS.items() if "hostile" in row
}


def example() -> ParseResult:
    """One call, one repair, one coercion; the origin of /a is the character 1."""
    return ParseResult.from_dict(_ROWS["example"]["result"])


def several() -> ParseResult:
    """Reasoning, a repaired and coerced call that breaks its schema, an unknown tool, a truncated
    call."""
    return ParseResult.from_dict(_ROWS["several"]["result"])


EXAMPLE = example().raw


def plain(raw: str = "Just text & <b>no call</b>.") -> ParseResult:
    return ParseResult(
        raw, "hermes", ParseOptions(), (Segment("text", Span(0, len(raw))),) if raw else (), (), ()
    )


def hostile(text: str) -> ParseResult:
    """A result with `text` in every place that model text or a stranger's protocol can reach."""
    before = f"Before {text} "
    raw = f"{before}<c>{text}|{text}</c>"
    start = len(before)
    body = Span(start + 3, len(raw) - 4)
    middle = body.start + len(text)
    segments = (Segment("text", Span(0, start)), Segment("call", Span(start, len(raw)), body))
    origins = {"/" + text.replace("~", "~0").replace("/", "~1"): Origin(Span(middle + 1, body.end))}
    path = next(iter(origins))
    call = ToolCall(
        index=0,
        segment_index=1,
        name=text,
        name_span=Span(body.start, middle),
        wire_id=text,
        protocol=text,
        status="ok",
        confidence=0.5,
        source_json=json.dumps({text: text}),
        arguments_json=json.dumps({text: [text]}),
        edits=(Edit(Span(middle, middle + 1), text, text),),
        steps=(
            Step("coerce", text, path, None, text, [text]),
            Step("read", text, "", None, text, text),
        ),
        problems=(Problem("validate", text, "error", text, path, Span(middle + 1, body.end)),),
        segment=segments[1],
        origins=OriginTable(lambda: origins),
    )
    return ParseResult(
        raw,
        text,
        ParseOptions(),
        segments,
        (call,),
        (Problem("scan", text, "warning", text, text, Span(0, 1)),),
    )
