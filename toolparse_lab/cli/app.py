"""`main`: one command, its exit code, and what becomes of errors."""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from collections.abc import Sequence

from .. import __version__
from ..errors import ToolparseError
from . import asking, judging, local, reading, recorded, reread
from .hints import as_flags
from .options import Commands

EXIT_CODES = {
    0: "all is well",
    1: "a gate failed: a threshold is not kept, or something has become worse",
    2: "wrong usage, or an input that cannot be used",
    3: "incomplete: a provider, the disk or this program failed, or a limit was reached; what was recorded is kept",
    130: "interrupted by Ctrl-C; what was recorded is kept",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    parser = build_parser()
    options = parser.parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character ends no command
    if options.command is None:
        parser.print_help()
        return 0
    try:
        code: int = options.handler(options)
        sys.stdout.flush()
    except ToolparseError as e:
        print(f"toolparse: {as_flags(str(e))}", file=sys.stderr)
        return e.exit_code
    except KeyboardInterrupt:
        print("\ntoolparse: interrupted; what was recorded is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader went away (a pager, head): that is no fault, and Python must not complain of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as e:
        print(f"toolparse: {f'{e.filename}: ' if e.filename else ''}{e.strerror or e}", file=sys.stderr)
        return 3
    except Exception:
        # Python's own code for this would be 1, which says that a gate failed.
        traceback.print_exc()
        print("toolparse: this should not happen; please report it with what stands above", file=sys.stderr)
        return 3
    return code


def build_parser() -> argparse.ArgumentParser:
    """The parser of every command, each with its own help."""
    codes = (f"{code} {re.split('[:;,]', meaning)[0]}" for code, meaning in EXIT_CODES.items())
    parser = argparse.ArgumentParser(
        prog="toolparse",
        description="Evaluate and debug how text of language models becomes exact tool calls.",
        epilog=f"Exit codes: {'; '.join(codes)}. `toolparse COMMAND --help` shows an example of each command.",
    )
    parser.add_argument("--version", action="version", version=f"toolparse_lab {__version__}")
    commands = Commands(parser.add_subparsers(dest="command", metavar="COMMAND"))
    for family in (reading, asking, reread, recorded, judging, local):
        family.add_commands(commands)
    return parser
