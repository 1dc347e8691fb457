"""`toolparse reparse`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import UnreadableInput
from ..options import (
    RUN_HELP,
    add_config,
    add_json,
    add_store,
    names,
    need_lab,
    open_lab,
    settings_of,
)
from ..output import put, put_json, say, table

if TYPE_CHECKING:
    from ...evals.frames.recorded import Frame
    from ...runner.settings import Settings

EXAMPLES = (
    "toolparse reparse latest --protocols hermes,auto --policies none,safe --out again.parquet",
    "toolparse reparse trials.parquet --protocols auto --out parts/ --workers 8",
)
_KEYS = ("parse_protocol", "policy", "outcome")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the source, its reader, and what the work is done with."""
    add_config(command)
    command.add_argument(
        "source",
        nargs="?",
        default="latest",
        help=f"{RUN_HELP}, or Parquet of trials, a file or a folder (default: latest)",
    )
    command.add_argument(
        "--protocols",
        type=names,
        metavar="A,B",
        help="what reads (default: what each prompt asked for)",
    )
    command.add_argument(
        "--policies",
        type=names,
        metavar="A,B",
        help="coercion policies (default: the setting `policy`)",
    )
    command.add_argument(
        "--engine", default="processes", help="processes, serial or dask (default: processes)"
    )
    command.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    command.add_argument("--client", metavar="ADDRESS", help="the scheduler of a Dask cluster")
    command.add_argument(
        "--out",
        metavar="PATH",
        help="write the trials frame: a .parquet file, or a folder of parts",
    )
    command.add_argument(
        "--overwrite", action="store_true", help="write where something is already"
    )
    add_store(command)
    add_json(command)


def run(options: Any) -> int:
    """Read recorded answers again and count their outcomes, or write the frame."""
    settings = settings_of(options)
    need_lab()
    trials = _trials(options, settings)
    if isinstance(trials, Path):
        say(f"wrote {trials}")
        if options.json:
            put_json({"path": str(trials)})
        return 0
    # A trial without an answer has no outcome, and is counted as such.
    keys = list(_KEYS)
    counts = trials.groupby(keys, observed=True, dropna=False).size().reset_index(name="n")
    rows = [tuple(row) for row in counts.astype(object).to_numpy()]
    if options.json:
        put_json([dict(zip([*keys, "n"], row, strict=True)) for row in rows])
    else:
        put(table([*keys, "n"], rows))
    return 0


def _trials(options: Any, settings: Settings) -> Frame | Path:
    """Return the trials of a file, a folder or a run, read again: a frame, or the path it was
    written to.

    Raises UnreadableInput for a path that leads nowhere, and the errors of `reparse`.
    """
    policies = options.policies or [settings["policy"]]
    settled: dict[str, Any] = {"to": options.out, "overwrite": options.overwrite}
    for name in ("engine", "workers", "client"):
        value = getattr(options, name)
        if value is not None:
            settled[name] = value
    # A path that is there goes before a run.
    if os.path.exists(options.source):
        from ...evals.reparse import reparse  # numpy: an extra

        trials: Frame | Path = reparse(options.source, options.protocols, policies, **settled)
        return trials
    if options.source.endswith(".parquet") or os.sep in options.source:
        raise UnreadableInput(f"{options.source}: there is no such file or folder")
    with open_lab(settings) as lab:
        again: Frame | Path = lab.reparse(
            lab.open(options.source), options.protocols, policies, **settled
        )
        return again
