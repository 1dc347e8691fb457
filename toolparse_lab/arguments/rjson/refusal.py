"""The one way in which reading says that it will not guess."""

from __future__ import annotations

from ...core.types import Edit
from ...core.types.call import Reading


class Refusal(Exception):
    """The text cannot be read without inventing something."""

    name: str = ""
    readings: tuple[Reading, ...] = ()
    edits: tuple[Edit, ...] = ()
    name_at: tuple[int, int] | None = None

    def __init__(self, code: str, message: str, position: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.position = position
