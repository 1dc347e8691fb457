"""Read one answer."""

from __future__ import annotations

import sys
from typing import Any

from ...core.errors import BadOptions
from ...core.types import EXECUTABLE, ParseOptions
from ...entry.parse import parse
from ...notebook.page import export_html
from ...parser.recognition.attempts import example_spans, find_attempt, parameter_names
from ...views import render_ansi
from ...views.show import visible
from ..console import put, put_json, read_text, read_tools, say
from ..options import COLOR, CONFIG, POLICY, Option, color, settings_of, verb


@verb(
    "parse",
    CONFIG,
    Option("file", "a file with the model's text, - for standard input, or the text itself"),
    Option("--protocol PROTOCOL", "protocol id (default: auto)", default="auto"),
    Option("--tools FILE", "JSON file with the tool definitions"),
    POLICY,
    Option("--reasoning REASONING", "auto, prefilled or none (default: auto)", default="auto"),
    Option("--no-repair", "read strict bodies only"),
    Option("--no-recover", "read no calls outside their format"),
    Option("--json", "print the whole result as JSON"),
    Option("--html FILE", "write the parse view as one HTML file"),
    COLOR,
    examples=(
        "toolparse parse answer.txt --protocol hermes --tools tools.json",
        "curl -s $URL | toolparse parse - --json",
        'toolparse parse \'<tool_call>{"name": "f", "arguments": {}}</tool_call>\'',
    ),
)
def _parse(options: Any) -> int:
    """Parse one text and show the result. The exit code says whether its calls may be executed."""
    settings = settings_of(options)
    allowed = ParseOptions(
        repair=not options.no_repair,
        recover=not options.no_recover,
        coerce=settings["policy"],
        reasoning=options.reasoning,
    )
    if options.file == options.tools == "-":
        raise BadOptions("standard input is one of the text and the tools, not both")
    tools = read_tools(options.tools)
    raw = read_text(options.file)
    result = parse(raw, options.protocol, tools, allowed)
    # The page is written first: a full disk is told before anything is printed.
    if options.html:
        export_html(result, options.html)
    if options.json:
        put_json(result.to_dict())
    else:
        put(render_ansi(result, color=color(settings, sys.stdout)))
        if tools is None and result.calls:
            say(
                "toolparse: no tools were given, so names and arguments were not checked; "
                "--tools FILE checks them"
            )
    if result.calls:
        return 0 if all(call.verdict in EXECUTABLE for call in result.calls) else 1
    # Without a call the text may still show that one was tried, outside thoughts and examples.
    thoughts = [segment.span for segment in result.segments if segment.kind == "reasoning"]
    passed_over = [(span.start, span.end) for span in (*thoughts, *example_spans(result))]
    names = [tool.name for tool in result.tools]
    attempt = find_attempt(result.raw, names, sorted(passed_over), parameter_names(result.tools))
    if attempt is not None:
        say(f"toolparse: no call was read, though this looks like one: {visible(attempt.text)}")
    return 0 if result.ok and attempt is None else 1
