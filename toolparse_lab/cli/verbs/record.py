"""`toolparse record`."""

from __future__ import annotations

import argparse
from typing import Any

from ..options import need_lab
from ..output import say

EXAMPLES = ("toolparse record --out recording.jsonl",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the recording, and which cases it answers."""
    command.add_argument(
        "--out", required=True, metavar="FILE", help="the recording to write (JSONL)"
    )
    command.add_argument(
        "--store",
        default=None,
        metavar="FILE",
        help="store to work in (default: beside the recording)",
    )
    instead = command.add_mutually_exclusive_group()
    instead.add_argument(
        "--conversations", action="store_true", help="the shipped conversations instead"
    )
    instead.add_argument(
        "--ablation",
        action="store_true",
        help="the shipped ablation of type safety instead, with its corrections",
    )


def run(options: Any) -> int:
    """Record the embedded model over the shipped cases, conversations or ablation."""
    need_lab()
    # The lab, with SQLAlchemy: 0.8 s, and an extra.
    from ..record import conversation_plan, record_ablation, record_embedded, recording_plan

    if options.ablation:
        return record_ablation(options.out, options.store, say)
    make_plan = conversation_plan if options.conversations else recording_plan
    return record_embedded(options.out, options.store, say, planned=make_plan)
