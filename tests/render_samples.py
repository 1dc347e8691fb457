"""Results for the view tests, built by hand so that a view's test fails for a view's fault
alone."""

from __future__ import annotations

import json
from typing import Any

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

EXAMPLE = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'

HOSTILE = {
    "script": "<script>window.pwned = 1</script>",
    "onerror": '<img src="https://evil.invalid/x.png" onerror="window.pwned = 1">',
    "svg": "<svg/onload=window.pwned=1><style>*{display:none}</style>",
    "close mark": "</mark></span></div></td></table><b>out</b>",
    "close script": "</script><script>window.pwned = 1</script><!-- ]]>",
    "attribute": '" onmouseover="window.pwned=1" x=\' onfocus=\'window.pwned=1',
    "link": '<a href="javascript:window.pwned=1">x</a> javascript:window.pwned=1',
    "markdown": "[x](javascript:alert(1)) ![x](https://evil.invalid/y.png) "
    "$\\href{javascript:1}{x}$",
    "iframe": '<iframe srcdoc="<script>parent.pwned=1</script>"></iframe><link rel=stylesheet '
    "href=//evil.invalid>",
    "style": "</style><style>@import url(https://evil.invalid/z.css)</style> expression(alert(1))",
    "template": "${window.pwned=1} {{constructor.constructor('window.pwned=1')()}} &lt;b&gt; &#60;",
    "ansi": "\x1b[31mred\x1b]0;title\x07\x1b[2J\x9b31m\x9d0;t\x9c \x1bP+q\x1b\\",
    "rtl": "user\u202egnp.exe\u202c \u2066x\u2069 \u200f\u061c",
    "surrogates": "\ud83d alone \udc00 and 😀",
    "controls": "a\x00b\x08c\x0bd\x0ce\x7ff\r\ng\u2028h\u200bi\ufeffj",
    "tags": "plain\U000e0069\U000e0067\U000e006e",
}


def span_of(raw: str, text: str, start: int = 0) -> Span:
    at = raw.index(text, start)
    return Span(at, at + len(text))


def canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def example() -> ParseResult:
    """One call, one repair, one coercion; the origin of /a is the character 1."""
    comma = span_of(EXAMPLE, ",}")
    one = span_of(EXAMPLE, '1"')
    segment = Segment("call", Span(0, len(EXAMPLE)), Span(11, EXAMPLE.index("</tool")))
    origins = {"": Origin(Span(38, 49)), "/a": Origin(Span(one.start, one.end - 1))}
    call = ToolCall(
        index=0,
        segment_index=0,
        name="f",
        name_span=Span(21, 22),
        wire_id=None,
        protocol="hermes",
        status="ok",
        confidence=1.0,
        source_json='{"a":"1"}',
        arguments_json='{"a":1}',
        edits=(Edit(Span(comma.start, comma.start + 1), "", "rjson.trailing-comma"),),
        steps=(Step("coerce", "coerce.integer-from-string", "/a", origins["/a"].span, "1", 1),),
        segment=segment,
        origins=OriginTable(lambda: origins),
    )
    return ParseResult(EXAMPLE, "hermes", ParseOptions(), (segment,), (call,), ())


def plain(raw: str = "Just text & <b>no call</b>.") -> ParseResult:
    return ParseResult(
        raw, "hermes", ParseOptions(), (Segment("text", Span(0, len(raw))),) if raw else (), (), ()
    )


