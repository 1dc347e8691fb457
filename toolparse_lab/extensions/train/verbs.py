"""The command `sft`."""

from __future__ import annotations

from typing import Any

from ...cli.console import put_told
from ...cli.options import (
    CONFIG,
    JSON,
    READER,
    RUN,
    STORE,
    Option,
    need_lab,
    open_lab,
    settings_of,
    verb,
)


@verb(
    "sft",
    CONFIG,
    RUN,
    Option("--out FILE", "the file of JSON lines", required=True),
    Option(
        "--form",
        "answers with tool_calls, or as the model's text (default: as asked)",
        choices=("calls", "text"),
    ),
    STORE,
    *READER,
    JSON,
    examples=("toolparse sft latest --out train.jsonl",),
)
def _sft(options: Any) -> int:
    """Write the right answers of a run as rows to train on. Return 1 if there are none."""
    settings = settings_of(options)
    need_lab()
    from .rows import sft  # SQLAlchemy: 0.8 s, and an extra

    with open_lab(settings) as lab:
        written = sft(
            lab.open(options.run),
            options.out,
            form=options.form,
            protocol=options.protocol,
            policies=(settings["policy"],),
        )
    account = {"path": str(written.path), "rows": written.rows, "left_out": dict(written.left_out)}
    put_told(options.json, account, written)
    return 0 if written.rows else 1
