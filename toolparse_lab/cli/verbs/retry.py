"""`toolparse retry`."""

from __future__ import annotations

import argparse
from typing import Any

from ...experiment.plan_file import PlanFile
from ..asking import (
    Wish,
    add_asking,
    ask_and_report,
    check_wish,
    limits_of,
    with_credentials,
)
from ..gates import gates_of
from ..options import add_config, add_run, open_lab, settings_of
from ..output import say

EXAMPLES = ("toolparse retry latest --max-calls 100",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run and what every verb that asks has."""
    add_config(command)
    add_run(command)
    add_asking(command)


def run(options: Any) -> int:
    """Ask what a run has no answer to, and report the whole."""
    settings = settings_of(options)
    with open_lab(settings) as lab:
        before = lab.open(options.run)
        opened = with_credentials(lab, before, settings)
        wish = Wish(options.baseline, gates_of(options), settings["policy"])
        check_wish(opened.plan, options, wish)
        if not options.quiet:
            say(f"{before}")
        limits = limits_of(options, PlanFile(), settings)
        return ask_and_report(lab, lambda: lab.retry(opened, **limits), options, wish)
