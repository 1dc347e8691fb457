"""The one door through which litellm is imported: what must be set before and after, once."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from ..errors import MissingExtra

_lock = threading.Lock()
_module: Any = None
_WATCHED = ("drop_params", "modify_params", "add_function_to_prompt", "num_retries", "cache", "api_base", "headers")


def litellm_module() -> Any:
    """litellm, imported once (2-5 s) without network access, telemetry, prints or warnings, and with the embedded
    model registered as provider `toolparse-local`. Raises MissingExtra."""
    global _module
    if _module is None:
        with _lock:
            if _module is None:
                _module = _import()
    return _module


def _import() -> Any:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else the import fetches a price list
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            litellm: Any = importlib.import_module("litellm")
        except ImportError as e:
            raise MissingExtra(
                "Asking a model needs litellm.", got=str(e), hint="pip install 'toolparse_lab[lab]'"
            ) from None
        shapes: Any = importlib.import_module("litellm.types.utils")
        # Pydantic builds these when first used, and warns about litellm's types then.
        for shape in (shapes.ModelResponse, shapes.ModelResponseStream, shapes.Usage):
            shape()
    ignore_warnings()
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 2**31  # endless repetition is an answer to record, not an error
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_hf_tokenizer_download = True
    if "LITELLM_LOG" not in os.environ:
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    from .local_provider import register

    register(litellm)
    return litellm


def ignore_warnings() -> None:
    """litellm's own warnings are not the caller's, and must not become errors under `-W error`.

    For this process, and for warnings that litellm's modules cause only; again before each call, because test
    runners take filters back. `catch_warnings` would not do: calls overlap.
    """
    for message, module in (("", r"litellm(\.|$)"), ("Pydantic serializer warnings|Items? '", r"pydantic\.")):
        present = any(
            f[0] == "ignore" and getattr(f[3], "pattern", None) == module and f[2] is Warning for f in warnings.filters
        )
        if not present:
            warnings.filterwarnings("ignore", message, Warning, module)


_workers: set[asyncio.Task[Any]] = set()


def hold_logging_worker() -> None:
    """Keeps litellm's logging task of this loop alive: litellm drops it when another loop asks, and asyncio then
    complains about a task that was destroyed."""
    module = importlib.import_module("litellm.litellm_core_utils.logging_worker")
    task = getattr(getattr(module, "GLOBAL_LOGGING_WORKER", None), "_worker_task", None)
    if isinstance(task, asyncio.Task) and task not in _workers and not task.done():
        _workers.add(task)
        task.add_done_callback(_workers.discard)


_under_way = 0
_told = False


@contextlib.contextmanager
def switch_held() -> Iterator[None]:
    """For one call: `litellm.add_function_to_prompt` is afterwards what it was before.

    litellm sets it for the whole process as soon as its provider `ollama` is given tools, and then writes the tools of
    other providers into their prompts too. Calls overlap, so that what counts is what it was before the first of them.
    """
    global _under_way, _told
    litellm = litellm_module()
    with _lock:
        if not _under_way:
            _told = bool(litellm.add_function_to_prompt)
        _under_way += 1
    try:
        yield
    finally:
        with _lock:
            _under_way -= 1
            litellm.add_function_to_prompt = _told


def watched_globals() -> dict[str, Any]:
    """litellm's process-wide switches that change what is sent, where somebody has set them."""
    litellm = litellm_module()
    found = {name: getattr(litellm, name, None) for name in _WATCHED}
    return {name: value if isinstance(value, (bool, int, str)) else True for name, value in found.items() if value}


async def close_clients() -> None:
    """Closes litellm's pooled HTTP clients of this event loop; call it before the loop is closed."""
    if _module is not None:
        with contextlib.suppress(Exception):
            await _module.close_litellm_async_clients()
        with contextlib.suppress(AttributeError):
            _module.in_memory_llm_clients_cache.flush_cache()
        await asyncio.sleep(0)
