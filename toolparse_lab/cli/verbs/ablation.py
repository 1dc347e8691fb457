"""`toolparse ablation`."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import BadOptions
from ...exchange.summary import LIMITS
from ..asking import add_limits, with_credentials
from ..options import (
    add_config,
    add_json,
    add_run,
    add_store,
    check_folder,
    names,
    need_lab,
    open_lab,
    settings_of,
)
from ..output import put, put_json, say

if TYPE_CHECKING:
    from ...ablation import Ablation
    from ...settings import Settings

EXAMPLES = (
    "toolparse ablation --shipped",
    "toolparse run --cases cases.jsonl --models qwen --protocols hermes --set "
    "type_rules=false,true && toolparse ablation latest --ask --out ablation.html",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the run, what may be asked, and what is shown and written."""
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
    """Show what each layer of type safety is worth; 3 where an answer that was asked is missing."""
    settings = settings_of(options)
    need_lab()
    _check(options)
    with _ablation(options, settings) as ablation:
        if options.by:
            ablation = ablation.grouped(options.by)
        for file in options.out:
            ablation.save(file)
        if options.json:
            put_json(ablation.to_dict(*options.figures or ()))
        else:
            put(ablation.text(*options.figures or ()))
        return 3 if options.ask and ablation.missing else 0


def _check(options: Any) -> None:
    """Raise BadOptions for figures that do not exist and files that could not be written."""
    # pandas and SciPy: 2 s, and an extra
    from ...ablation.figures import BY, FIGURES, check_names
    from ...ablation.pages import WRITERS  # the same

    check_names(options.figures or (), FIGURES, "an ablation has no such figure")
    check_names(options.by or (), BY, "an ablation is not grouped by this")
    for file in options.out:
        if Path(file).suffix.lower() not in WRITERS:
            raise BadOptions(
                "an ablation is not written as this kind of file",
                got=Path(file).name,
                expected=", ".join(WRITERS),
            )
        check_folder(file)
    if options.shipped and (options.ask or options.run != "latest"):
        raise BadOptions("the shipped recording is no run, and asks nobody", got="--shipped")


@contextmanager
def _ablation(options: Any, settings: Settings) -> Iterator[Ablation]:
    """The ablation of a run, or of the shipped recording, while its store is open."""
    chosen = {"policy": options.policy} if options.policy else {}
    if options.shipped:
        from ...ablation.example import example_ablation  # pandas and SciPy: 2 s, and an extra
        from ...evals.cases.shipped import example_recording  # the same
        from ...lab import Lab  # SQLAlchemy: 0.8 s, and an extra

        with tempfile.TemporaryDirectory() as folder, Lab(Path(folder) / "runs.db") as lab:
            lab.replaying(example_recording(ablation=True))
            yield example_ablation(lab, progress=False, **chosen)
        return
    with open_lab(settings) as lab:
        run = lab.open(options.run)
        if not options.ask:
            yield lab.ablation(run, ask=False, **chosen)
            return
        limits = {name: settings[name] for name in LIMITS}
        progress = False if options.quiet else None
        opened = with_credentials(lab, run, settings)
        ablation = lab.ablation(opened, progress=progress, **chosen, **limits)
        say(f"{ablation}")
        yield ablation
