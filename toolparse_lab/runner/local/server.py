"""The embedded model behind an OpenAI-compatible endpoint on loopback, for clients that want
HTTP."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any

from ...errors import BadOptions, SetupError
from ...exchange.types import Model
from .engine import MODEL_NAME, engine_params


class LocalServer:
    """A running endpoint; a context manager. `url` ends in /v1; `close` frees the port and the
    weights."""

    def __init__(self, server: Any, url: str, api_key: str) -> None:
        self._server = server
        self._api_key = api_key
        self.url = url

    @property
    def model(self) -> Model:
        """The model to ask through this endpoint."""
        # The OpenAI client insists on a key even where the endpoint asks for none.
        return Model(
            f"openai/{MODEL_NAME}",
            api_base=self.url,
            api_key=self._api_key or "none-needed",
            max_connections=1,
            price=(0, 0),
        )

    def close(self) -> None:
        """Free the port and the weights: the engine does so when nobody refers to its server."""
        self._server = None

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LocalServer({self.url!r}{'' if self._server else ', closed'})"


def serve_local(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    api_key: str | None = None,
    threads: int | None = None,
) -> LocalServer:
    """Serve the embedded model at `http://host:port/v1` (port 0 = any free one) until closed.

    `api_key` makes the endpoint refuse other callers; without one it must stay on loopback. Raises
    BadOptions for an open endpoint on a public address, MissingModelPackage where the packages are
    missing, SetupError where the port is taken.
    """
    if not api_key and host not in ("127.0.0.1", "localhost", "::1"):
        raise BadOptions(
            "An endpoint that others can reach needs a key.",
            got=host,
            hint="pass api_key=..., or stay on 127.0.0.1",
        )
    if port:
        _check_port(host, port)
    params = engine_params(threads=threads, host=host, port=port, api_key=api_key or "")
    import xllamacpp  # after `engine_params`, which says what to install where it is missing

    try:
        server = xllamacpp.Server(params)
    except RuntimeError as e:
        raise SetupError("The embedded model's endpoint did not start.", got=str(e)) from None
    # A server that is closed before its loop runs never ends; one token shows that it runs.
    server.handle_completions({"prompt": "a", "n_predict": 1, "cache_prompt": False})
    return LocalServer(server, f"{str(server.listening_address).rstrip('/')}/v1", api_key or "")


def _check_port(host: str, port: int) -> None:
    """Raise SetupError where a port cannot be used: the engine itself would only log it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the engine does, so that a port whose last owner has just gone counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as e:
            raise SetupError(
                f"Port {port} cannot be used.", got=str(e), hint="pass port=0 for a free one"
            ) from None
