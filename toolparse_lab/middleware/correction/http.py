"""Tools over HTTP: the arguments are posted as JSON, and a refusal keeps its status and body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...core.errors import MissingExtra
from ...core.values import write_canonical
from ...runner.exchange.redaction import redact
from .failure import ToolFailure, ToolRefused, issues_in_body

_MOST_BODY = 8 * 2**20  # bytes of a response


class HttpTool:
    """A tool at an address.

    Called with arguments by name. Raises ToolRefused if it fails.

    Any status from 200 to 299 is a success, and gives the body as JSON, as text where it is none.

    Args:
        go_orchestrator: only status 200 is a success, and its body must be an object; errors are
            worded as the Go orchestrator words them. headers, timeout (seconds): of each request.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        go_orchestrator: bool = False,
    ) -> None:
        try:
            import httpx  # an extra
        except ImportError:
            raise MissingExtra(
                "tools behind HTTP need httpx", hint="in a checkout: pip install '.[lab]'"
            ) from None
        self._httpx = httpx
        self.url = url
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._timeout = timeout
        self._go = go_orchestrator

    def __repr__(self) -> str:
        # Without its headers, which may hold a key.
        return f"HttpTool({redact(self.url)!r})"

    def __call__(self, **arguments: Any) -> Any:
        body = bytearray()
        try:
            with (
                self._httpx.Client(timeout=self._timeout, headers=self._headers) as client,
                client.stream("POST", self.url, content=_written(arguments)) as response,
            ):
                for piece in response.iter_bytes():
                    _add(body, piece)
        except self._httpx.HTTPError as e:
            raise self._unreachable(e) from None
        return self._read(response.status_code, body)

    async def later(self, **arguments: Any) -> Any:
        """Ask once, awaited: give this method where an async tool is wanted."""
        body = bytearray()
        try:
            async with (
                self._httpx.AsyncClient(timeout=self._timeout, headers=self._headers) as client,
                client.stream("POST", self.url, content=_written(arguments)) as response,
            ):
                async for piece in response.aiter_bytes():
                    _add(body, piece)
        except self._httpx.HTTPError as e:
            raise self._unreachable(e) from None
        return self._read(response.status_code, body)

    def _unreachable(self, e: Exception) -> ToolRefused:
        return ToolRefused(ToolFailure(f"request failed: {redact(str(e)) or type(e).__name__}"))

    def _read(self, status: int, content: bytearray) -> Any:
        body = content.decode("utf-8", "replace")
        if status != 200 if self._go else not 200 <= status <= 299:
            message = f"agent returned status {status}: {body}"
            if not self._go:
                message = f"the tool answered with status {status}"
            raise ToolRefused(ToolFailure(message, body, status, issues_in_body(body)))
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as e:
            if self._go:
                raise _undecodable(body, status, str(e)) from None
            return body
        if self._go and not isinstance(value, dict):
            raise _undecodable(body, status, "no object")
        return value


def _written(arguments: Mapping[str, Any]) -> bytes:
    # Numbers keep the digits that the model wrote.
    return write_canonical(dict(arguments)).encode("utf-8", "surrogatepass")


def _add(body: bytearray, piece: bytes) -> None:
    body += piece
    if len(body) > _MOST_BODY:
        raise ToolRefused(ToolFailure(f"the tool's answer is larger than {_MOST_BODY} bytes"))


def _undecodable(body: str, status: int, why: str) -> ToolRefused:
    return ToolRefused(ToolFailure(f"failed to decode response: {why}", body, status))
