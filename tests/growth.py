"""Whether work grows with its text and not with its square: ratios of CPU time, never seconds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

TIMES = 4
MOST = 8  # a square takes 16 times as long, and a loaded machine may take 6 for linear work
LOOKS = 4
FLOOR = 0.001  # seconds; below it the clock and the caches say more than the work


def grows_linearly(work: Callable[[int], object], size: int) -> bool:
    """Return whether four times the size takes at most eight times the CPU time.

    A square takes 16 times as long whenever it is asked; a machine with other work may slow down
    between two measurements, so the best of up to four looks counts.
    """
    small = large = float("inf")
    for _ in range(LOOKS):
        small = min(small, cpu_seconds(work, size))
        large = min(large, cpu_seconds(work, TIMES * size))
        if large <= MOST * max(small, FLOOR):
            return True
    return False


def cpu_seconds(work: Callable[[int], object], size: int) -> float:
    """The CPU time of a run, without the collector of garbage.

    Its full collections set in at some number of objects and make a step there, which is no growth
    of the work.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.process_time()
        work(size)
        return time.process_time() - start
    finally:
        if collecting:
            gc.enable()
