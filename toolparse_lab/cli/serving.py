"""The gateway that `toolparse serve` starts."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..core.errors import BadOptions
from ..integrations.gateway import Gateway, serve
from ..integrations.gateway.recorder import Recorder
from ..integrations.litellm_bridge.options import middleware_for
from ..runner.store.store import Store


def start_gateway(options: Any, tell: Callable[[str], None]) -> Gateway:
    """Start the gateway that the command's words describe.

    `tell` is called where something cannot be recorded.

    Raises BadOptions, UnknownProtocol, SetupError and StoreError.
    """
    upstream_key = _variable(options.upstream_key_env)
    api_key = _variable(options.key_env)
    by = options.tool_choice_by
    middleware = middleware_for(options.protocol, {"tool_choice_by": by} if by else {})
    recorder = None
    if options.record:
        recorder = Recorder(Store(options.record), middleware.protocol, tell)
    try:
        return serve(
            options.upstream,
            host=options.host,
            port=options.port,
            upstream_key=upstream_key,
            api_key=api_key,
            recorder=recorder,
            middleware=middleware,
        )
    except BaseException:
        if recorder is not None:
            recorder.close()
        raise


def _variable(name: str | None) -> str | None:
    """Return the value of an environment variable, None without a name.

    Raises BadOptions if the variable is empty or not set.
    """
    if name is None:
        return None
    value = os.environ.get(name, "").strip()
    if not value:
        raise BadOptions(
            "this environment variable is not set, or empty",
            got=name,
            expected="the name of one that holds a key",
        )
    return value
