"""Recorded answers read again at size: by one process, by a pool of processes, or on a Dask
cluster.

The engines share one body, `evals.frames.reread.read_again`, and give the same rows in the same
order.
"""

from __future__ import annotations

from ..frames.answers import run_answers
from .engines import ENGINES, reparse

__all__ = ["ENGINES", "reparse", "run_answers"]
