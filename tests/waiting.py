"""Waiting for another process, however slow the machine is."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

PATIENCE = 600  # seconds; only what hangs takes so long


def wait_until(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Return once the condition holds; fail at once, with its output, where the process ended."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if process.poll() is not None:
            raise AssertionError(f"the process ended before: {process.communicate()}")
        if time.monotonic() > end:
            process.kill()
            raise AssertionError(f"nothing happened: {process.communicate()}")
        time.sleep(0.01)
