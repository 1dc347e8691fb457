"""What goes to a worker and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..evals.frames.answers import Piece
from ..evals.frames.reread import Reading

if TYPE_CHECKING:
    from ..evals.frames.recorded import Frame

Done: TypeAlias = "tuple[int, Frame | None]"
"""How many answers a task held, and its rows, where they were not written already."""


@dataclass(frozen=True, slots=True)
class Task:
    """A piece, how it is read, and the file its rows go to, where they are not to come back."""

    piece: Piece
    how: Reading
    part: str | None = None
