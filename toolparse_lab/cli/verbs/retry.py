"""`toolparse retry`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ...experiment.plan_file import PlanFile
from ..asking import Wish, add_asking, ask_and_report, check_wish, limits_of
from ..gates import gates_of
from ..options import add_config, add_run, open_lab, settings_of
from ..output import say

if TYPE_CHECKING:
    from ...experiment.run import Run
    from ...lab import Lab
    from ...settings import Settings

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
        opened = _with_credentials(lab, before, settings)
        wish = Wish(options.baseline, gates_of(options), settings["policy"])
        check_wish(opened.plan, options, wish)
        if not options.quiet:
            say(f"{before}")
        limits = limits_of(options, PlanFile(), settings)
        return ask_and_report(lab, lambda: lab.retry(opened, **limits), options, wish)


def _with_credentials(lab: Lab, before: Run, settings: Settings) -> Run:
    """The run opened again with the configured models, whose credentials no store holds."""
    configured = {
        alias: settings.model(alias) for alias in before.plan.models if alias in settings.tables
    }
    lab.models.update(configured)
    opened = lab.open(before.run_id)
    for alias, model in configured.items():
        # The lab takes a model only where it is the one that the run was planned with.
        if opened.plan.models[alias] is not model:
            say(
                f"toolparse: {alias} is configured otherwise than the run had it, and is "
                "asked as it was then"
            )
    return opened
