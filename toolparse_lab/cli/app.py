"""`main`: one command, its exit code, and what becomes of errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

from ..errors import ToolparseError
from ..exchange.redaction import redact_exact
from ..runner.termination import terminated_as_interrupted
from .hints import as_flags
from .parser import lazy_parser
from .streams import shell_streams


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no error leaves it as a traceback of Python's own.

    argv: the words behind `toolparse`; None takes them from the process. Leaves by SystemExit for
    wrong usage, `--help` and `--version`, as argparse does.
    """
    with shell_streams():
        parser = lazy_parser()
        try:
            options = parser.parse_args(argv)
        except SystemExit:
            if _failed_output():
                return 3
            raise
        if options.command is None:
            parser.print_help()
            return 3 if _failed_output() else 0
        with terminated_as_interrupted():
            return _exit_code(options)


def _exit_code(options: Any) -> int:
    """The exit code of a command that was parsed; its errors are printed to standard error."""
    try:
        code: int = options.run_verb(options)
        # Here, so that a full disk is noticed inside the try.
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(file=sys.stderr)
        _complain("interrupted; what was recorded is kept")
        return 130
    except Exception as e:
        message, code = _complaint(e)
        if message is None:
            print(redact_exact(traceback.format_exc()), end="", file=sys.stderr)
            message = "this should not happen; please report it with what stands above"
        _complain(message)
        _failed_output()
    return code


def _complaint(e: Exception) -> tuple[str | None, int]:
    """One sentence about an error, None where nobody thought of it; the exit code."""
    if isinstance(e, ToolparseError):
        return as_flags(str(e)), e.exit_code
    if isinstance(e, OSError):
        place = f"{e.filename}: " if e.filename else ""
        return f"{place}{e.strerror or e}", 3
    if isinstance(e, RecursionError):
        return "something in the input is nested deeper than this program reads", 2
    if isinstance(e, MemoryError):
        return "there is not enough memory for this", 3
    if isinstance(e, ValueError) and "null byte" in str(e):
        return "the name of a file holds a NUL character, which no file can have", 2
    # Python's own code for this would be 1, which says that a gate failed.
    return None, 3


def _failed_output() -> bool:
    """Write out what standard output holds back; True, with a complaint, where that fails."""
    try:
        sys.stdout.flush()
    except OSError as e:
        _complain(_complaint(e)[0] or "")
        return True
    return False


def _complain(message: str) -> None:
    """Write one complaint to standard error."""
    print(f"toolparse: {redact_exact(message)}", file=sys.stderr)
