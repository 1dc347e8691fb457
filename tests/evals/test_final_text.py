"""What the last text of a conversation is to say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tables import each_case
from toolparse_lab.evals.cases.case import check_answer, matches_answer


@each_case
def test_matching(wanted: Any, text: str, matches: bool) -> None:
    assert check_answer(wanted) is None
    assert matches_answer(wanted, text) is matches


@pytest.mark.parametrize(
    "wanted",
    ["", " ", 3, [], ["a"], {}, {"is": "a"}, {"contains": []}, {"contains": 3}, {"contains": ["a", ""]},
     {"equals": ["a"]}, {"equals": {"$any": []}}, {"contains": {"$any": ["a"], "$optional": True}},
     {"contains": "a", "equals": "a"}],
)  # fmt: skip
def test_what_cannot_be_matched_is_refused(wanted: Any) -> None:
    complaint = check_answer(wanted)
    assert complaint is not None
    assert complaint[0]
