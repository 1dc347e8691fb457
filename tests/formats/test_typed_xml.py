"""The family of elements with typed parameters, read from the texts of its case file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.core_cases import CORE, rows
from tests.laws import check_all

TOOLS = json.loads((CORE / "typed_xml_tools.json").read_text("utf-8"))


@pytest.mark.parametrize("case", rows("typed_xml.jsonl"), ids=lambda c: c["title"])
def test_a_text_of_the_family(case: dict[str, Any]) -> None:
    result = check_all(case["raw"], case.get("format", "auto"), TOOLS)
    assert [[c.name, c.arguments] for c in result.calls if c.valid] == case["calls"]
    assert sorted({p.code for c in result.calls for p in c.problems}) == case.get("problems", [])
