"""`toolparse ablation`."""

from __future__ import annotations

import argparse
from typing import Any

from ..asking import add_limits
from ..options import add_config, add_json, add_run, add_store, names, need_lab, settings_of

EXAMPLES = (
    "toolparse ablation --shipped",
    "toolparse run --cases cases.jsonl --models qwen --protocols hermes --set "
    "type_rules=false,true && toolparse ablation latest --ask --out ablation.html",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run, the limits of asking, and the part shown and written."""
    add_config(command)
    add_run(command)
    add_store(command)
    command.add_argument(
        "--shipped",
        action="store_true",
        help="the recording of the embedded model that ships with the package, instead of a run",
    )
    command.add_argument(
        "--ask", action="store_true", help="ask the models the corrections that are not recorded"
    )
    add_limits(command)
    command.add_argument("--quiet", action="store_true", help="no progress")
    command.add_argument(
        "--policy", help="coercion policy of layer 2 (default: that of the recording, else safe)"
    )
    command.add_argument(
        "--by", type=names, metavar="A,B", help="columns of the figures (default: model,protocol)"
    )
    command.add_argument(
        "--figures", type=names, metavar="A,B", help="which are shown (default: all)"
    )
    command.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="write .html, .md, .json, .csv (the cells) or .svg (the waterfall); may be repeated",
    )
    add_json(command)


def run(options: Any) -> int:
    """Show the effect of each layer of type safety is worth. 3 where an answer that was asked is
    missing.
    """
    settings = settings_of(options)
    need_lab()
    from ..ablations import show_ablation  # pandas and SciPy: 2 s, and an extra

    return show_ablation(options, settings)
