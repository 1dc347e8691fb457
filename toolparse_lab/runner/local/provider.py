"""Embedded models as a litellm provider: `toolparse-local/smollm2-135m`, or any GGUF file as
`toolparse-local/PATH.gguf`.
"""

from __future__ import annotations

import asyncio
import importlib
import queue
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from ...core.errors import UnknownName
from .engine import MODEL_NAME, Answer, EngineError, local_engine
from .setup import is_gguf

PROVIDER = "toolparse-local"
LOCAL_MODEL = f"{PROVIDER}/{MODEL_NAME}"
# Parameters of litellm's that the engine does not take.
_NOT_SENT = frozenset(
    {"stream", "stream_options", "extra_body", "max_completion_tokens", "max_retries", "user"}
)


def is_local(name: str) -> bool:
    """Return True for a model string of the embedded models' provider."""
    return name.startswith(f"{PROVIDER}/")


def check_local(name: str) -> None:
    """Raise UnknownName for a model string of the provider that names neither the small model nor a
    GGUF file. Looks at no file.
    """
    if name != LOCAL_MODEL and not is_gguf(name):
        raise UnknownName(
            "there is no embedded model of this name",
            got=name,
            expected=f"{LOCAL_MODEL}, or {PROVIDER}/PATH.gguf",
            hint=f"did you mean {LOCAL_MODEL}?",
            code="unknown-model",
        )


def engine_parameters(optional_params: Mapping[str, Any]) -> dict[str, Any]:
    """Return litellm's optional parameters as the engine's own.

    Grammar, response_format, stop, seed and the rest pass through unchanged. Raises EngineError
    (400) for a feature that this model does not have.
    """
    params = {k: v for k, v in optional_params.items() if k not in _NOT_SENT and v is not None}
    params.update(optional_params.get("extra_body") or {})
    if optional_params.get("max_completion_tokens") is not None:
        params.setdefault("max_tokens", optional_params["max_completion_tokens"])
    if not params.get("tools"):
        params.pop("tool_choice", None)
        params.pop("parallel_tool_calls", None)
    if params.pop("n", 1) != 1:
        raise EngineError("the embedded model gives one answer a request: n must be 1", status=400)
    return params


def register(litellm: Any) -> None:
    """Add the provider to litellm's list, once."""
    if any(item["provider"] == PROVIDER for item in litellm.custom_provider_map):
        return
    litellm.custom_provider_map = [
        *litellm.custom_provider_map,
        {"provider": PROVIDER, "custom_handler": _provider_class(litellm)()},
    ]
    importlib.import_module("litellm.utils").custom_llm_setup()


# How the provider works. litellm calls one of four methods of a CustomLLM: whole or streamed, sync
# or async. The engine is synchronous and answers one request at a time, so async calls and streams
# run it on one thread of their own and pass its pieces through a queue. `stopped` is the way back:
# it is set when the caller has gone, the engine looks at it after each token and ends its answer.


