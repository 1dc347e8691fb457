"""`toolparse parse`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ...core.errors import BadOptions
from ...core.types import EXECUTABLE, ParseOptions, ParseResult
from ...notebook.page import export_html
from ...parser.attempt import Attempt, example_spans, find_attempt, parameter_names
from ...parser.parse import parse
from ...views import render_ansi
from ...views.show import visible
from ..inputs import read_text, read_tools
from ..options import add_color, add_config, add_policy, color, settings_of
from ..output import put, put_json, say

EXAMPLES = (
    "toolparse parse answer.txt --protocol hermes --tools tools.json",
    "curl -s $URL | toolparse parse - --json",
    'toolparse parse \'<tool_call>{"name": "f", "arguments": {}}</tool_call>\'',
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the text, its protocol and tools, and the options of the parser."""
    add_config(command)
    command.add_argument(
        "file", help="a file with the model's text, - for standard input, or the text itself"
    )
    command.add_argument("--protocol", default="auto", help="protocol id (default: auto)")
    command.add_argument("--tools", metavar="FILE", help="JSON file with the tool definitions")
    add_policy(command)
    command.add_argument(
        "--reasoning", default="auto", help="auto, prefilled or none (default: auto)"
    )
    command.add_argument("--no-repair", action="store_true", help="read strict bodies only")
    command.add_argument(
        "--no-recover", action="store_true", help="read no calls outside their format"
    )
    command.add_argument("--json", action="store_true", help="print the whole result as JSON")
    command.add_argument("--html", metavar="FILE", help="write the parse view as one HTML file")
    add_color(command)


def run(options: Any) -> int:
    """Parse one text and show the result.

    The exit code says whether its calls may be executed.
    """
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
    result = parse(read_text(options.file), options.protocol, tools, allowed)
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
    return exit_code(result)


def exit_code(result: ParseResult) -> int:
    """0 if every call may be executed, or none was due.

    1 if one may not, or was lost.

    Without a call none was due where the text has no sign that one was tried. Text that looks like
    one is told on standard error.
    """
    if result.calls:
        return 0 if all(call.verdict in EXECUTABLE for call in result.calls) else 1
    attempt = _attempt(result)
    if attempt is not None:
        say(f"toolparse: no call was read, though this looks like one: {visible(attempt.text)}")
    return 0 if result.ok and attempt is None else 1


def _attempt(result: ParseResult) -> Attempt | None:
    """Return the first sign of a call in a text without calls.

    Thoughts and examples hold none.
    """
    thoughts = [segment.span for segment in result.segments if segment.kind == "reasoning"]
    passed_over = [(span.start, span.end) for span in (*thoughts, *example_spans(result))]
    names = [tool.name for tool in result.tools]
    return find_attempt(result.raw, names, sorted(passed_over), parameter_names(result.tools))
