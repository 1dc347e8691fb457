"""Embedded models in this process: one engine for each file of weights, loaded when first asked,
answering one request at a time.

Answers are reproducible on one machine because the number of threads, the temperature and the seed
are fixed and no prompt cache stays. Another processor may give other text.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import BadOptions
from .setup import is_gguf, local_model_path

MODEL_NAME = "smollm2-135m"
CONTEXT = 8192
DEFAULTS: Mapping[str, Any] = {
    "temperature": 0,
    "seed": 1,
    "max_tokens": 512,
    "cache_prompt": False,
}


class EngineError(Exception):
    """The engine refused or broke off a request. `status` is the code of an HTTP server."""

    def __init__(self, message: str, *, status: int = 500, kind: str = "") -> None:
        self.status = status
        self.kind = kind
        super().__init__(message)


@dataclass(slots=True)
class Answer:
    """A finished chat completion. `parts` are (seconds since the engine began, text), `tool_calls`
    the calls that the engine read by the model's own chat template, in OpenAI's shape.
    """

    parts: list[tuple[float, str]] = field(default_factory=list)
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str | None = None
    usage: dict[str, int] = field(default_factory=dict)
    logprobs: list[Any] = field(default_factory=list)
    system_fingerprint: str | None = None
    created: int = 0
    seconds: float = 0.0

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.parts)

    def add(self, chunk: dict[str, Any], at: float) -> str | list[dict[str, Any]]:
        # The text of a chunk, or its pieces of tool calls, at seconds since the engine began.
        error = chunk.get("error")
        if error:
            raise EngineError(
                str(error.get("message", error)),
                status=int(error.get("code", 500)),
                kind=str(error.get("type", "")),
            )
        self.system_fingerprint = chunk.get("system_fingerprint") or self.system_fingerprint
        self.created = chunk.get("created") or self.created
        if chunk.get("usage"):
            names = ("prompt_tokens", "completion_tokens", "total_tokens")
            self.usage = {name: n for name, n in chunk["usage"].items() if name in names}
        text = ""
        calls: list[dict[str, Any]] = []
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            piece = delta.get("content")
            if piece:
                text += piece
                self.parts.append((at, piece))
            calls += delta.get("tool_calls") or []
            self.logprobs += (choice.get("logprobs") or {}).get("content") or []
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
        for call in calls:
            self._add_call(call)
        return calls or text

    def _add_call(self, delta: Mapping[str, Any]) -> None:
        index, said = delta.get("index", 0), delta.get("function") or {}
        while len(self.tool_calls) <= index:
            empty = {"name": "", "arguments": ""}
            self.tool_calls.append({"id": "", "type": "function", "function": empty})
        call = self.tool_calls[index]
        call["id"] = delta.get("id") or call["id"]
        call["function"]["name"] += said.get("name") or ""
        call["function"]["arguments"] += said.get("arguments") or ""


def thread_count() -> int:
    """Return the threads of the engine: TOOLPARSE_LOCAL_THREADS, else 1 (more are slower on a busy
    machine).
    """
    text = os.environ.get("TOOLPARSE_LOCAL_THREADS", "1")
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadOptions(
            "TOOLPARSE_LOCAL_THREADS is no thread count.",
            got=text,
            expected="a whole number above 0",
        )
    return int(text)


def engine_params(api_key: str, threads: int | None = None, model: str = MODEL_NAME) -> Any:
    """Return the engine's settings: text exactly as the model writes it, no prompt cache, no
    network beyond loopback. `model` is the small model's name, or the path of a GGUF file.
    """
    path = local_model_path(model)
    import xllamacpp  # a native library, and an optional one

    # Everything that may change an answer is fixed here; the rest is switched off.
    threads = threads or thread_count()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {path.stem if is_gguf(model) else model}
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = 2
    params.verbosity = -1
    params.warmup = False
    params.cache_prompt = False
    params.cache_ram_mib = 0
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    # force_pure_content_parser would be plainer, but makes the engine forget response_format.
    params.reasoning_format = xllamacpp.common_reasoning_format.COMMON_REASONING_FORMAT_NONE
    params.sampling.temp = DEFAULTS["temperature"]
    params.sampling.seed = DEFAULTS["seed"]
    params.n_predict = DEFAULTS["max_tokens"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [api_key]
    return params


class LocalEngine:
    """One model: SmolLM2-135M-Instruct, or the one of a GGUF file. Thread-safe: concurrent requests
    wait for each other, in the order they came.
    """

    def __init__(self, model: str = MODEL_NAME) -> None:
        self._model = model
        self._lock = threading.Lock()
        self._server: Any = None
        self._key = secrets.token_urlsafe(24)
        self._template: str | None = None
        self.load_seconds: float | None = None

    def _loaded(self) -> Any:
        # Takes about a second, when first needed.
        if self._server is None:
            started = time.perf_counter()
            # The engine always opens a loopback port; a random key closes it to everybody else.
            params = engine_params(self._key, model=self._model)
            import xllamacpp  # `engine_params` has said what to install where it is missing

            try:
                self._server = xllamacpp.Server(params)
            except RuntimeError as e:
                raise EngineError(f"The embedded model could not be loaded: {e}") from None
            self.load_seconds = time.perf_counter() - started
        return self._server

    def _chat_template(self) -> str:
        # In-process calls do not tell it; the engine's own server on loopback does.
        if self._template is None:
            import httpx  # comes with litellm, which asks the engine

            props = httpx.get(
                f"{str(self._server.listening_address).rstrip('/')}/props",
                headers={"Authorization": f"Bearer {self._key}"},
                timeout=30,
                trust_env=False,
            ).json()
            found = props.get("chat_template_tool_use") or props.get("chat_template")
            self._template = str(found or "")
        return self._template

    def chat(
        self,
        messages: list[Mapping[str, Any]],
        params: Mapping[str, Any] | None = None,
        *,
        on_piece: Callable[[str | list[dict[str, Any]]], None] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        timeout: float | None = None,
    ) -> Answer:
        """Return the answer to one chat.

        `params` are the engine's own (OpenAI names plus `grammar`). `on_piece` is called in this
        thread with each piece as it is made: text, or the pieces of tool calls. `timeout` counts
        seconds from when the engine begins.

        Raises EngineError, also for an answer that was cancelled (status 499) or timed out (status
        408).
        """
        body: dict[str, Any] = {**DEFAULTS, **(params or {}), "messages": list(messages)}
        body["stream"] = True  # the only way a running answer can be stopped
        body["stream_options"] = {"include_usage": True}
        answer = Answer()
        failures: list[EngineError] = []

        def take(chunk: dict[str, Any]) -> bool:
            # True stops the engine. Nothing may be raised: the native loop that calls this would
            # drop the exception.
            now = time.perf_counter() - started
            try:
                piece = answer.add(chunk, now)
                if piece and on_piece is not None:
                    on_piece(piece)
                if cancelled():
                    raise EngineError("cancelled", status=499)
                if timeout is not None and now > timeout:
                    raise EngineError(f"no finished answer after {timeout:g} s", status=408)
            except EngineError as e:
                failures.append(e)
            except Exception as e:
                failures.append(EngineError(f"{type(e).__name__}: {e}"))
            return bool(failures)

        with self._lock:
            # The caller may have gone while others were answered.
            if cancelled():
                raise EngineError("cancelled", status=499)
            server = self._loaded()
            # The engine would leave the tools out without a word.
            if body.get("tools") and "tools" not in self._chat_template():
                raise EngineError(
                    "the embedded model's chat template has no native tool calling: describe the "
                    "tools in the prompt",
                    status=400,
                )
            started = time.perf_counter()
            try:
                server.handle_chat_completions(body, take)
            except (TypeError, ValueError, RuntimeError) as e:
                raise EngineError(f"The engine cannot take this request: {e}", status=400) from None
            answer.seconds = time.perf_counter() - started

        if failures:
            raise failures[0]
        if answer.finish_reason is None:
            raise EngineError("the engine stopped without finishing its answer")
        return answer


_engines: dict[tuple[int, str], LocalEngine] = {}
_engines_lock = threading.Lock()


def local_engine(model: str = MODEL_NAME) -> LocalEngine:
    """Return this process's engine of a model (a forked child gets its own: native threads do not
    survive a fork).
    """
    with _engines_lock:
        return _engines.setdefault((os.getpid(), model), LocalEngine(model))
