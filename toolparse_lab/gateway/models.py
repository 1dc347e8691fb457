"""The list of models of the upstream endpoint, as it says it."""

from __future__ import annotations

import httpx

from ..exchange.redaction import redact
from ..runner.local.gate import Refusal
from .http_body import Headers, json_response
from .question import Upstream

_SECONDS = 30.0
_MOST = 16 * 2**20  # bytes


async def models_of(upstream: Upstream, headers: Headers) -> bytes:
    """The response to a request for the models. Raises Refusal where the endpoint gives none."""
    head = {"Authorization": f"Bearer {upstream.key_for(headers)}"}
    try:
        async with httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False) as client:
            response = await client.get(f"{upstream.url}/models", headers=head)
    except (httpx.HTTPError, httpx.InvalidURL) as e:
        reason = redact(f"{type(e).__name__}: {e}", [upstream.key_for(headers)])
        raise Refusal(502, f"The upstream endpoint gives no models: {reason}") from None
    if response.status_code != 200 or len(response.content) > _MOST:
        status = response.status_code if 400 <= response.status_code <= 599 else 502
        raise Refusal(status, f"The upstream endpoint gives no models: {response.status_code}.")
    try:
        return json_response(response.json())
    except (ValueError, RecursionError):
        raise Refusal(502, "The upstream endpoint's models are no JSON.") from None
