"""`main`: one command, its exit code, and what becomes of errors."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from ..errors import ToolparseError
from ..runner.termination import terminated_as_interrupted
from .hints import as_flags
from .parser import lazy_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no error leaves it as a traceback of Python's own.

    argv: the words behind `toolparse`; None takes them from the process. Leaves by SystemExit for
    wrong usage, `--help` and `--version`, as argparse does.
    """
    parser = lazy_parser()
    options = parser.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A terminal that cannot show a character ends no command.
            stream.reconfigure(errors="backslashreplace")
    if options.command is None:
        parser.print_help()
        return 0
    with terminated_as_interrupted():
        return _exit_code(options)


def _exit_code(options: Any) -> int:
    """The exit code of a command that was parsed; its errors are printed to standard error."""
    try:
        code: int = options.run_verb(options)
        # Here, so that a reader that went away is noticed inside the try.
        sys.stdout.flush()
    except ToolparseError as e:
        _complain(as_flags(str(e)))
        return e.exit_code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        _complain("interrupted; what was recorded is kept")
        return 130
    except BrokenPipeError:
        # The reader went away (a pager, head): that is no fault, and Python must not complain of it
        # at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as e:
        place = f"{e.filename}: " if e.filename else ""
        _complain(f"{place}{e.strerror or e}")
        return 3
    except Exception:
        # Python's own code for this would be 1, which says that a gate failed.
        traceback.print_exc()
        _complain("this should not happen; please report it with what stands above")
        return 3
    return code


def _complain(message: str) -> None:
    """Write one complaint to standard error."""
    print(f"toolparse: {message}", file=sys.stderr)
