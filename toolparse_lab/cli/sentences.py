"""The common part of `power`, `noise` and `ladder`: figures of a run that are told in sentences."""

from __future__ import annotations

import argparse
from typing import Any

from ..views.show import visible
from .options import add_json, add_policy, add_store, check_kinds, need_lab
from .output import put, put_json, records

_FILES = (".html", ".md", ".csv", ".parquet")
"""Those of `save_sentences`, whose module takes a second to import."""


def add_sentences(command: argparse.ArgumentParser) -> None:
    """`--store`, `--policy`, `--out` and `--json`."""
    add_store(command)
    add_policy(command)
    command.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="write .html, .md, .csv or .parquet; may be repeated",
    )
    add_json(command)


def check_sentences(options: Any) -> None:
    """Check the packages and the files, before anything is read.

    Raises MissingExtra and BadOptions.
    """
    need_lab()
    check_kinds(options.out, _FILES, "these figures are")


def show_sentences(
    run_id: str, title: str, text: str, frame: Any, options: Any, *, note: str = ""
) -> int:
    """Write figures to their files and to standard output, and return the exit code.

    text: one line per row of `frame`, which is a pandas frame, and the note. note: which cases
    count as one, '' for none.
    """
    from ..evals.reports.pages.files import save_sentences  # pandas: 1 s, and an extra

    for file in options.out:
        save_sentences(title, text, frame, file)
    if options.json:
        told = {"note": note} if note else {}
        put_json({"run_id": run_id, "rows": records(frame), **told})
    else:
        # Names of models and arms must not act on the terminal.
        put(visible(text))
    return 0
