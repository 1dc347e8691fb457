"""Keys out of what the libraries below log: at level DEBUG they write down requests whole."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable

from ..exchange.redaction import redact

_LOGGERS = (
    *(
        "LiteLLM",
        "LiteLLM Router",
        "LiteLLM Proxy",
        "aiohttp.client",
        "aiohttp.internal",
        "asyncio",
    ),
    *("httpx", "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpcore.proxy"),
    *(
        "openai",
        "openai._base_client",
        "openai._client",
        "openai._response",
        "botocore",
        "urllib3.connectionpool",
    ),
)
# Every secret of this process that was used for a call; logs are written at any later moment.
_secrets: set[str] = set()


class KeysOut(logging.Filter):
    """Rewrite records that hold a credential. It costs nothing where nobody listens at that
    level."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take credentials out of a record; every record is let through."""
        message = record.getMessage()
        clean = redact(message, _secrets)
        if clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            # A formatter takes this text instead of writing the exception itself.
            record.exc_text = redact(
                "".join(traceback.format_exception(*record.exc_info)).rstrip(), _secrets
            )
        return True


_guard = KeysOut()


def guard_logs(secrets: Iterable[str]) -> None:
    """Let `secrets` appear in no later record of these loggers. They are held in memory only."""
    # A logger takes the same filter once only, so that each call may add it again.
    _secrets.update(secrets)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_guard)
