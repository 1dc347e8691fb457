"""Rows of JSON formats: shapes, damage and what is no call, under their names and by `auto`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_cases import rows
from tests.formats.test_tables import TOOLS
from tests.laws import check_all


@pytest.mark.parametrize("case", rows("json_rows.jsonl"))
def test_rows(case: dict[str, Any]) -> None:
    for name in [case["format"]] if case.get("named_only") else [case["format"], "auto"]:
        result = check_all(case["raw"], name, TOOLS)
        calls = [[c.name, c.arguments] for c in result.calls if c.ok]
        assert calls == case["calls"], name
