"""`toolparse noise`."""

from __future__ import annotations

import argparse
from typing import Any

from ..options import RUN_HELP, add_config, open_lab, settings_of
from ..sentences import add_sentences, check_sentences, show_sentences

EXAMPLES = (
    "toolparse noise latest",
    "toolparse run plan.toml --fresh && toolparse noise latest~1 latest",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the runs, which are of the same cases."""
    add_config(command)
    command.add_argument(
        "runs",
        nargs="*",
        default=["latest"],
        metavar="RUN",
        help=f"{RUN_HELP}; several are runs of the same cases, oldest first (default: latest)",
    )
    add_sentences(command)


def run(options: Any) -> int:
    """Say how far two runs of the same arm lie apart by chance."""
    settings = settings_of(options)
    check_sentences(options)
    with open_lab(settings) as lab:
        first, *others = (lab.open(name) for name in options.runs)
        noise = first.noise(*others, policy=settings["policy"])
        return show_sentences(
            first.run_id, "Noise", str(noise), noise.frame(), options, note=noise.note
        )
