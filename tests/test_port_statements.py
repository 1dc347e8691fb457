"""Every place and test that the port's table of statements names is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAD = "## The design of type safety, statement by statement"


def test_every_named_place_and_test_exists() -> None:
    text = (ROOT / "docs" / "port.md").read_text("utf-8")
    section = text.split(HEAD)[1].split("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(table) >= 61
    for line in table:
        _, place, test, _ = (cell.strip() for cell in line.strip("|").split(" |", 3))
        assert (ROOT / place.strip("`")).is_file(), line
        file, name = test.strip("`").split("::")
        body = (ROOT / file).read_text("utf-8")
        assert re.search(rf"^(async )?def {name}\(", body, re.MULTILINE), line
