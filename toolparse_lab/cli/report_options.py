"""Options of a report: its columns, its baseline and its files."""

from __future__ import annotations

import argparse
from typing import Any

from .options import check_folder, check_kinds, names


def add_report(command: argparse.ArgumentParser) -> None:
    """`--by`, `--baseline`, `--cluster` and `--out`."""
    command.add_argument(
        "--by",
        type=names,
        metavar="A,B",
        help="columns of the report (default: model and protocol)",
    )
    command.add_argument(
        "--baseline", metavar="NAME", help="the protocol, arm or model to compare with"
    )
    command.add_argument(
        "--cluster",
        metavar="COLUMN",
        help="what intervals go by, such as conversation_id (default: the case)",
    )
    command.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="write the report: .html, .md, .csv, .xlsx, .parquet, .tex or .xml (JUnit); may be "
        "repeated",
    )


def check_files(options: Any) -> None:
    """Raise BadOptions for files that could not be written in the end, before anything is spent."""
    from ..evals.reports.pages.files import WRITERS  # pandas and SciPy: 2 s, and an extra

    check_kinds(options.out, WRITERS, "a report is")
    check_folder(getattr(options, "recording", None))
