"""`toolparse compare`."""

from __future__ import annotations

import argparse
from typing import Any

from ..comparing import add_comparison, show_comparison
from ..options import RUN_HELP, add_config, add_store, check_folder, open_lab, settings_of

EXAMPLES = ("toolparse compare latest hermes morph_xml --within model --fail-on-regression",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run and its two sides."""
    add_config(command)
    command.add_argument("run", metavar="RUN", help=RUN_HELP)
    command.add_argument("a", help="the old one")
    command.add_argument("b", help="the new one")
    add_store(command)
    add_comparison(command)
    command.add_argument(
        "--pairs",
        type=int,
        metavar="N",
        help="how many pairs this one was picked from (default: all of the run; 1 where it was "
        "chosen before the run)",
    )


def run(options: Any) -> int:
    """Compare two arms, protocols or models of one run."""
    settings = settings_of(options)
    # Reading runs may take long, so an impossible file is told first.
    check_folder(options.out)
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        comparison = run.compare(
            options.a,
            options.b,
            within=options.within,
            policy=settings["policy"],
            cluster=options.cluster,
            pairs=options.pairs,
        )
        return show_comparison(comparison, options, run)
