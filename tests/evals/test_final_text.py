"""What the last text of a conversation is to say."""

from __future__ import annotations

from typing import Any

from tests.tables import each_case
from toolparse_lab.evals.cases.case import check_answer, matches_answer


@each_case
def test_matching(wanted: Any, text: str, matches: bool) -> None:
    assert check_answer(wanted) is None
    assert matches_answer(wanted, text) is matches


@each_case
def test_what_cannot_be_matched_is_refused(wanted: Any) -> None:
    complaint = check_answer(wanted)
    assert complaint is not None
    assert complaint[0]
