"""`toolparse diff`."""

from __future__ import annotations

import argparse
from typing import Any

from ..comparing import add_comparison, show_comparison
from ..options import RUN_HELP, add_config, add_store, check_folder, open_lab, settings_of

EXAMPLES = ("toolparse diff latest~1 latest --fail-on-regression --out diff.html",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the two runs."""
    add_config(command)
    command.add_argument(
        "a", metavar="OLD", nargs="?", default="latest~1", help=f"{RUN_HELP} (default: latest~1)"
    )
    command.add_argument(
        "b", metavar="NEW", nargs="?", default="latest", help="the same (default: latest)"
    )
    add_store(command)
    add_comparison(command)


def run(options: Any) -> int:
    """Compare two runs of one store."""
    settings = settings_of(options)
    # Reading runs may take long, so an impossible file is told first.
    check_folder(options.out)
    with open_lab(settings) as lab:
        old, new = lab.open(options.a), lab.open(options.b)
        comparison = lab.diff(
            old, new, within=options.within, policy=settings["policy"], cluster=options.cluster
        )
        return show_comparison(comparison, options, old, new)
