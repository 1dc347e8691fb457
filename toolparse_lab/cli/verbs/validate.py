"""`toolparse validate`."""

from __future__ import annotations

import argparse
from typing import Any

from ...core.errors import UnreadableInput
from ...evals.cases.checks import validate_cases
from ...views.show import visible
from ..hints import as_flags
from ..options import add_columns, add_config, add_json, need, settings_of
from ..output import put, put_json

EXAMPLES = ("toolparse validate cases.jsonl --strict",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the cases, and how strict to be."""
    add_config(command)
    command.add_argument(
        "cases", nargs="?", help="a file of cases, or bfcl (default: the setting `cases`)"
    )
    add_columns(command)
    command.add_argument(
        "--strict", action="store_true", help="exit code 1 where a case is doubtful"
    )
    add_json(command)


def run(options: Any) -> int:
    """Check a file of cases: 2 where one is wrong, 1 if one is doubtful and that matters."""
    # Cases may be a table, which pandas reads.
    need("lab", "pandas")
    source = options.cases or settings_of(options)["cases"]
    if source is None:
        raise UnreadableInput(
            "there are no cases to validate", hint="name a file: toolparse validate cases.jsonl"
        )
    report = validate_cases(source, columns=options.columns)
    if options.json:
        put_json(report.to_dict())
    else:
        put(visible(as_flags(str(report))))
    if not report.ok:
        return 2
    return 1 if options.strict and report.doubts else 0
