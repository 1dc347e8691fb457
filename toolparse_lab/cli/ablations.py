"""The ablation on the command line: of a run, or of the recording that ships with the package."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..core.errors import BadOptions
from ..evals.cases.shipped import example_recording
from ..experiments.ablation import Ablation
from ..experiments.ablation.ablation import WRITERS
from ..experiments.ablation.example import example_ablation
from ..experiments.ablation.figures import FIGURES
from ..experiments.ablation.frames import BY
from ..experiments.ablation.tools import check_names
from ..lab import Lab
from ..runner.exchange.summary import LIMITS
from ..runner.settings import Settings
from .asking import with_credentials
from .options import check_kinds, open_lab
from .output import put, put_json, say


def show_ablation(options: Any, settings: Settings) -> int:
    """Write the figures and files asked for, and return the exit code."""
    _check(options)
    with _ablation(options, settings) as ablation:
        if options.by:
            ablation = ablation.grouped(options.by)
        for file in options.out:
            ablation.save(file)
        names = options.figures or ()
        if options.json:
            put_json(ablation.to_dict(*names))
        else:
            put(ablation.text(*names))
        return 3 if options.ask and ablation.missing else 0


def _check(options: Any) -> None:
    """Raise BadOptions for figures that do not exist and files that could not be written, before
    anything is read or asked.
    """
    check_names(options.figures or (), FIGURES, "an ablation has no such figure")
    check_names(options.by or (), BY, "an ablation is not grouped by this")
    check_kinds(options.out, WRITERS, "an ablation is")
    if options.shipped and (options.ask or options.run != "latest"):
        raise BadOptions("the shipped recording is no run, and asks nobody", got="--shipped")


@contextmanager
def _ablation(options: Any, settings: Settings) -> Iterator[Ablation]:
    """Yield the ablation of a run, or of the shipped recording, while its store is open."""
    chosen = {"policy": options.policy} if options.policy else {}
    if options.shipped:
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
