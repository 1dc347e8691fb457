"""`toolparse parse`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ...engine.parse import parse
from ...render import render_ansi
from ...types import ParseOptions
from ..inputs import read_text, read_tools
from ..options import add_color, add_config, add_policy, color, settings_of
from ..output import put, put_json, put_page

EXAMPLES = (
    "toolparse parse answer.txt --protocol hermes --tools tools.json",
    "curl -s $URL | toolparse parse - --json",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the text, its protocol and tools, and what the parser may do."""
    add_config(command)
    command.add_argument("file", help="a file with the model's text, or - for standard input")
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
    """Parse one text and show the result."""
    settings = settings_of(options)
    allowed = ParseOptions(
        repair=not options.no_repair,
        recover=not options.no_recover,
        coerce=settings["policy"],
        reasoning=options.reasoning,
    )
    result = parse(read_text(options.file), options.protocol, read_tools(options.tools), allowed)
    # The page is written first: a full disk is told before anything is printed.
    if options.html:
        put_page(result, options.html)
    if options.json:
        put_json(result.to_dict())
    else:
        put(render_ansi(result, color=color(settings, sys.stdout)))
    return 0
