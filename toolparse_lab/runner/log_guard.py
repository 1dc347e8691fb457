"""Keys out of what the libraries below log: at level DEBUG they write down requests whole."""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Iterable, Mapping

from .exchange.redaction import redact, redact_named, redact_strings

# A filter is for one logger and not for those below it, so each has its name here. They are
# those of litellm, of the clients that it asks by, and of what these sign requests with.
_LOGGERS = (
    "LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm", "litellm_logger", "aiohttp.client",
    "aiohttp.internal", "asyncio", "openai", "openai._base_client", "openai._client",
    "openai._response", "openai._legacy_response", "openai.agents", "anthropic",
    "anthropic._base_client", "anthropic._client", "anthropic._response", "httpx", "httpcore",
    "httpcore.connection", "httpcore.http11", "httpcore.http2", "httpx2", "httpcore2",
    "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore.proxy",
    "httpcore.socks", "httpcore2.proxy", "httpcore2.socks", "hpack", "hpack.hpack", "hpack.table",
    "h2.config", "urllib3.connectionpool", "urllib3.connection", "urllib3.util.retry", "requests",
    "requests_oauthlib", "oauthlib", "websockets.client", "websockets.server", "boto3",
    "boto3.resources", "google.auth", "google.auth.transport.requests",
    "google.auth.transport._http_client", "google.oauth2", "azure", "azure.identity",
    "azure.core.pipeline.policies.http_logging_policy", "azure.identity._internal.decorators",
    "msal", "msal.application", "msal.token_cache", "msal.authority",
    *(f"botocore.{part}" for part in (
        "auth", "awsrequest", "client", "configprovider", "credentials", "endpoint", "eventstream",
        "handlers", "hooks", "httpchecksum", "httpsession", "loaders", "parsers", "regions",
        "retryhandler", "session", "tokens", "utils",
    )),
)  # fmt: skip
# Members of a record that logging itself writes; every other one is the caller's `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
# Every secret of this process that was used for a call; logs are written at any later moment.
_secrets: set[str] = set()


class KeysOut(logging.Filter):
    """Rewrites records that have a credential. Costs nothing if no one listens at that level."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take credentials out of a record. Every record is let through."""
        try:
            message = record.getMessage()
        except Exception:  # arguments that do not fit: logging would print them as they are
            message = f"{record.msg} {record.args!r}"
            record.msg, record.args = message, ()
        clean = redact(message, _secrets)
        args: object = record.args
        values = args.values() if isinstance(args, Mapping) else args or ()
        plain = isinstance(values, Iterable) and all(map(_is_plain, values))
        if clean != message or not plain:
            # A request or an error among the arguments has its headers, whatever its text says.
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            whole = "".join(traceback.format_exception(*record.exc_info)).rstrip()
            # A formatter takes this text instead of writing the exception itself.
            record.exc_text = redact(whole, _secrets)
            # Some handlers write the exception in a way of their own, with all that is in it.
            record.exc_info = None
        if record.stack_info:
            record.stack_info = redact(record.stack_info, _secrets)
        for name in vars(record).keys() - _STANDARD:
            value = getattr(record, name)
            if isinstance(value, str):
                setattr(record, name, redact(value, _secrets))
            elif isinstance(value, Mapping):
                setattr(record, name, redact_strings(redact_named(value), _secrets))
            elif not _is_plain(value):
                setattr(record, name, redact(repr(value), _secrets))
        return True


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int, float, type(None)))


_guard = KeysOut()


def guard_logs(secrets: Iterable[str]) -> None:
    """Let `secrets` appear in no later record of these loggers. They are in memory only."""
    _secrets.update(secrets)
    _guard_loggers()


@functools.cache
def _guard_loggers() -> None:
    # Once in a process: there are many of them.
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_guard)
