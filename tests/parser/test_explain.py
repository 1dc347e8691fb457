"""`result.why()`: one sentence a call."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


@pytest.mark.parametrize("case", rows("why.jsonl"))
def test_why(case: dict[str, Any]) -> None:
    result = tp.parse(case["raw"], "hermes", TOOLS)
    assert result.why() == case["why"]
    assert str(result) == case["why"]
