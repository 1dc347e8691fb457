"""How the rows of a source are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import BadOptions
from ...evals.cases.rows import Errors, Others


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of `Lab.ingest`. Raises BadOptions for `max_rows` below 1."""

    tools: Any = None
    cases: Any = None
    columns: Mapping[str, str | None] | None = None
    others: Others = "metadata"
    model: str | None = None
    protocol: Any = "auto"
    errors: Errors = "raise"
    split: str | None = None
    max_rows: int | None = None
    shape: str | None = None
    requests: Any = None

    def __post_init__(self) -> None:
        most = self.max_rows
        if most is not None and (isinstance(most, bool) or most < 1):
            raise BadOptions("max_rows is the most rows that are read", got=most, expected=">= 1")
