"""Arms: every combination of levels, named by what differs."""

from __future__ import annotations

import pytest

from tests.tables import each_case
from toolparse_lab.core.errors import BadPlan
from toolparse_lab.experiments.arms import FACTORS, arm_of, arms_of, check_names


def test_an_arm_is_named_by_what_differs() -> None:
    arms = arms_of(
        ["hermes", "gemma"], {"tool_choice": ["auto", {"name": "f"}], "type_rules": [False, True]}
    )
    assert [a.name for a in arms[:4]] == [
        "hermes tool_choice=auto no-rules", "hermes tool_choice=auto type-rules",
        "hermes tool_choice=f no-rules", "hermes tool_choice=f type-rules",
    ]  # fmt: skip
    assert len({a.name for a in arms}) == len(arms) == 8
    assert arm_of("hermes", {"max_tokens": 5}).name == "hermes"


def test_an_arm_has_a_level_of_every_factor() -> None:
    arm = arm_of("hermes", {"max_turns": 2})
    assert set(arm.levels) == set(FACTORS)
    assert arm.conversing
    assert not arm_of("hermes", {}).conversing


def test_a_protocol_named_twice_is_one() -> None:
    assert len(arms_of(["hermes", "hermes"], {})) == 1
    with pytest.raises(BadPlan, match="no protocols"):
        arms_of([], {})


@each_case
def test_a_name_that_nobody_would_heed_is_refused(
    name: str, own: list[str], says: str | None
) -> None:
    if says is None:
        check_names([name], own)
        return
    with pytest.raises(BadPlan, match="no factor and no sampling parameter") as caught:
        check_names([name], own)
    assert says in str(caught.value)
