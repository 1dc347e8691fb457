"""`toolparse check`."""

from __future__ import annotations

import argparse
from typing import Any

from ...core.errors import BadPlan
from ...experiments.plan_file import models_of
from ..options import add_config, add_json, add_store, names, open_lab, settings_of
from ..output import put, put_json, records

EXAMPLES = ("toolparse check --models qwen,small --protocols native,hermes",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the models and protocols, one canary for each pair."""
    add_config(command)
    command.add_argument(
        "--models",
        type=names,
        metavar="A,B",
        help="configured models (default: all), or model strings",
    )
    command.add_argument(
        "--protocols", type=names, metavar="A,B", help="prompt protocols (default: native,hermes)"
    )
    command.add_argument("--stream", action="store_true", help="ask for a stream, as a plan may")
    add_store(command)
    add_json(command)


def run(options: Any) -> int:
    """Ask the canaries: 1 if a cell failed, 3 where one has no answer."""
    settings = settings_of(options)
    models = models_of(options.models or list(settings.tables), settings)
    if not models:
        raise BadPlan(
            "there are no models to check", hint="name them: --models …, or configure some"
        )
    # The answers are recorded: `toolparse run` refuses native arms whose check has failed.
    with open_lab(settings, must_be=False) as lab:
        check = lab.check(models, options.protocols or ["native", "hermes"], stream=options.stream)
    if options.json:
        put_json(records(check.frame()))
    else:
        put(str(check))
    if check.failed:
        return 1
    unanswered = any(cell.completion is None or not cell.completion.ok for cell in check)
    return 3 if unanswered else 0
