"""`toolparse demo`."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..options import add_color, add_config, color, need_lab, settings_of

EXAMPLES = ("toolparse demo --out .demo",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the folder and the budget of time."""
    add_config(command)
    command.add_argument(
        "--out",
        default=".demo",
        metavar="DIR",
        help="where store, report and notebook go (default: .demo)",
    )
    command.add_argument(
        "--budget",
        type=float,
        default=None,
        metavar="SECONDS",
        help="time for the model (default: 150)",
    )
    command.add_argument(
        "--fresh", action="store_true", help="ask again what an earlier demo recorded"
    )
    add_color(command)


def run(options: Any) -> int:
    """Run the demo: 3 where an answer failed, 130 if it was interrupted."""
    need_lab()
    from ..demo import BUDGET, run_demo  # the lab, with SQLAlchemy: 0.8 s, and an extra

    budget = BUDGET if options.budget is None else options.budget
    colored = color(settings_of(options), sys.stdout)
    run = run_demo(options.out, budget=budget, fresh=options.fresh, color=colored)
    # Ctrl-C ends the model, not the demo: its report shows what there is.
    summary = run.summary
    if summary is not None and summary.stopped == "interrupted":
        return 130
    return 3 if summary is not None and summary.failed else 0
