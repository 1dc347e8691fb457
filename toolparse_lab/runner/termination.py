"""SIGTERM, and the end of a terminal, as the interrupt that Ctrl-C is."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

_INTERRUPTED = 130
"""The exit code of Ctrl-C: 128 and the number of its signal, as shells count."""


class Ending:
    """code: the exit code of an interrupted command, by the signal that came."""

    code = _INTERRUPTED

    def exit_code(self, code: int) -> int:
        """Return the code of a command that says itself that it was interrupted."""
        return self.code if code == _INTERRUPTED else code


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[Ending]:
    """Let a SIGTERM, or the end of the terminal, be a KeyboardInterrupt inside.

    Whoever has a handler of their own keeps it.
    """
    ending = Ending()

    def interrupt(number: int, frame: Any) -> None:
        ending.code = 128 + number
        raise KeyboardInterrupt

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has one of them
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, interrupt)
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
