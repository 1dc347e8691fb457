"""What a person would read as its schema wants: the policy `safe` beside pydantic's lax mode."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from benchmarks import rescues
from tests.tables import asked_of

CASES = rescues.cases()
WANTED = [case for case in CASES if "want" in case]
SAFE = rescues.by_policy("safe")


def test_there_are_enough_cases_and_no_two_ask_the_same() -> None:
    assert len(WANTED) >= 65
    assert len({case["title"] for case in CASES}) == len(CASES)


def test_safe_rescues_most_and_makes_nothing_wrong() -> None:
    counts = Counter(rescues.verdict(case, SAFE(case)) for case in CASES)
    assert counts["wrong"] == 0
    assert counts["rescued"] >= 65


@asked_of("case", [c for c in CASES if "want" not in c], ids=lambda c: c["title"])
def test_what_nobody_could_say_is_left(case: dict[str, Any]) -> None:
    assert rescues.verdict(case, SAFE(case)) == "left"


def test_pydantic_is_read_where_it_is_installed() -> None:
    pytest.importorskip("pydantic")
    pydantic = rescues.by_pydantic()
    assert pydantic is not None
    counts = Counter(rescues.verdict(case, pydantic(case)) for case in CASES)
    safe = Counter(rescues.verdict(case, SAFE(case)) for case in CASES)
    assert safe["rescued"] >= counts["rescued"] >= 45
