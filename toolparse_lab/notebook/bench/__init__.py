"""The workbench: change a text or how it is read, and see the parse change."""

from __future__ import annotations

from .setup import setups_of
from .workbench import Desk, Workbench, bench_module, bench_style, workbench

__all__ = ["Desk", "Workbench", "bench_module", "bench_style", "setups_of", "workbench"]
