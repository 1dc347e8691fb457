"""Coroutines from synchronous code, inside Jupyter too: one private event loop on a thread of its
own.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..core.errors import BadOptions
from .litellm_door import close_clients
from .termination import terminated_as_interrupted

# How the private loop works. A notebook has a running loop of its own, in which nobody may block,
# and asyncio allows no second one on the same thread. So synchronous code hands its coroutine to a
# loop on a daemon thread, made when first needed and kept for the process: litellm pools its
# connections by loop, and a new loop for each call would open them anew. The caller waits in short
# naps, so that Ctrl-C reaches it on every platform; it then cancels the coroutine and waits for its
# cleaning up, because that is when a run writes what it has.

_T = TypeVar("_T")
_POLL = 0.2  # seconds; some platforms notice Ctrl-C only between waits
_GRACE = 10.0  # seconds for cleaning up after Ctrl-C

_lock = threading.Lock()
_loops: dict[int, tuple[asyncio.AbstractEventLoop, threading.Thread]] = {}


def _private_loop() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    # Under a lock, because notebooks and servers call from several threads.
    # By process id: a forked child has this dictionary, but not the thread.
    with _lock:
        running = _loops.get(os.getpid())
        if running is None:
            loop = asyncio.new_event_loop()

            def serve() -> None:
                asyncio.set_event_loop(loop)
                loop.run_forever()

            thread = threading.Thread(target=serve, name="toolparse-loop", daemon=True)
            thread.start()
            running = _loops[os.getpid()] = (loop, thread)
        return running


def run_sync(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of a coroutine, run on a private background loop: also where a loop is
    running already (Jupyter).

    Ctrl-C, and SIGTERM where no one else takes it, cancels the coroutine, waits until it has
    cleaned up, and raises KeyboardInterrupt. A second Ctrl-C does not wait. Raises BadOptions when
    called from the private loop itself, where waiting would never end.
    """
    loop, thread = _private_loop()
    if threading.current_thread() is thread:
        coroutine.close()
        raise BadOptions(
            "A synchronous call was made inside the loop that would have to run it.",
            hint="use the awaitable form there: `await lab.arun(plan)`",
        )
    future: concurrent.futures.Future[_T] = concurrent.futures.Future()
    tasks: list[asyncio.Task[_T]] = []

    # Not `run_coroutine_threadsafe`: its future can be cancelled, but not waited for after that.
    def start() -> None:
        task = loop.create_task(coroutine)
        tasks.append(task)
        task.add_done_callback(end)

    def end(task: asyncio.Task[_T]) -> None:
        if task.cancelled():
            future.set_exception(concurrent.futures.CancelledError())
        elif (e := task.exception()) is not None:
            future.set_exception(e)
        else:
            future.set_result(task.result())

    loop.call_soon_threadsafe(start)
    try:
        with terminated_as_interrupted():
            return _wait(future)
    except KeyboardInterrupt:
        # From the loop's own thread, since tasks are not thread-safe.
        loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
        with contextlib.suppress(Exception, concurrent.futures.CancelledError):
            _wait(future, _GRACE)
        raise


def _wait(future: concurrent.futures.Future[_T], limit: float | None = None) -> _T:
    # A TimeoutError of the coroutine's own is told from that of a nap by the future being done.
    waited = 0.0
    while True:
        try:
            return future.result(timeout=_POLL)
        except concurrent.futures.TimeoutError:
            if future.done():
                return future.result()
            waited += _POLL
            if limit is not None and waited >= limit:
                raise


@atexit.register
def _close() -> None:
    # Registered at exit. Nothing is raised, since no one could answer it.
    running = _loops.pop(os.getpid(), None)
    if running is None:
        return
    loop, thread = running
    # Two seconds each: a process that is told to end must not hang on a server that is gone.
    with contextlib.suppress(Exception):
        asyncio.run_coroutine_threadsafe(_clean_up(), loop).result(timeout=2)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=2)
    if not loop.is_running():
        loop.close()


async def _clean_up() -> None:
    await close_clients()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
