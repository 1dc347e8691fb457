"""`toolparse score`."""

from __future__ import annotations

import argparse
from typing import Any

from ..options import (
    add_config,
    add_json,
    add_reader,
    add_run,
    add_store,
    check_folder,
    open_lab,
    settings_of,
)
from ..output import put, put_json, records, table, terminal_width

EXAMPLES = (
    "toolparse score latest --outcome wrong_call",
    "toolparse score latest --out trials.parquet",
)
_COLUMNS = (
    "trial_id",
    "case_id",
    "model",
    "arm",
    "parse_protocol",
    "trial",
    "outcome",
    "sub_code",
    "score_success",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run, its reader, and which of its trials appear."""
    add_config(command)
    add_run(command)
    add_store(command)
    add_reader(command)
    command.add_argument(
        "--failed", action="store_true", help="only trials that failed, as run.failures() has them"
    )
    command.add_argument("--outcome", metavar="NAME", help="only trials of this outcome")
    command.add_argument(
        "--out", metavar="FILE", help="write the whole trials frame: .parquet or .csv"
    )
    add_json(command)


def run(options: Any) -> int:
    """Judge every trial of a run and list them."""
    settings = settings_of(options)
    check_folder(options.out)
    with open_lab(settings) as lab:
        frame = lab.open(options.run).frame(
            protocol=options.protocol, policies=(settings["policy"],)
        )
    # pandas is loaded by now: the frame is one.
    from ...evals.frames.files import write_frame  # pandas: an extra
    from ...evals.frames.recorded import failed_rows  # pandas: an extra

    if options.failed:
        frame = frame[failed_rows(frame)]
    # A trial without an answer has no outcome, and so not this one.
    if options.outcome:
        frame = frame[frame["outcome"].astype("string").eq(options.outcome).fillna(False)]
    # The file has every column of the frame, the terminal a few of them.
    if options.out:
        write_frame(frame.reset_index(drop=True), options.out)
    rows = records(frame[[column for column in _COLUMNS if column in frame]])
    if options.json:
        put_json(rows)
    else:
        head = [column for column in _COLUMNS if column in frame]
        put(table(head, [list(row.values()) for row in rows], width=terminal_width()))
    return 0
