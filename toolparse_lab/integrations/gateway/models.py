"""The list of models of the upstream endpoint, as it says it."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from ...runner.exchange.redaction import redact
from ...runner.local.gate import Refusal
from .http_body import Headers, json_response
from .question import Upstream

_SECONDS = 30.0
_MOST = 16 * 2**20  # bytes


async def models_of(upstream: Upstream, headers: Headers) -> bytes:
    """Return the response to a request for the models.

    Raises Refusal if the endpoint gives none.
    """
    key = upstream.key_for(headers)
    try:
        status, body = await asyncio.to_thread(_get, f"{upstream.url}/models", key)
    except (OSError, http.client.HTTPException, ValueError) as e:
        reason = redact(f"{type(e).__name__}: {e}", [key])
        raise Refusal(502, f"The upstream endpoint gives no models: {reason}") from None
    if status != 200:
        answer = status if 400 <= status <= 599 else 502
        raise Refusal(answer, f"The upstream endpoint gives no models: status {status}.")
    try:
        models: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(502, "The upstream endpoint's models are no JSON.") from None
    return json_response(models)


def _get(url: str, key: str) -> tuple[int, bytes]:
    """Status and body of the response at an address.

    No redirection is followed.

    Raises OSError, HTTPException and ValueError.
    """
    parts = urlsplit(url)
    is_open = parts.scheme == "http"
    kind = http.client.HTTPConnection if is_open else http.client.HTTPSConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("GET", target, headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        return response.status, response.read(_MOST)
    finally:
        connection.close()
