"""A few hundred things at a time, as many as a statement of every database takes as parameters.

Apart from the rows, since recordings are read and written without SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")
BATCH = 400  # builds of SQLite before 3.32 stop at 999 parameters


def batches(values: Iterable[_T], size: int = BATCH) -> Iterator[list[_T]]:
    batch: list[_T] = []
    for value in values:
        batch.append(value)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
