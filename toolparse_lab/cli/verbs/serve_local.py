"""`toolparse serve-local`."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

from ...integrations.gateway import serve_local_with_tools
from ..options import need_lab
from ..output import put

EXAMPLES = ("toolparse serve-local --port 8080",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the address and the engine's threads."""
    command.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)"
    )
    command.add_argument(
        "--port", type=port_number, default=8080, help="port, 0 for any free one (default: 8080)"
    )
    command.add_argument("--threads", type=int, default=None, help="threads of the engine")
    command.add_argument(
        "--protocol", default="hermes", metavar="ID",
        help="how the model is told to write a call, where a request has tools (default: hermes)",
    )  # fmt: skip


def port_number(text: str) -> int:
    """Return the number of a port. Raises ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdigit() or len(text) > 5 or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text[:40]!r}")
    return int(text)


def run(options: Any) -> int:
    """Serve until Ctrl-C, which leaves with 130."""
    need_lab()
    with serve_local_with_tools(
        options.host, options.port, threads=options.threads, protocol=options.protocol
    ) as server:
        put(f"serving {server.model.name} at {server.url}; Ctrl-C stops")
        # A script that started this waits for the line before it asks.
        sys.stdout.flush()
        threading.Event().wait()
    return 0
