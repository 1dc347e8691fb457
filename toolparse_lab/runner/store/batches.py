"""A few hundred things at a time, which is as much as one statement of every database takes as
parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")
# Builds of SQLite before 3.32 stop at 999 parameters a statement.
BATCH = 400


def batches(values: Iterable[_T], size: int = BATCH) -> Iterator[list[_T]]:
    batch: list[_T] = []
    for value in values:
        batch.append(value)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
