"""Tools behind HTTP: the arguments are posted as JSON, and a refusal keeps its status and body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra
from ..exchange.redaction import redact
from ..values import write_canonical
from .failure import ToolFailure, ToolRefused, issues_in_body

if TYPE_CHECKING:
    import httpx

_MOST_BODY = 8 * 2**20  # bytes of a response


class HttpTool:
    """A tool at an address. Called with arguments by name; raises ToolRefused where it fails.

    Any status from 200 to 299 is a success, and gives the body as JSON, as text where it is none.
    seed: as the seed has it: only 200 is, its body must be an object, and the error's text is the
    seed's. headers, timeout (seconds): of each request.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        seed: bool = False,
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra(
                "tools behind HTTP need httpx", hint="pip install 'toolparse_lab[lab]'"
            ) from None
        self._httpx = httpx
        self.url = url
        self._headers = {"Content-Type": "application/json", **(headers or {})}
        self._timeout = timeout
        self._seed = seed

    def __repr__(self) -> str:
        """The tool without its headers, which may hold a key."""
        return f"HttpTool({redact(self.url)!r})"

    def __call__(self, **arguments: Any) -> Any:
        """Ask once. Raises ToolRefused."""
        try:
            with self._httpx.Client(timeout=self._timeout, headers=self._headers) as client:
                with client.stream("POST", self.url, content=_body(arguments)) as response:
                    return self._read(response, b"".join(_pieces(response)))
        except self._httpx.HTTPError as e:
            raise self._unreachable(e) from None

    async def later(self, **arguments: Any) -> Any:
        """The same, awaited: give this method where an async tool is wanted."""
        try:
            async with self._httpx.AsyncClient(
                timeout=self._timeout, headers=self._headers
            ) as client:
                async with client.stream("POST", self.url, content=_body(arguments)) as response:
                    content = b""
                    async for piece in response.aiter_bytes():
                        content += piece
                        if len(content) > _MOST_BODY:
                            raise _too_large()
                    return self._read(response, content)
        except self._httpx.HTTPError as e:
            raise self._unreachable(e) from None

    def _unreachable(self, e: Exception) -> ToolRefused:
        """The failure of a request that had no answer."""
        return ToolRefused(ToolFailure(f"request failed: {redact(str(e)) or type(e).__name__}"))

    def _read(self, response: httpx.Response, content: bytes) -> Any:
        """The value of a response. Raises ToolRefused."""
        body = content.decode("utf-8", "replace")
        status = response.status_code
        if status != 200 if self._seed else not 200 <= status <= 299:
            message = f"agent returned status {status}: {body}"
            if not self._seed:
                message = f"the tool answered with status {status}"
            raise ToolRefused(ToolFailure(message, body, status, issues_in_body(body)))
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as e:
            if self._seed:
                raise _undecodable(body, status, str(e)) from None
            return body
        if self._seed and not isinstance(value, dict):
            raise _undecodable(body, status, "no object")
        return value


def _body(arguments: Mapping[str, Any]) -> bytes:
    """The arguments as the body of a request, numbers with the digits that the model wrote."""
    return write_canonical(dict(arguments)).encode("utf-8", "surrogatepass")


def _pieces(response: httpx.Response) -> list[bytes]:
    """The body of a response in pieces. Raises ToolRefused for one that is too large."""
    pieces: list[bytes] = []
    size = 0
    for piece in response.iter_bytes():
        pieces.append(piece)
        size += len(piece)
        if size > _MOST_BODY:
            raise _too_large()
    return pieces


def _too_large() -> ToolRefused:
    """The failure of a response that is too large to keep."""
    return ToolRefused(ToolFailure(f"the tool's answer is larger than {_MOST_BODY} bytes"))


def _undecodable(body: str, status: int, why: str) -> ToolRefused:
    """The failure of a success whose body is no object, in the seed's words."""
    return ToolRefused(ToolFailure(f"failed to decode response: {why}", body, status))
