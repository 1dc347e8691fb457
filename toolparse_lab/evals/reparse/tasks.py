"""The message to a worker and the one that comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..frames.answers import Piece
from ..frames.reread import Reading

if TYPE_CHECKING:
    from ..frames.recorded import Frame

Done: TypeAlias = "tuple[int, Frame | None]"
"""The number of answers in a task, and its rows, where they were not written already."""


@dataclass(frozen=True, slots=True)
class Task:
    """A piece, the way it is read, and the file its rows go to, where they are not to come back."""

    piece: Piece
    reading: Reading
    part: str | None = None
