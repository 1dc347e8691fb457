"""`main`: one command, its exit code, and the handling of errors."""

from __future__ import annotations

import atexit
import gc
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from ..core import VERSION
from ..core.errors import ToolparseError
from ..runner.exchange.redaction import redact_exact
from ..runner.termination import terminated_as_interrupted
from .console import as_flags, shell_streams, shortened

# The verbs that write into a store while they work.
_RECORDING = ("ingest", "run", "check")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. No error leaves it as a traceback.

    argv: the words after `toolparse`. None takes them from the process. Leaves by SystemExit for
    wrong usage, `--help` and `--version`, as argparse does.
    """
    if argv is None:
        _collect_rarely()
    with shell_streams(), terminated_as_interrupted() as ending:
        options = None
        try:
            if (sys.argv[1:] if argv is None else [*argv]) == ["--version"]:
                print(f"toolparse_lab {VERSION}")  # without what the verbs need
                raise SystemExit(0)
            # These and the verb's file are imported here, which Ctrl-C may interrupt as well.
            from .parser import lazy_parser

            parser = lazy_parser()
            options = parser.parse_args(argv)
            if options.command is None:
                parser.print_help()
                return 3 if _failed_output() else 0
            return ending.exit_code(_exit_code(options))
        except SystemExit:
            if _failed_output():
                return 3
            raise
        except KeyboardInterrupt:
            print(file=sys.stderr)
            recording = options is not None and options.command in _RECORDING
            _complain("interrupted; what was recorded is kept" if recording else "interrupted")
            return ending.code


def _collect_rarely() -> None:
    # The process is this command's own. Most of its objects are those of imported packages, which
    # the collector would go through again and again, and for a second before the process ends.
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)


def _exit_code(options: Any) -> int:
    """Run a command that was parsed, its errors printed to standard error."""
    try:
        code: int = options.run_verb(options)
        # Here, so that a full disk is noticed inside the try.
        sys.stdout.flush()
    except Exception as e:
        message, code = _complaint(e)
        if message is None:
            print(redact_exact(traceback.format_exc()), end="", file=sys.stderr)
            message = "this should not happen; please report it with what stands above"
        _complain(message)
        _failed_output()
    return code


def _complaint(e: Exception) -> tuple[str | None, int]:
    """Return one sentence about an error, None for an unexpected one, and the exit code."""
    if isinstance(e, ToolparseError):
        return as_flags(shortened(e)), e.exit_code
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
    """Flush standard output. True, with a complaint, where that fails."""
    try:
        sys.stdout.flush()
    except OSError as e:
        _complain(_complaint(e)[0] or "")
        return True
    return False


def _complain(message: str) -> None:
    print(f"toolparse: {redact_exact(message)}", file=sys.stderr)
