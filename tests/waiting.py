"""Waiting for another process or thread, however slow the machine is."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

PATIENCE = 600  # seconds; only what hangs takes so long


def wait_until(
    condition: Callable[[], object], process: subprocess.Popen[str] | None = None
) -> None:
    """Return once the condition holds; fail at once, with its output, where the process ended."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if process is not None and process.poll() is not None:
            raise AssertionError(f"the process ended before: {process.communicate()}")
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)


@contextmanager
def running(command: Sequence[Any], **more: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process whose output is read by the caller; kill it in the end, whatever happened."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options: dict[str, Any] = {**pipes, "text": True, "start_new_session": True, **more}
    process: subprocess.Popen[str] = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)  # with what it has started
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
