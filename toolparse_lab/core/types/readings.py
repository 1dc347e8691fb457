"""`Reading`: one of several things that a damaged body may mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..values import read_plain
from .serial import edit_in, edit_out
from .spans import Edit


@dataclass(frozen=True, slots=True)
class Reading:
    """A candidate that no one chose: the value of the call, and the edits in raw it would take.

    `cost` is the cost of the edits together: the least one is nearest to the text. `why` says the
    verdict of the tool's schema on it.
    """

    name: str
    arguments_json: str
    edits: tuple[Edit, ...]
    cost: int
    why: str

    @property
    def arguments(self) -> dict[str, Any]:
        """A fresh dict of the arguments."""
        value = read_plain(self.arguments_json)
        return value if isinstance(value, dict) else {}

    def shift(self, by: int) -> Reading:
        """Return the same reading of a text that begins at offset `by`."""
        edits = tuple(Edit(e.span.shift(by), e.text, e.rule) for e in self.edits)
        return Reading(self.name, self.arguments_json, edits, self.cost, self.why)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict of all fields."""
        return {
            "name": self.name,
            "arguments_json": self.arguments_json,
            "edits": list(map(edit_out, self.edits)),
            "cost": self.cost,
            "why": self.why,
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Reading:
        """Return the reading that `to_dict` described."""
        edits = tuple(map(edit_in, d["edits"]))
        return cls(d["name"], d["arguments_json"], edits, d["cost"], d["why"])
