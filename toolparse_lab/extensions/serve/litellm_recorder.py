"""The recorder as a callback of litellm: what an application asked and was answered, in a store."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from litellm.integrations.custom_logger import CustomLogger

from ...runner.exchange.redaction import redact
from ...runner.exchange.types import Passed
from ...runner.failures import error_kind, error_message
from .secrets import secrets_of_request, without_secrets
from .writer import Writer, app_name, say

_PATH = "/v1/chat/completions"  # litellm answers in the shape of this one, whatever it asked
_DEFAULT_STORE = "toolparse.db"

recorder: Recorder  # see __getattr__


class Recorder(CustomLogger):  # type: ignore[misc]  # of a package that is not followed
    """`litellm.callbacks = [Recorder("live.db")]` records every call of litellm.

    It sees what litellm made of an answer, so its `fidelity` is `sdk`, and a stream is there as a
    whole: litellm shows callbacks neither its pieces nor the text on the wire. Failures, time-outs
    and streams that break off are recorded as such. No error here reaches the application:
    `dropped` counts the calls that could not be recorded, and standard error has the reason.

    store: a path or an SQLAlchemy URL, by default that of TOOLPARSE_STORE, else toolparse.db. app:
    the name of its records, by default that of TOOLPARSE_APP, else app.

    Raises BadOptions for a name that cannot be one.
    """

    def __init__(self, store: str | os.PathLike[str] | None = None, app: str | None = None) -> None:
        super().__init__()
        self.app = app_name(os.environ.get("TOOLPARSE_APP") or None if app is None else app)
        if store is None:
            store = os.environ.get("TOOLPARSE_STORE") or _DEFAULT_STORE
        self._writer = Writer(store)

    @property
    def recorded(self) -> int:
        return self._writer.recorded

    @property
    def dropped(self) -> int:
        return self._writer.dropped

    def flush(self) -> None:
        """Wait until everything that litellm has reported is written."""
        self._writer.flush()

    def close(self) -> None:
        """Write all waiting records and close the store. A second call does nothing."""
        self._writer.close()

    def log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        self._take(kwargs, response_obj, start_time, end_time, failed=False)

    def log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        self._take(kwargs, response_obj, start_time, end_time, failed=True)

    async def async_log_success_event(self, *args: Any, **kw: Any) -> None:
        self.log_success_event(*args, **kw)

    async def async_log_failure_event(self, *args: Any, **kw: Any) -> None:
        self.log_failure_event(*args, **kw)

    def _take(self, kwargs: Any, response: Any, start: Any, end: Any, *, failed: bool) -> None:
        try:
            passed, secrets = _passed(self.app, kwargs, response, start, end, failed)
            self._writer.add(without_secrets(passed, secrets))
        except Exception as e:  # the application's call has ended well
            self._writer.dropped += 1
            say(f"not recorded: {redact(f'{type(e).__name__}: {e}')}")


def _passed(
    app: str, kwargs: Mapping[str, Any], response: Any, start: Any, end: Any, failed: bool
) -> tuple[Passed, tuple[str, ...]]:
    params = dict(kwargs.get("optional_params") or {})
    asked = {**params, "model": kwargs.get("model"), "messages": kwargs.get("messages")}
    if kwargs.get("stream"):
        asked["stream"] = True
    inner = kwargs.get("litellm_params") or {}
    keys = [kwargs.get("api_key"), inner.get("api_key")]
    headers = [("authorization", key) for key in keys if isinstance(key, str)]
    secrets = secrets_of_request(headers, {**params, "api_base": inner.get("api_base")})
    facts: dict[str, Any] = {}
    body = b""
    if failed:
        e = kwargs.get("exception")
        if not isinstance(e, BaseException):
            e = RuntimeError(str(e or "the call failed"))
        facts["error_kind"], facts["error"] = error_kind(e), error_message(e, secrets)
    if response is not None:
        dump = getattr(response, "model_dump_json", None)
        body = (dump() if callable(dump) else _json(response)).encode("utf-8", "surrogatepass")
    if kwargs.get("custom_llm_provider"):
        facts["provider"] = kwargs["custom_llm_provider"]
    created = start if isinstance(start, datetime) else datetime.now(UTC)
    seconds = (end - start).total_seconds() if isinstance(end, datetime) and start else 0.0
    return (
        Passed(
            app=app,
            created=created.astimezone(UTC).isoformat(timespec="milliseconds"),
            path=_PATH,
            request=_json(asked).encode(),
            response=body,
            seconds=seconds,
            fidelity="sdk",
            facts=facts,
        ),
        secrets,
    )


_json = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=str).encode


def __getattr__(name: str) -> Any:
    # The config of LiteLLM's proxy names an object: it is made when it is asked for.
    if name == "recorder":
        globals()[name] = Recorder()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
