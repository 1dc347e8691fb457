"""Parsers of other projects on this machine: fetched, listed, removed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ...cli.console import put, say
from ...cli.options import JSON, Option, verb
from ...core.errors import BadOptions
from .packages import add_reader, readers_added, remove_reader


@verb(
    "reader",
    Option("action", "what to do", choices=("add", "list", "remove")),
    Option("packages [PACKAGE==VERSION ...]", "vllm, sglang or transformers"),
    JSON,
    examples=(
        "toolparse reader add vllm==0.33.0 sglang==0.5.23",
        "toolparse reader list",
        "toolparse reader remove vllm==0.33.0",
    ),
)
def _reader(options: Any) -> int:
    """Add, list or remove readers. Returns the exit code."""
    if (options.action == "list") == bool(options.packages):
        raise BadOptions(
            f"reader {options.action} takes "
            + ("no packages" if options.action == "list" else "a package and its version"),
            got=" ".join(options.packages) or None,
            expected=None if options.action == "list" else "such as vllm==0.33.0",
        )
    if options.action == "list":
        shown = list(readers_added())
        if not shown and not options.json:
            say("toolparse: no reader was added; toolparse reader add vllm==0.33.0 adds one")
    elif options.action == "add":
        say("toolparse: fetching the parsers from the package index")
        shown = [add_reader(package) for package in options.packages]
    else:
        shown = [remove_reader(package) for package in options.packages]
    if options.json:
        put(json.dumps([asdict(one) for one in shown]))
        return 0
    for one in shown:
        if options.action == "remove":
            put(f"removed {one}")
        else:
            put(f"{one}: {', '.join(one.parsers)}")
    return 0
