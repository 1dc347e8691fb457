"""The embedded model as a litellm provider: model string `toolparse-local/smollm2-135m`."""

from __future__ import annotations

import asyncio
import importlib
import queue
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .local_engine import MODEL_NAME, Answer, EngineError, local_engine

PROVIDER = "toolparse-local"
LOCAL_MODEL = f"{PROVIDER}/{MODEL_NAME}"
_NOT_SENT = frozenset({"stream", "stream_options", "extra_body", "max_completion_tokens", "max_retries", "user"})


def is_local(name: str) -> bool:
    """Whether a model string names the embedded model's provider."""
    return name.startswith(f"{PROVIDER}/")


def engine_parameters(optional_params: Mapping[str, Any]) -> dict[str, Any]:
    """litellm's optional parameters as the engine's own; grammar, response_format, stop, seed and the rest pass
    through unchanged. Raises EngineError (400) for what this model cannot do."""
    params = {k: v for k, v in optional_params.items() if k not in _NOT_SENT and v is not None}
    params.update(optional_params.get("extra_body") or {})
    if optional_params.get("max_completion_tokens") is not None:
        params.setdefault("max_tokens", optional_params["max_completion_tokens"])
    if params.pop("tools", None):
        raise EngineError("the embedded model has no native tool calling: describe the tools in the prompt", status=400)
    params.pop("tool_choice", None)
    params.pop("parallel_tool_calls", None)
    if params.pop("n", 1) != 1:
        raise EngineError("the embedded model gives one answer a request: n must be 1", status=400)
    return params


def register(litellm: Any) -> None:
    """Adds the provider to litellm's list, once."""
    if any(item["provider"] == PROVIDER for item in litellm.custom_provider_map):
        return
    litellm.custom_provider_map = [
        *litellm.custom_provider_map,
        {"provider": PROVIDER, "custom_handler": _provider_class(litellm)()},
    ]
    importlib.import_module("litellm.utils").custom_llm_setup()


def _seconds(timeout: Any) -> float | None:
    read = getattr(timeout, "read", timeout)
    return float(read) if isinstance(read, (int, float)) else None


def _provider_class(litellm: Any) -> Any:
    shapes: Any = importlib.import_module("litellm.types.utils")
    executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="toolparse-local")

    def ask(
        model: str,
        messages: list[Mapping[str, Any]],
        optional_params: Mapping[str, Any],
        timeout: Any,
        on_text: Callable[[str], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Answer:
        try:
            if model != MODEL_NAME:
                raise EngineError(f"no embedded model {model!r}: the only one is {MODEL_NAME!r}", status=404)
            return local_engine().chat(
                messages,
                engine_parameters(optional_params),
                on_text=on_text,
                cancelled=cancelled,
                timeout=_seconds(timeout),
            )
        except EngineError as e:
            raise _as_litellm(litellm, e, model) from None

    def response(answer: Answer, model: str) -> Any:
        choice = shapes.Choices(
            finish_reason=answer.finish_reason,
            index=0,
            message=shapes.Message(content=answer.text, role="assistant"),
            logprobs={"content": answer.logprobs} if answer.logprobs else None,
        )
        made = shapes.ModelResponse(
            choices=[choice],
            created=answer.created or int(time.time()),
            model=model,
            system_fingerprint=answer.system_fingerprint,
        )
        made.usage = shapes.Usage(**answer.usage)
        return made

    def piece(
        id: str, model: str, text: str = "", finish_reason: str | None = None, answer: Answer | None = None
    ) -> Any:
        delta = shapes.Delta(content=text, role="assistant")
        made = shapes.ModelResponseStream(
            id=id,
            choices=[shapes.StreamingChoices(index=0, delta=delta, finish_reason=finish_reason)],
            model=model,
            system_fingerprint=answer.system_fingerprint if answer else None,
        )
        if answer is not None:
            made.usage = shapes.Usage(**answer.usage)
        return made

    def ending(id: str, model: str, answer: Answer) -> tuple[Any, Any]:
        # litellm drops what comes with or after the finish reason, so the counted tokens come before it.
        return piece(id, model, answer=answer), piece(id, model, finish_reason=answer.finish_reason)

    class EmbeddedModel(litellm.CustomLLM):  # type: ignore[misc]
        def completion(self, *args: Any, **kw: Any) -> Any:
            return response(ask(kw["model"], kw["messages"], kw["optional_params"], kw.get("timeout")), kw["model"])

        async def acompletion(self, *args: Any, **kw: Any) -> Any:
            _note(kw)
            stopped = threading.Event()
            future = asyncio.get_running_loop().run_in_executor(
                executor,
                lambda: ask(
                    kw["model"], kw["messages"], kw["optional_params"], kw.get("timeout"), cancelled=stopped.is_set
                ),
            )
            try:
                return response(await future, kw["model"])
            finally:
                stopped.set()

        def streaming(self, *args: Any, **kw: Any) -> Iterator[Any]:
            stopped, id = threading.Event(), f"chatcmpl-{uuid.uuid4()}"
            ready: queue.SimpleQueue[str | BaseException | Answer] = queue.SimpleQueue()
            _spawn(executor, ask, kw, ready.put, stopped)
            try:
                while isinstance(item := ready.get(), str):
                    yield piece(id, kw["model"], item)
                if isinstance(item, BaseException):
                    raise item
                yield from ending(id, kw["model"], item)
            finally:
                stopped.set()

        async def astreaming(self, *args: Any, **kw: Any) -> AsyncIterator[Any]:
            _note(kw)
            stopped, id = threading.Event(), f"chatcmpl-{uuid.uuid4()}"
            loop = asyncio.get_running_loop()
            ready: asyncio.Queue[str | BaseException | Answer] = asyncio.Queue()

            def put(item: str | BaseException | Answer) -> None:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(ready.put_nowait, item)

            _spawn(executor, ask, kw, put, stopped)
            try:
                while isinstance(item := await ready.get(), str):
                    yield piece(id, kw["model"], item)
                if isinstance(item, BaseException):
                    raise item
                for last in ending(id, kw["model"], item):
                    yield last
            finally:
                stopped.set()

    return EmbeddedModel


def _note(kw: Mapping[str, Any]) -> None:
    """Tells litellm's logging what is sent, as its own providers do."""
    body = {k: v for k, v in kw["optional_params"].items() if k not in _NOT_SENT}
    body["messages"] = kw["messages"]
    kw["logging_obj"].pre_call(input=kw["messages"], api_key="", additional_args={"complete_input_dict": body})


def _spawn(
    executor: ThreadPoolExecutor,
    ask: Callable[..., Answer],
    kw: Mapping[str, Any],
    put: Callable[[str | BaseException | Answer], None],
    stopped: threading.Event,
) -> None:
    def work() -> None:
        try:
            put(
                ask(
                    kw["model"],
                    kw["messages"],
                    kw["optional_params"],
                    kw.get("timeout"),
                    on_text=put,
                    cancelled=stopped.is_set,
                )
            )
        except BaseException as e:
            put(e)

    executor.submit(work)


def _as_litellm(litellm: Any, e: EngineError, model: str) -> Exception:
    common = {"message": str(e), "model": model, "llm_provider": PROVIDER}
    if e.kind == "exceed_context_size_error":
        return litellm.ContextWindowExceededError(**common)  # type: ignore[no-any-return]
    kinds = {
        400: litellm.BadRequestError,
        404: litellm.NotFoundError,
        408: litellm.Timeout,
        499: litellm.APIConnectionError,
    }
    return kinds.get(e.status, litellm.InternalServerError)(**common)  # type: ignore[no-any-return]
