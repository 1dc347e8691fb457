"""`toolparse serve`."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

from ..options import need_lab
from ..output import put, say
from .serve_local import port_number

EXAMPLES = (
    "toolparse serve --upstream http://127.0.0.1:8000/v1 --protocol hermes",
    "toolparse serve --upstream https://example.org/v1 --upstream-key-env EXAMPLE_KEY "
    "--record passing.db",
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the endpoint that is asked, the one that listens, and the recording."""
    command.add_argument(
        "--upstream", required=True, metavar="URL", help="the endpoint that is asked, up to /v1"
    )
    command.add_argument(
        "--protocol", default="hermes", metavar="ID",
        help="how its models are told to write a call, options behind it as in "
        "hermes;unknown=call (default: hermes)",
    )  # fmt: skip
    command.add_argument(
        "--tool-choice-by", choices=("response_format", "prompt"),
        help="how a forced call is asked for (default: response_format)",
    )  # fmt: skip
    command.add_argument(
        "--upstream-key-env", metavar="NAME",
        help="environment variable with the endpoint's key (default: callers send theirs)",
    )  # fmt: skip
    command.add_argument(
        "--record", metavar="PATH", help="a store that records what passes, without credentials"
    )
    command.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default: 127.0.0.1)"
    )
    command.add_argument(
        "--port", type=port_number, default=8080, help="port, 0 for any free one (default: 8080)"
    )
    command.add_argument(
        "--key-env", metavar="NAME",
        help="environment variable with the key that callers must send; needed off loopback",
    )  # fmt: skip


def run(options: Any) -> int:
    """Serve until Ctrl-C, which leaves with 130 and ends the recording."""
    need_lab()
    # litellm with the store: two to five seconds, and an extra.
    from ..serving import start_gateway

    with start_gateway(options, say) as gateway:
        put(f"serving at {gateway.url}; Ctrl-C stops")
        # A script that started this waits for the line before it asks.
        sys.stdout.flush()
        threading.Event().wait()
    return 0
