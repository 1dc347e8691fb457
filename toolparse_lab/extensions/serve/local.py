"""The embedded model as an OpenAI-compatible endpoint on loopback, for clients of HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from ...core.errors import SetupError
from ...runner.exchange.types import Model
from ...runner.local.engine import MODEL_NAME, engine_params
from .gate import Gate, Rules, check_address


class LocalServer(Gate):
    """A running endpoint, and a context manager. `url` ends in /v1."""

    def __init__(self, host: str, port: int, rules: Rules) -> None:
        super().__init__(host, port, rules)
        self._engine: Any = None

    @property
    def model(self) -> Model:
        """The model to ask through this endpoint."""
        # The OpenAI client insists on a key even where the endpoint asks for none.
        return Model(
            f"openai/{MODEL_NAME}",
            api_base=self.url,
            api_key=self._rules.api_key or "none-needed",
            max_connections=1,
            price=(0, 0),
        )

    def put_before(self, engine: Any, key: str) -> None:
        """Begin to pass requests on to a server of the engine, with its key."""
        inside = urlsplit(str(engine.listening_address))
        self.open((inside.hostname or "127.0.0.1", inside.port or 0), key)
        self._engine = engine

    def close(self) -> None:
        """Free the port and the weights: the engine does so when no one refers to its server."""
        super().close()
        self._engine = None

    def __repr__(self) -> str:
        return f"LocalServer({self.url!r}{'' if self._engine else ', closed'})"


def start_local(
    host: str,
    port: int,
    *,
    api_key: str | None,
    threads: int | None,
    gate: Callable[[str, int, Rules], LocalServer],
) -> LocalServer:
    """Start the engine behind a server that `gate` makes."""
    check_address("an endpoint", host, port, api_key)
    inner_key = secrets.token_urlsafe(24)
    params = engine_params(inner_key, threads)
    import xllamacpp  # after `engine_params`, which says what to install where it is missing

    server = gate(host, port, Rules(host, api_key or ""))
    try:
        engine = xllamacpp.Server(params)
        # A server that is closed before its loop runs never ends; one token shows that it runs.
        engine.handle_completions({"prompt": "a", "n_predict": 1, "cache_prompt": False})
        server.put_before(engine, inner_key)
    except RuntimeError as e:
        server.close()
        raise SetupError("the embedded model's endpoint did not start", got=str(e)) from None
    except BaseException:
        server.close()
        raise
    return server
