"""`toolparse serve`."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from typing import Any

from ...errors import BadOptions
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
        help="how its models are told to write a call (default: hermes)",
    )  # fmt: skip
    command.add_argument(
        "--tool-choice-by", choices=("response_format", "prompt"), default="response_format",
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
    keys = {name: _variable(name) for name in (options.upstream_key_env, options.key_env) if name}
    # litellm: two to five seconds, and an extra.
    from ...gateway import serve
    from ...gateway.recorder import Recorder
    from ...middleware import create_tool_middleware
    from ...store.store import Store

    middleware = create_tool_middleware(options.protocol, tool_choice_by=options.tool_choice_by)
    recorder = None
    if options.record:
        recorder = Recorder(Store(options.record), middleware.protocol, say)
    try:
        gateway = serve(
            options.upstream,
            host=options.host,
            port=options.port,
            upstream_key=keys.get(options.upstream_key_env),
            api_key=keys.get(options.key_env),
            recorder=recorder,
            middleware=middleware,
        )
    except BaseException:
        if recorder is not None:
            recorder.close()
        raise
    with gateway:
        put(f"serving at {gateway.url}; Ctrl-C stops")
        # A script that started this waits for the line before it asks.
        sys.stdout.flush()
        threading.Event().wait()
    return 0


def _variable(name: str) -> str:
    """The value of an environment variable. Raises BadOptions where there is none."""
    value = os.environ.get(name, "").strip()
    if not value:
        raise BadOptions(
            "this environment variable is not set, or empty",
            got=name,
            expected="the name of one that holds a key",
        )
    return value
