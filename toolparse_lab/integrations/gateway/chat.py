"""Chat completions through the litellm bridge: a request's body in, the answer in OpenAI's shape
out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError
from ...middleware import ToolCallMiddleware
from ...runner.exchange.redaction import redact_exact
from ...runner.failures import error_kind, error_message, retry_after, status_code
from ...runner.litellm_faults import ignore_warnings
from ...runner.log_guard import guard_logs
from ..litellm_bridge import acompletion_with
from .exchange import Exchange
from .http_body import EVENT_HEAD, LAST_EVENT, event, json_response
from .question import Question, Upstream

if TYPE_CHECKING:
    from .recorder import Recorder

_TIMEOUT = 600.0  # seconds of the upstream endpoint without a word
# Members of an answer that are there although they are null.
_KEPT = frozenset({"content", "finish_reason"})
_OF_PROVIDER = "provider_specific_fields"
# A failure that no server gave a status -> that of the gateway.
_STATUS = {"connection": 502, "timeout": 504, "cut_stream": 502}


class Chat:
    """Asks one upstream endpoint by one middleware."""

    def __init__(
        self, upstream: Upstream, middleware: ToolCallMiddleware, recorder: Recorder | None = None
    ) -> None:
        self.upstream = upstream
        self._middleware = middleware
        self._recorder = recorder

    async def answer(self, question: Question, writer: asyncio.StreamWriter) -> None:
        """Ask, and write the response, whole or streamed.

        A failure as an error in OpenAI's shape.
        """
        guard_logs(question.secrets)
        exchange = Exchange(question, self.upstream.url)
        try:
            with exchange.watched():
                answer = await self._ask(question, exchange)
                if question.stream:
                    await _write_stream(answer, writer, question, exchange)
                else:
                    writer.write(json_response(_slim(answer.model_dump(mode="json"))))
                    await writer.drain()
        except asyncio.CancelledError:
            exchange.failure = CallerGone("the caller went away before the end")
            raise
        except StreamBroke as e:
            # One that only ended too early is recorded as cut, without an exception.
            exchange.failure = None if isinstance(e.__cause__, BrokenStream) else e.__cause__
        except ConnectionError:
            exchange.failure = CallerGone("the caller went away before the end")
        except UsageError as e:
            exchange.failure = e
            writer.write(json_response(*_usage_error(e, question)))
        except Exception as e:
            exchange.failure = e
            writer.write(json_response(*_provider_error(e, question)))
        finally:
            # A cancelled request is recorded too, with what had come.
            exchange.end()
            if self._recorder is not None:
                self._recorder.add(exchange)

    async def _ask(self, question: Question, exchange: Exchange) -> Any:
        """Return the bridge's answer, litellm's object or its stream."""
        ignore_warnings()  # again and again: whoever resets Python's filters does not know of it
        return await acompletion_with(
            self._middleware,
            tap=exchange,
            model=f"openai/{question.model}",
            api_base=self.upstream.url,
            api_key=question.key,
            max_retries=0,
            timeout=_TIMEOUT,
            **question.arguments(),
        )


async def _write_stream(
    stream: Any, writer: asyncio.StreamWriter, question: Question, exchange: Exchange
) -> None:
    """Write a stream as events.

    Its head with the first chunk, so that a failure before it has its own status. A failure behind
    it is an event, and no end follows.

    The end of the answer waits until all has come: litellm ends a stream that broke off as if it
    were finished, and only then can that be told.
    """
    began = False
    endings: list[bytes] = []
    try:
        async for chunk in stream:
            text = event(_chunk_members(chunk))
            if endings or any(choice.finish_reason for choice in chunk.choices):
                endings.append(text)
                continue
            if not began:
                began = True
                writer.write(EVENT_HEAD)
            writer.write(text)
            await writer.drain()
        exchange.end()
        if exchange.cut:
            raise BrokenStream("the upstream endpoint's stream ended before its last part")
    except Exception as e:
        if not began or isinstance(e, ConnectionError):
            raise
        writer.write(event(_provider_error(e, question)[0]))
        await writer.drain()
        raise StreamBroke from e
    finally:
        await stream.aclose()
    writer.write(b"".join([*([] if began else [EVENT_HEAD]), *endings, LAST_EVENT]))
    await writer.drain()


class BrokenStream(Exception):
    """The upstream endpoint's stream ended without a finish reason."""


class StreamBroke(Exception):
    """A stream broke off in the middle, and the caller has been told.

    Its cause says why.
    """


class CallerGone(ConnectionError):
    """Whoever asked is gone, so that no one is left to be answered."""


def _chunk_members(chunk: Any) -> dict[str, Any]:
    """Return a chunk in the shape that OpenAI sends: the counted tokens come without a choice."""
    members: dict[str, Any] = _slim(chunk.model_dump(mode="json"))
    if "usage" in members and not any(map(_says_something, members["choices"])):
        members["choices"] = []
    return members


def _says_something(choice: dict[str, Any]) -> bool:
    """Return True for a choice of a chunk that holds a piece of an answer, or its end."""
    pieces = [choice["finish_reason"], *choice["delta"].values()]
    return any(piece is not None for piece in pieces)


def _slim(value: Any) -> Any:
    """Return an answer without litellm's empty members, in the shape that OpenAI sends."""
    if isinstance(value, list):
        return [_slim(v) for v in value]
    if not isinstance(value, dict):
        return value
    members = {k: _slim(v) for k, v in value.items() if v is not None or k in _KEPT}
    if not members.get(_OF_PROVIDER, True):
        del members[_OF_PROVIDER]
    return members


def _error(message: str, kind: str, status: int) -> dict[str, Any]:
    """Return an error in OpenAI's shape."""
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def _usage_error(e: UsageError, question: Question) -> tuple[dict[str, Any], int]:
    """Body and status for a request that cannot be sent."""
    return _error(redact_exact(str(e), question.secrets), "invalid_request_error", 400), 400


def _provider_error(e: Exception, question: Question) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Body, status and headers for a failure of the upstream endpoint.

    No credential is in them.
    """
    kind = error_kind(e)
    status = _STATUS.get(kind) or status_code(e) or 500
    if not 400 <= status <= 599:
        status = 502
    wait = retry_after(e)
    more = {} if wait is None else {"Retry-After": f"{wait:g}"}
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    name = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return _error(error_message(e, question.secrets), name, status), status, more
