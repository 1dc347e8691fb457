"""The ids of an answer's calls, the same wherever the answer is read."""

from __future__ import annotations

from ...middleware.attempts import CallIds


class AnswerIds:
    """The ids of the calls of each choice of one answer. Any thread may ask."""

    def __init__(self) -> None:
        self._by_choice: dict[int, CallIds] = {}

    def of(self, choice: int) -> CallIds:
        """Return the ids of a choice, by its index."""
        return self._by_choice.setdefault(choice, CallIds())
