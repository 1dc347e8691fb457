"""`toolparse ladder`."""

from __future__ import annotations

import argparse
from typing import Any

from ..options import add_config, add_run, open_lab, settings_of
from ..sentences import add_sentences, check_sentences, show_sentences

EXAMPLES = ("toolparse ladder latest --out ladder.md",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run."""
    add_config(command)
    add_run(command)
    add_sentences(command)


def run(options: Any) -> int:
    """Say what each layer of help gains, from the prompt to coercion."""
    settings = settings_of(options)
    check_sentences(options)
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        ladder = run.ladder(policy=settings["policy"])
        return show_sentences(
            run.run_id, "Ladder", str(ladder), ladder.frame, options, note=ladder.note
        )
