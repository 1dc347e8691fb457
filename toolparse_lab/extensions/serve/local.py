"""The embedded model as an OpenAI-compatible endpoint on loopback, for clients of HTTP."""

from __future__ import annotations

import secrets
from typing import Any, Literal

from aiohttp import web
from multidict import CIMultiDict

from ...core.errors import SetupError
from ...integrations.litellm_bridge.options import middleware_for
from ...middleware import ToolCallMiddleware
from ...runner.exchange.types import Model
from ...runner.litellm_door import close_clients
from ...runner.local.engine import MODEL_NAME, engine_params
from .chat import Chat, Upstream, json_object
from .gateway import CHAT, set_up_litellm
from .pass_through import Proxy
from .server import Refusal, Rules, body_of, check_address


class LocalServer(Proxy):
    """A running endpoint of the embedded model, and a context manager. `url` ends in /v1.

    A request with tools is answered through the bridge, because the engine itself would pass over
    them in silence. All others go on to the engine's own server, which listens on another port
    under a key that nobody else knows.
    """

    def __init__(
        self,
        host: str,
        port: int,
        rules: Rules,
        engine: Any,
        key: str,
        middleware: ToolCallMiddleware,
    ) -> None:
        inside = str(engine.listening_address).rstrip("/")
        self._chat = Chat(Upstream(f"{inside}/v1", key), middleware)
        self._engine: Any = engine
        super().__init__(inside, host, port, rules, key)
        self.url += "/v1"

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

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request that was let in."""
        if request.method != "POST":
            return await super().answer(request)
        body = await body_of(request)
        if not _offers_tools(body):
            return await self.pass_on(request, body)
        if request.raw_path.partition("?")[0] not in CHAT:
            raise Refusal(
                400, "Tools are for POST /v1/chat/completions; the model knows none itself."
            )
        return await self._chat.answer(body, request)

    def _put_key(self, headers: CIMultiDict[str]) -> None:
        headers.popall("x-api-key", None)
        headers["Authorization"] = f"Bearer {self._key}"

    async def _end(self) -> None:
        await super()._end()
        await close_clients()

    def close(self) -> None:
        """Free the port and the weights: the engine does so when no one refers to its server."""
        super().close()
        self._engine = None

    def __repr__(self) -> str:
        return f"LocalServer({self.url!r}{'' if self._engine else ', closed'})"


def _offers_tools(body: bytes) -> bool:
    """Return True for a JSON body with tools, or functions, which are their older form."""
    if b'"tools"' not in body and b'"functions"' not in body:
        return False
    try:
        members = json_object(body)
    except Refusal:
        return False
    return bool(members.get("tools") or members.get("functions"))


def serve_local(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    api_key: str | None = None,
    threads: int | None = None,
    protocol: Any = "hermes",
    tool_choice_by: Literal["response_format", "prompt"] = "response_format",
) -> LocalServer:
    """Serve the embedded model at `http://host:port/v1` (port 0 = any free one) until closed.

    A request with tools is answered by the protocol. `api_key` makes the endpoint refuse other
    callers. Without one it must stay on loopback, where it answers requests to localhost alone,
    and none of pages of other sites (403).

    Raises BadOptions for an open endpoint on a public address and for anything that is not a port,
    UnknownProtocol, SetupError where the packages are missing or the port is taken.
    """
    check_address("an endpoint", host, port, api_key)
    middleware = middleware_for(protocol, {"tool_choice_by": tool_choice_by})
    key = secrets.token_urlsafe(24)
    params = engine_params(key, threads)
    import xllamacpp  # after `engine_params`, which says what to install where it is missing

    set_up_litellm()
    try:
        engine = xllamacpp.Server(params)
        # A server that is closed before its loop runs never ends; one token shows that it runs.
        engine.handle_completions({"prompt": "a", "n_predict": 1, "cache_prompt": False})
    except RuntimeError as e:
        raise SetupError("the embedded model's endpoint did not start", got=str(e)) from None
    return LocalServer(host, port, Rules(host, api_key or ""), engine, key, middleware)
