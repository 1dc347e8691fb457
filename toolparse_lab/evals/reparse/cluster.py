"""A Dask cluster that is there already.

Its workers read, and write the parts of a folder, themselves.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Generator, Iterator
from typing import Any

from ...core.errors import BadOptions, IncompleteError, MissingExtra, ToolparseError
from ..frames.answers import read_piece
from .tasks import Done, Task

_AHEAD = 3  # pieces a thread of the cluster has waiting


def run_cluster(tasks: Iterator[Task], client: Any = None) -> Generator[Done, None, None]:
    """Yield the results of the tasks in order.

    client: a `distributed.Client`, an address, or None for the current one. Raises MissingExtra,
    BadOptions if there is no cluster, IncompleteError, and the error of a task.
    """
    try:
        import distributed
    except ImportError as e:
        raise MissingExtra(
            "the engine 'dask' needs distributed",
            got=str(e),
            hint="pip install 'toolparse_lab[dask]'",
        ) from None
    with _client(distributed, client) as connected:
        waiting: deque[Any] = deque()
        try:
            most = max(1, sum(connected.nthreads().values())) * _AHEAD
            for task in tasks:
                waiting.append(
                    connected.submit(read_piece, task.piece, task.reading, task.part, pure=False)
                )
                if len(waiting) > most:
                    yield _result(distributed, waiting[0])
                    waiting.popleft()
            while waiting:
                yield _result(distributed, waiting[0])
                waiting.popleft()
        finally:
            if waiting:
                with contextlib.suppress(Exception):
                    connected.cancel(list(waiting), force=True)


def _result(distributed: Any, future: Any) -> Done:
    try:
        done: Done = future.result()
    except ToolparseError:
        raise
    except (distributed.KilledWorker, distributed.CancelledError) as e:
        raise IncompleteError(
            "workers of the cluster ended before their answers were read",
            got=str(e).splitlines()[0] if str(e) else type(e).__name__,
            hint="give a smaller batch_rows; engine='serial' shows where it happens",
            code="worker-lost",
        ) from None
    except ImportError as e:
        raise BadOptions(
            "the workers of the cluster cannot import what they need",
            got=str(e),
            expected="toolparse_lab[lab] of the same version",
            hint="install it where the workers run",
        ) from None
    return done


@contextlib.contextmanager
def _client(distributed: Any, client: Any) -> Iterator[Any]:
    # Closed again where it was made here.
    if isinstance(client, distributed.Client):
        if client.asynchronous:
            raise BadOptions(
                "this client is asynchronous", hint="give the address of its scheduler"
            )
        yield client
    elif client is None:
        yield _current_client(distributed)
    else:
        # A notebook's own default client stays what it is.
        with _new_client(distributed, client) as connected:
            yield connected


def _current_client(distributed: Any) -> Any:
    try:
        return distributed.Client.current()
    except ValueError:
        raise BadOptions(
            "there is no Dask client here",
            expected="a distributed.Client, or the address of a scheduler such as tcp://host:8786",
            hint="make one, or give client=",
        ) from None


def _new_client(distributed: Any, address: Any) -> Any:
    try:
        return distributed.Client(address, set_as_default=False)
    except (OSError, ValueError, TypeError) as e:
        raise BadOptions(
            "there is no Dask scheduler at this address",
            got=f"{address}: {e}",
            expected="such as tcp://host:8786",
        ) from None
