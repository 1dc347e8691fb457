"""`toolparse retry`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ...experiments.plan_file import PlanFile
from ..asking import (
    Wish,
    add_asking,
    ask_and_report,
    check_wish,
    limits_of,
    recorded_baseline,
    with_credentials,
)
from ..gates import gates_of
from ..options import add_config, add_run, open_lab, settings_of
from ..output import say

if TYPE_CHECKING:
    from ...experiments.run import Run

EXAMPLES = ("toolparse retry latest --max-calls 100",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run and the options of every verb that asks."""
    add_config(command)
    add_run(command)
    add_asking(command)


def run(options: Any) -> int:
    """Ask the questions a run has no answer to, and report the whole."""
    settings = settings_of(options)
    with open_lab(settings) as lab:
        before = lab.open(options.run)
        opened = with_credentials(lab, before, settings)
        wish = Wish(
            options.baseline or recorded_baseline(before, options),
            gates_of(options),
            settings["policy"],
        )
        check_wish(opened.plan, options, wish)
        if not options.quiet:
            say(_intention(before, options.fresh))
        limits = limits_of(options, PlanFile(), settings)
        return ask_and_report(lab, lambda: lab.retry(opened, **limits), options, wish)


def _intention(before: Run, fresh: bool) -> str:
    """Return the line about what is asked again of a run."""
    total = len(before.plan.items)
    if fresh:
        return f"run {before.run_id}: all {total:,} questions are asked again"
    if not before.missing:
        return f"run {before.run_id} lacks no answer, so nothing is asked"
    return f"run {before.run_id}: {before.missing:,} of {total:,} answers are missing and asked for"
