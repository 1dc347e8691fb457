"""The `toolparse` command before its package is loaded, so that Ctrl-C is one line from the start.

It lies beside the package, because Python loads a package before any module in it.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # the module `typing` alone would take as long as this one
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn


def main() -> int:
    """Load the command line and run it on the words of this process. Return its exit code."""
    try:
        before = signal.signal(signal.SIGINT, _leave)
        from toolparse_lab.cli import main as run  # 0.2 s, in which Ctrl-C would be a traceback

        signal.signal(signal.SIGINT, before)
        return run()
    except KeyboardInterrupt:
        # Just before the command has taken over, or just after it has let go.
        _leave()


def _leave(number: int = signal.SIGINT, frame: FrameType | None = None) -> NoReturn:
    """Say that the command was interrupted and end the process.

    At once: an exception would be wrapped, or lost, by the code that is being imported.
    """
    try:
        os.write(2, b"\ntoolparse: interrupted\n")
    finally:
        # Also where standard error is closed.
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
