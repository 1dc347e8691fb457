"""A number has one form, wherever it is shown."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

from toolparse_lab.core.values import wording as w

UNKNOWN = (None, float("nan"), pd.NA, pd.NaT)


@pytest.mark.parametrize(
    ("rate", "n", "text"),
    [
        (0.0, 9, "0 %"),
        (1.0, 9, "100 %"),
        (0.999, 9, "> 99 %"),
        (0.001, 9, "< 1 %"),
        (0.9996, 5_000, "> 99.9 %"),
        (0.0004, 5_000, "< 0.1 %"),
        (1.0, 5_000, "100.0 %"),
        (0.5, 999, "50 %"),
        (0.5, 1_000, "50.0 %"),
        *((unknown, 9, "–") for unknown in UNKNOWN),
    ],
)
def test_a_share_never_rounds_to_certainty(rate: Any, n: int, text: str) -> None:
    assert w.share(rate, n) == text


def test_halves_of_any_count_go_up() -> None:
    for n in range(2, 400):
        for k in range(1, n):
            exact = Fraction(100 * k, n)
            if 1 <= exact <= 99:
                up = int(exact + Fraction(1, 2))
                assert w.share(k / n, n) == f"{up} %"


def test_what_is_not_known_is_said_alike() -> None:
    for x in UNKNOWN:
        assert {w.share(x), w.points(x), w.p_value(x), w.seconds(x), w.money(x)} == {w.NOTHING}
        assert (w.span(x, 1), w.points_span(x, 1)) == ("", w.NOTHING)
    assert w.share(Decimal("0.5")) == "50 %"