def several() -> ParseResult:
    """Reasoning, a repaired and coerced call that breaks its schema, an unknown tool, a truncated
    call."""
    raw = (
        "<think>Weather 😀 & news.</think>I will check.\n"
        '<tool_call>{"name": "get_weather", "parameters": {"city": "Zürich 😀", "days": "3", '
        "\"units\": 'metric', "
        '"options": {"hourly": "true", "fields": "wind, rain\u202e\x1b[31m"},}}</tool_call>\n'
        '<tool_call>{"name": "nws", "arguments": {"topic": 5</tool_call> and then '
        '<tool_call>{"name": "cut", "argum'
    )
    think = raw.index("</think>")
    first = raw.index("<tool_call>")
    first_end = raw.index("</tool_call>") + 12
    second = raw.index("<tool_call>", first_end)
    second_end = raw.index("</tool_call>", second) + 12
    third = raw.index("<tool_call>", second_end)
    segments = (
        Segment("reasoning", Span(0, think + 8), Span(7, think)),
        Segment("text", Span(think + 8, first)),
        Segment("call", Span(first, first_end), Span(first + 11, first_end - 12)),
        Segment("text", Span(first_end, second)),
        Segment("call", Span(second, second_end), Span(second + 11, second_end - 12)),
        Segment("text", Span(second_end, third)),
        Segment("call", Span(third, len(raw)), Span(third + 11, len(raw)), closed=False),
    )
    fields = span_of(raw, "wind, rain\u202e\x1b[31m")
    days = span_of(raw, '3", "units')
    hourly = span_of(raw, 'true"')
    origins = {
        "/city": Origin(span_of(raw, "Zürich 😀")),
        "/days": Origin(Span(days.start, days.start + 1)),
        "/units": Origin(span_of(raw, "metric")),
        "/options": Origin(
            span_of(raw, '{"hourly": "true", "fields": "wind, rain\u202e\x1b[31m"}')
        ),
        "/options/hourly": Origin(Span(hourly.start, hourly.end - 1)),
        "/options/fields": Origin(fields),
        "/options/fields/0": Origin(Span(fields.start, fields.start + 4)),
        "/options/fields/1": Origin(Span(fields.start + 6, fields.end)),
    }
    text = "wind, rain\u202e\x1b[31m"
    found = {
        "city": "Zürich 😀",
        "days": "3",
        "units": "metric",
        "options": {"hourly": "true", "fields": text},
    }
    given = {**found, "days": 3, "options": {"hourly": True, "fields": text.split(", ")}}
    quoted = span_of(raw, "'metric'")
    comma = span_of(raw, "},}").start + 1
    weather = ToolCall(
        index=0,
        segment_index=2,
        name="get_weather",
        name_span=span_of(raw, "get_weather"),
        wire_id=None,
        protocol="hermes",
        status="ok",
        confidence=1.0,
        source_json=canonical(found),
        arguments_json=canonical(given),
        edits=(
            Edit(Span(quoted.start, quoted.start + 1), '"', "rjson.single-quotes"),
            Edit(Span(quoted.end - 1, quoted.end), '"', "rjson.single-quotes"),
            Edit(Span(comma, comma + 1), "", "rjson.trailing-comma"),
        ),
        steps=(
            Step("read", "read.alias-arguments", "", None, "parameters", "arguments"),
            Step("coerce", "coerce.integer-from-string", "/days", origins["/days"].span, "3", 3),
            Step("coerce", "coerce.boolean-from-string", "/options/hourly", hourly, "true", True),
            Step(
                "coerce", "coerce.array-from-csv", "/options/fields", fields, text, text.split(", ")
            ),
        ),
        problems=(
            Problem(
                "validate",
                "validate.enum",
                "error",
                "'metric' is none of 'si', 'us'",
                "/units",
                origins["/units"].span,
            ),
        ),
        segment=segments[2],
        origins=OriginTable(lambda: origins),
    )
    five = raw.index("5</tool")
    news = ToolCall(
        index=1,
        segment_index=4,
        name="nws",
        name_span=span_of(raw, "nws"),
        wire_id="call_7",
        protocol="hermes",
        status="unknown_tool",
        confidence=0.8,
        source_json='{"topic":5}',
        arguments_json='{"topic":5}',
        edits=(Edit(Span(five + 1, five + 1), "}}", "rjson.missing-bracket"),),
        problems=(
            Problem(
                "read",
                "call.unknown-tool",
                "error",
                "no tool is called 'nws'",
                "",
                span_of(raw, "nws"),
            ),
        ),
        segment=segments[4],
        origins=OriginTable(lambda: {"/topic": Origin(Span(five, five + 1))}),
    )
    cut = ToolCall(
        index=2,
        segment_index=6,
        name="cut",
        name_span=span_of(raw, "cut"),
        wire_id=None,
        protocol="hermes",
        status="truncated",
        confidence=1.0,
        source_json="",
        arguments_json="",
        problems=(
            Problem(
                "scan",
                "call.truncated",
                "error",
                "the text ended inside the call",
                "",
                Span(len(raw) - 5, len(raw)),
            ),
        ),
        segment=segments[6],
    )
    return ParseResult(raw, "hermes", ParseOptions(), segments, (weather, news, cut), ())


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
