"""Write the frames of a run to a file."""

from __future__ import annotations

from typing import Any

from ..console import put_told
from ..options import (
    CONFIG,
    JSON,
    READER,
    RUN,
    STORE,
    Option,
    check_kinds,
    need_lab,
    open_lab,
    settings_of,
    verb,
)

_MAKERS = {"trials": "frame", "calls": "calls_df", "events": "events_df"}


@verb(
    "export",
    CONFIG,
    RUN,
    Option(
        "--frame",
        "a row per trial, per call, or per event of the parser (default: trials)",
        choices=("trials", "calls", "events"),
        default="trials",
    ),
    Option("--out FILE", "the file: .parquet, .csv or .jsonl", required=True),
    STORE,
    *READER,
    JSON,
    examples=(
        "toolparse export latest --out trials.parquet",
        "toolparse export latest --frame calls --out calls.csv",
    ),
)
def _export(options: Any) -> int:
    """Write a frame of a run. Return 1 if it has no row."""
    settings = settings_of(options)
    need_lab()
    check_kinds([options.out], (".parquet", ".csv", ".jsonl"), "a frame is")
    from ...evals.frames.files import write_frame  # pandas: 1 s, and an extra

    with open_lab(settings) as lab:
        run = lab.open(options.run)
        reading: Any = {"protocol": options.protocol, "policies": (settings["policy"],)}
        frame = getattr(run, _MAKERS[options.frame])(**reading)
        path = write_frame(frame, options.out)
    account = {"path": str(path), "frame": options.frame, "rows": len(frame)}
    put_told(options.json, account, f"{len(frame):,} rows in {path}")
    return 0 if len(frame) else 1
