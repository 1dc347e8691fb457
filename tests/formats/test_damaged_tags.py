"""Bodies of tags that are damaged: one reading or none, and nothing invented."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core_cases import rows
from tests.formats.test_parse import TOOLS
from tests.laws import check_all


@pytest.mark.parametrize("case", rows("damaged_tags.jsonl"))
def test_each_body_is_read_as_the_table_says(case: dict[str, Any]) -> None:
    result = check_all(case["raw"], case["protocol"], TOOLS, None, every_split=True)
    calls = [
        {"status": c.status, **({"arguments": c.arguments} if c.readable else {})}
        for c in result.calls
    ]
    assert calls == case["calls"]

    rules = {e.rule for c in result.calls for e in c.edits}
    rules |= {s.rule for c in result.calls for s in c.steps}
    assert rules == set(case["rules"])
    codes = {p.code for c in result.calls for p in c.problems} - {"call.rescued-closer"}
    assert codes == set(case["codes"])
