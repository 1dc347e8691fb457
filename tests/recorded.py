"""Runs of the shipped recording, for tests of what is done with a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import toolparse_lab as tp
from toolparse_lab.cli.demo import conversation_plan, recording_plan
from toolparse_lab.experiments.run import Run


def recorded_run(folder: Path, *, conversations: bool = False, **plan: Any) -> Run:
    """The shipped recording as a run of a store in `folder`."""
    lab = tp.Lab(folder / "runs.db").replaying(tp.example_recording(conversations=conversations))
    planned = conversation_plan(lab) if conversations else recording_plan(lab)
    return lab.run(planned, progress=False, **plan)
