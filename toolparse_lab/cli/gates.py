"""Thresholds of a report: the flags that set them, and the result of a gate as an exit code."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import BadOptions
from .output import records, say

if TYPE_CHECKING:
    from ..experiments.run import Run


def add_gate(command: argparse.ArgumentParser) -> None:
    """`--fail-under` and `--gate`."""
    command.add_argument(
        "--fail-under",
        type=float,
        metavar="RATE",
        help="exit code 1 where a cell's success is below, or not known",
    )
    command.add_argument(
        "--confident",
        action="store_true",
        help="--fail-under holds the lower end of the interval to it, not the rate",
    )
    command.add_argument(
        "--gate",
        action="append",
        default=[],
        metavar="COLUMN=BOUND",
        help="exit code 1 where a cell does not keep another bound, such as coercion_rate=0.2; "
        "may be repeated",
    )


def gates_of(options: Any, more: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the thresholds of the flags by column.

    They go before `more`. Raises BadOptions.
    """
    bounds = dict(more or {})
    if options.fail_under is not None:
        bounds["ci_low" if options.confident else "success"] = options.fail_under
    for text in options.gate:
        column, _, bound = text.partition("=")
        try:
            bounds[column.strip()] = float(bound)
        except ValueError:
            raise BadOptions(
                "--gate is a column and its bound", got=text, expected="coercion_rate=0.2"
            ) from None
    return bounds


def gate_json(gate: Any) -> Any:
    """Return a gate's result for JSON: whether it passed, and each check.

    None without a gate.
    """
    return None if gate is None else {"ok": gate.ok, "checks": records(gate.frame)}


def exit_code_of(passed: bool, complete: bool) -> int:
    """Return the exit code of a verdict.

    Missing answers go before it: nothing holds over them.
    """
    if not complete:
        return 3
    return 0 if passed else 1


def all_complete(*runs: Run) -> bool:
    """Return True if every trial of the runs has an answer.

    Names each run that lacks some.
    """
    lacking = [run for run in runs if run.missing]
    for run in lacking:
        say(
            f"toolparse: run {run.run_id} is not whole: {run.missing} of {len(run.plan.items)} "
            "trials have no answer "
            "and were not judged; `toolparse retry` asks for them"
        )
    return not lacking
