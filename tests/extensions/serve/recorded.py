"""What a proxy or a recorder has written, as trials of the lab."""

from __future__ import annotations

from pathlib import Path

import toolparse_lab as tp
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.experiments.run import Run


def recorded_run(lab: tp.Lab, app: str = "app") -> Run:
    """The answers of an application in a store."""
    return lab.live(app)


def recorded_trials(path: Path, app: str = "app") -> list[Trial]:
    """The same as trials."""
    with tp.Lab(path) as lab:
        return list(recorded_run(lab, app).trials())
