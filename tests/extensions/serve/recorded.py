"""What a proxy or a recorder has written, as trials of the lab."""

from __future__ import annotations

from pathlib import Path

import toolparse_lab as tp
from toolparse_lab.evals.scoring.trial import Trial


def recorded_trials(path: Path, app: str = "app") -> list[Trial]:
    """The answers of an application in a store."""
    with tp.Lab(path) as lab:
        trials = lab.ingest(lab.store).trials()
        return [trial for trial in trials if trial.case.metadata["app"] == app]
