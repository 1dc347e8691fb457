"""The tables of the core's tests: one JSON object a line in `cases_core/`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CORE = Path(__file__).parent / "cases_core"
SHIPPED = Path(__file__).parent / "cases"
EVALS = Path(__file__).parent / "cases_evals"


def load(name: str, folder: Path = CORE) -> list[dict[str, Any]]:
    """The rows of one case file."""
    return [
        json.loads(line) for line in (folder / name).read_text("utf-8").splitlines() if line.strip()
    ]


def rows(name: str, folder: Path = CORE) -> list[Any]:
    """The rows as pytest parameters named after their `id` or `title`."""
    return titled(load(name, folder))


def titled(rows: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(row, id=str(row.get("id") or row["title"])) for row in rows]
