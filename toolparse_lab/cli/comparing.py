"""The common part of `compare` and `diff`: flags, output and exit code of a comparison."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .gates import all_complete, exit_code_of
from .options import add_json, add_policy, names
from .output import put, put_json, records

if TYPE_CHECKING:
    from ..evals.reports.figures.comparison import ArmComparison
    from ..experiments.run import Run


def add_comparison(command: argparse.ArgumentParser) -> None:
    """The flags of a comparison: what is held fixed, what is a regression, where it is written."""
    command.add_argument("--within", type=names, metavar="A,B", help="columns to hold fixed")
    add_policy(command)
    command.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit code 1 where something became worse, or where it cannot be told",
    )
    command.add_argument(
        "--alpha", type=float, default=0.05, help="how sure a drop must be (default: 0.05)"
    )
    command.add_argument(
        "--margin", type=float, help="the drop that must be ruled out (default: 0.05)"
    )
    command.add_argument(
        "--confident",
        action="store_true",
        help="have it shown even where no case changed",
    )
    command.add_argument(
        "--cluster", metavar="COLUMN", help="what intervals go by (default: the case)"
    )
    # The old name of --margin.
    command.add_argument("--tolerance", type=float, help=argparse.SUPPRESS)
    command.add_argument(
        "--out", metavar="FILE", help="write the comparison: .html, .md, .csv or .parquet"
    )
    add_json(command)


def show_comparison(comparison: ArmComparison, options: Any, *runs: Run) -> int:
    """Write the comparison of `runs` and return the exit code."""
    from ..evals.reports.figures.comparison import MARGIN  # pandas: 1 s

    margin = next((x for x in (options.margin, options.tolerance) if x is not None), MARGIN)
    verdict = comparison.regression(options.alpha, margin=margin, confident=options.confident)
    if options.out:
        comparison.save(options.out)
    if options.json:
        put_json(
            {
                "a": comparison.a,
                "b": comparison.b,
                "on": comparison.on,
                "pairs": comparison.pairs,
                "rows": records(comparison.frame),
                "flips": records(comparison.flips),
                "notes": comparison.notes,
                "regression": {
                    "ok": verdict.ok,
                    "verdict": verdict.verdict,
                    "margin": verdict.margin,
                    "rows": records(verdict.frame),
                    "sentences": verdict.sentences,
                },
            }
        )
    else:
        put(f"{comparison}\n\n{verdict}")
    if not options.fail_on_regression:
        return 0
    return exit_code_of(verdict.ok, all_complete(*runs))
