"""Runs of the shipped recording, for tests of what is done with a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import toolparse_lab as tp
from toolparse_lab.cli.demo import _plan_of, conversation_plan
from toolparse_lab.experiments.run import Run


def recorded_run(folder: Path, *, conversations: bool = False, every: int = 1, **plan: Any) -> Run:
    """The shipped recording as a run of a store in `folder`; `every`: each n-th case of it."""
    lab = tp.Lab(folder / "runs.db").replaying(tp.example_recording(conversations=conversations))
    planned = (
        conversation_plan(lab) if conversations else _plan_of(lab, tp.example_cases()[::every])
    )
    return lab.run(planned, progress=False, **plan)
