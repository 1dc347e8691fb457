"""litellm, imported in this one place: the settings needed before and after, and its clients."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..core.errors import MissingExtra
from .litellm_faults import ask_no_ollama_server, ignore_warnings, remember_context_lengths
from .local.provider import register
from .streams import close_quietly


@contextmanager
def paused_collector() -> Iterator[None]:
    """Collect no garbage inside the block, and leave the collector as it was before."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


# How it is imported. Importing litellm takes 2 to 5 seconds, so it happens when a model is first
# asked, and once, under a lock: threads that ask at the same moment wait for the one that imports.
# An application whose models go through the bridge is a host: its loggers and litellm's settings
# stay as they are. What litellm would print, count or limit is switched off where a run is
# recorded, and only there. Its switches stay the user's: they are not reset, but recorded with each
# answer (`watched_globals`), because they change what is sent.

_lock = threading.Lock()
_DAY = 86_400  # seconds; a client that litellm drops earlier would stay open
_module: Any = None
_quiet = False
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
# Settings of the process that change a request or its answer.
_WATCHED = (
    "drop_params", "modify_params", "add_function_to_prompt", "num_retries", "cache", "api_base",
    "headers",
)  # fmt: skip


def litellm_module() -> Any:
    """Return litellm, imported once (2-5 s) without network access or warnings, and with the
    embedded model registered as provider `toolparse-local`. Raises MissingExtra.
    """
    global _module
    if _module is None:
        with _lock:
            if _module is None:
                _module = _import()
    # Also where nothing is asked: a look-up may be what first builds one of litellm's types.
    ignore_warnings()
    return _module


def recording_litellm() -> Any:
    """Return `litellm_module` for recordings: it prints nothing, counts nothing, and takes an
    endless repetition as the answer that it is.
    """
    global _quiet
    litellm = litellm_module()
    if not _quiet:
        with _lock:
            _set_up(litellm)
            _quiet = True
    return litellm


def _import() -> Any:
    # Without it the import fetches a price list.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # The collector would take a third of the time, for half a million objects that all stay.
    with warnings.catch_warnings(), paused_collector():
        warnings.simplefilter("ignore")
        try:
            litellm: Any = importlib.import_module("litellm")
        except ImportError as e:
            raise MissingExtra(
                "asking a model needs litellm",
                got=str(e),
                hint="in a checkout: pip install '.[lab]'",
            ) from None
        shapes: Any = importlib.import_module("litellm.types.utils")
        # Pydantic builds these when first used, and warns about litellm's types then.
        for shape in (shapes.ModelResponse, shapes.ModelResponseStream, shapes.Usage):
            shape()

    register(litellm)
    return litellm


def _set_up(litellm: Any) -> None:
    # An endless repetition is an answer to record, and no error.
    litellm.REPEATED_STREAMING_CHUNK_LIMIT = 2**31
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.disable_hf_tokenizer_download = True
    remember_context_lengths()
    ask_no_ollama_server()
    # Whoever sets the variable wants to read litellm's log.
    if "LITELLM_LOG" not in os.environ:
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def watched_globals() -> dict[str, Any]:
    """Return litellm's process-wide switches that change the request sent, where someone has set
    them. Objects are given as True: they may have keys in them, and are not JSON.
    """
    litellm = _module or litellm_module()
    return {
        name: value if isinstance(value, (bool, int, str)) else True
        for name in _WATCHED
        if (value := getattr(litellm, name, None))
    }


def text_client(api_base: str | None, api_key: str | None) -> Any:
    """Return OpenAI's client for a completion endpoint, one for each address and event loop.

    litellm would make a new one for each call, and close none. Call it inside the loop. None
    without a key: litellm then says what is missing.
    """
    key = api_key or os.environ.get("OPENAI_API_KEY")
    if key is None:
        return None
    litellm = litellm_module()
    # Among litellm's own clients, so that `close_clients` finds it.
    cache, name = litellm.in_memory_llm_clients_cache, f"text-{hash((api_base, key))}"
    client = cache.get_cache(name)
    if client is None:
        client = litellm.AsyncOpenAI(api_key=key, base_url=api_base, max_retries=0)
        cache.set_cache(name, client, ttl=_DAY)
    return client


async def close_clients() -> None:
    """Close litellm's pooled HTTP clients of this event loop, before the loop is closed.

    Clients of other loops stay as they are. A connection closed from outside its own loop only
    schedules its end there, on a loop that nothing wakes. Its socket would stay open until the
    garbage collector finds it, and warns.
    """
    if _module is None:
        return
    with contextlib.suppress(AttributeError):
        cache = _module.in_memory_llm_clients_cache
        # litellm adds a mark of the running loop to the key of each client: its id up to 1.106, and
        # later another one. Sync clients have no loop in their key, and stay for the next call.
        ending = cache.update_cache_key_with_event_loop("")
        keys = [key for key in list(cache.cache_dict) if str(key).endswith(ending)]
        # Taken out first, so that a later loop that happens to get the same id does not find them.
        clients = [cache.cache_dict.pop(key, None) for key in keys]
        for key in keys:
            cache.ttl_dict.pop(key, None)
        for client in clients:
            await close_quietly(client)
    # Transports tell their sockets to close in the loop's next round.
    await asyncio.sleep(0)
