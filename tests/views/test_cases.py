"""Every recorded format and damage case through every view: nothing fails, nothing of the text is
lost."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of
from tests.views.test_html import Reader
from toolparse_lab.core.types import Span
from toolparse_lab.views import render_ansi, render_diff, render_result
from toolparse_lab.views.marks import marks_of, runs_of
from toolparse_lab.views.show import visible
from toolparse_lab.views.stages import parts_of

CASES = Path(__file__).parents[1] / "cases"


def cases() -> list[Any]:
    found = []
    for name in ("formats.jsonl", "damaged_calls.jsonl"):
        for line in (CASES / name).read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            found.append(pytest.param(case, id=case["id"]))
    return found


@asked_of("case", cases())
def test_every_view_of_every_case(case: dict[str, Any]) -> None:
    known = tp.protocols()
    protocol = case.get("format", "auto")
    result = tp.parse(case["raw"], protocol if protocol in known else "auto", case.get("tools"))
    page = Reader(render_result(result))
    assert "".join(page.raw) == visible(result.raw)
    Reader(render_diff(result))
    assert visible(result.raw) in re.sub(r"\x1b\[[\d;]*m|‸", "", render_ansi(result)).replace(
        "‸", ""
    )
    marks = marks_of(result)
    assert all(Span(0, len(result.raw)).covers(m.span) for m in marks)
    runs = runs_of([m.span for m in marks], len(result.raw))
    assert "".join(result.raw[r.start : r.end] for r in runs) == result.raw
    # Every leaf that has a place is linked.
    parts = parts_of(result)
    linked = {n for of in re.findall(r'data-n="([^"]*)"', parts.stages[0].html) for n in of.split()}
    for i, node in enumerate(parts.nodes):
        if node["leaf"] and node["start"] >= 0:
            assert str(i) in linked, node["path"]