def _ask(
    litellm: Any,
    kw: Mapping[str, Any],
    on_piece: Callable[[str | list[dict[str, Any]]], None] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Answer:
    model, timeout = kw["model"], kw.get("timeout")
    seconds = getattr(timeout, "read", timeout)
    try:
        if model != MODEL_NAME and not is_gguf(model):
            raise EngineError(
                f"no embedded model {model!r}: it is {MODEL_NAME!r}, or the path of a GGUF file",
                status=404,
            )
        return local_engine(model).chat(
            kw["messages"],
            engine_parameters(kw["optional_params"]),
            on_piece=on_piece,
            cancelled=cancelled,
            timeout=float(seconds) if isinstance(seconds, (int, float)) else None,
        )
    except EngineError as e:
        kinds = {
            400: litellm.BadRequestError,
            404: litellm.NotFoundError,
            408: litellm.Timeout,
            499: litellm.APIConnectionError,  # cancelled: nobody is left to read it
        }
        kind = kinds.get(e.status, litellm.InternalServerError)
        if e.kind == "exceed_context_size_error":
            kind = litellm.ContextWindowExceededError
        raise kind(message=str(e), model=model, llm_provider=PROVIDER) from None


# The end of a stream in its queue: the finished answer, or what broke it off.
_Item: TypeAlias = str | list[dict[str, Any]] | BaseException | Answer


def _provider_class(litellm: Any) -> Any:
    # litellm takes seconds to import, so the class cannot be made before.
    types: Any = importlib.import_module("litellm.types.utils")
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="toolparse-local")

    def whole(answer: Answer, model: str) -> Any:
        choice = types.Choices(
            finish_reason=answer.finish_reason,
            index=0,
            message=types.Message(
                content=answer.text, role="assistant", tool_calls=answer.tool_calls or None
            ),
            logprobs={"content": answer.logprobs} if answer.logprobs else None,
        )
        response = types.ModelResponse(
            choices=[choice],
            created=answer.created or int(time.time()),
            model=model,
            system_fingerprint=answer.system_fingerprint,
        )
        response.usage = types.Usage(**answer.usage)
        return response

    def piece(
        id: str,
        model: str,
        text: str = "",
        finish: str | None = None,
        counted: Answer | None = None,
        calls: list[dict[str, Any]] | None = None,
    ) -> Any:
        delta = types.Delta(content=text, role="assistant", tool_calls=calls)
        drawn = types.ChoiceLogprobs(content=counted.logprobs) if counted else None
        choice = types.StreamingChoices(
            index=0,
            delta=delta,
            finish_reason=finish,
            logprobs=drawn if drawn and drawn.content else None,
        )
        chunk = types.ModelResponseStream(
            id=id,
            choices=[choice],
            model=model,
            system_fingerprint=counted.system_fingerprint if counted else None,
        )
        if counted is not None:
            chunk.usage = types.Usage(**counted.usage)
        return chunk

    def pieces(id: str, model: str, item: _Item) -> Iterator[Any]:
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, str):
            yield piece(id, model, item)
            return
        if isinstance(item, list):
            yield piece(id, model, calls=item)
            return
        # litellm drops what comes with or after the finish reason, so the counted tokens come
        # before it.
        yield piece(id, model, counted=item)
        yield piece(id, model, finish=item.finish_reason)

    def spawn(
        kw: Mapping[str, Any], deliver: Callable[[_Item], None], stopped: threading.Event
    ) -> None:
        # On the engine's thread. Pieces and the end go to `deliver`.
        def work() -> None:
            try:
                deliver(_ask(litellm, kw, on_piece=deliver, cancelled=stopped.is_set))
            except BaseException as e:
                deliver(e)

        executor.submit(work)

    def log_body(kw: Mapping[str, Any]) -> None:
        # As litellm does it for providers of its own.
        body = {k: v for k, v in kw["optional_params"].items() if k not in _NOT_SENT}
        body["messages"] = kw["messages"]
        kw["logging_obj"].pre_call(
            input=kw["messages"], api_key="", additional_args={"complete_input_dict": body}
        )

    class EmbeddedModel(litellm.CustomLLM):  # type: ignore[misc]
        def completion(self, *args: Any, **kw: Any) -> Any:
            return whole(_ask(litellm, kw), kw["model"])

        async def acompletion(self, *args: Any, **kw: Any) -> Any:
            log_body(kw)
            stopped = threading.Event()
            future = asyncio.get_running_loop().run_in_executor(
                executor, lambda: _ask(litellm, kw, cancelled=stopped.is_set)
            )
            try:
                return whole(await future, kw["model"])
            finally:
                stopped.set()

        def streaming(self, *args: Any, **kw: Any) -> Iterator[Any]:
            stopped, id = threading.Event(), f"chatcmpl-{uuid.uuid4()}"
            ready: queue.SimpleQueue[_Item] = queue.SimpleQueue()
            spawn(kw, ready.put, stopped)
            item: _Item = ""
            try:
                while isinstance(item, (str, list)):
                    item = ready.get()
                    yield from pieces(id, kw["model"], item)
            finally:
                stopped.set()

        async def astreaming(self, *args: Any, **kw: Any) -> AsyncIterator[Any]:
            log_body(kw)
            stopped, id = threading.Event(), f"chatcmpl-{uuid.uuid4()}"
            loop = asyncio.get_running_loop()
            ready: asyncio.Queue[_Item] = asyncio.Queue()

            def deliver(item: _Item) -> None:
                # The engine may still be at it when the caller's loop is gone.
                if not loop.is_closed():
                    loop.call_soon_threadsafe(ready.put_nowait, item)

            spawn(kw, deliver, stopped)
            item: _Item = ""
            try:
                while isinstance(item, (str, list)):
                    item = await ready.get()
                    for chunk in pieces(id, kw["model"], item):
                        yield chunk
            finally:
                stopped.set()

    return EmbeddedModel
