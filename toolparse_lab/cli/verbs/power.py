"""`toolparse power`."""

from __future__ import annotations

import argparse
from typing import Any

from ...core.errors import BadOptions
from ..options import add_config, add_run, open_lab, settings_of
from ..sentences import add_sentences, check_sentences, show_sentences

EXAMPLES = (
    "toolparse power latest",
    "toolparse power latest hermes morph_xml --drop 0.03",
    "toolparse power latest --again --out power.csv",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run, the two sides, the drop and how sure the answer must be."""
    add_config(command)
    add_run(command)
    command.add_argument(
        "a",
        nargs="?",
        metavar="A",
        help="an arm, model or protocol (default: every two cells that differ in one thing)",
    )
    command.add_argument("b", nargs="?", metavar="B", help="the one to compare it with")
    command.add_argument(
        "--drop", type=float, default=0.05, help="the drop to be found, a share (default: 0.05)"
    )
    command.add_argument(
        "--again",
        action="store_true",
        default=None,
        help="of each cell against a later run of the same cases",
    )
    command.add_argument(
        "--power", type=float, default=0.8, help="how often it must be found (default: 0.8)"
    )
    command.add_argument(
        "--alpha", type=float, default=0.05, help="level of the two-sided test (default: 0.05)"
    )
    add_sentences(command)


def run(options: Any) -> int:
    """Say which drops the cases of a run can show, and how many a drop needs."""
    settings = settings_of(options)
    check_sentences(options)
    if options.a is not None and options.b is None:
        raise BadOptions(
            "power compares two names", got=options.a, hint=f"toolparse power {options.run} A B"
        )
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        table = run.power(
            options.drop,
            a=options.a,
            b=options.b,
            again=options.again,
            power=options.power,
            alpha=options.alpha,
            policy=settings["policy"],
        )
        return show_sentences(
            run.run_id, "Power", str(table), table.frame(), options, note=table.note
        )
