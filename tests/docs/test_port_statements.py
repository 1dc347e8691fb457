"""Every place and test that `type_safety_statements.md` names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_named_place_and_test_exists() -> None:
    text = (ROOT / "tests" / "type_safety_statements.md").read_text("utf-8")
    table = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert len(table) >= 61
    for line in table:
        _, place, test, _ = (cell.strip() for cell in line.strip("|").split(" |", 3))
        assert (ROOT / place.strip("`")).is_file(), line
        file, name = test.strip("`").split("::")
        body = (ROOT / file).read_text("utf-8")
        assert re.search(rf"^(async )?def {name}\(", body, re.MULTILINE), line
