"""The words for numbers that every kind of report uses: shares, intervals, differences, money."""

from __future__ import annotations

from typing import Any

import pandas as pd


def percent(x: Any, digits: int = 0) -> str:
    """Return a share as a percentage, '–' where it is unknown.

    Nothing but a whole is shown as 100, and nothing but nothing as 0.

    >>> percent(0.5), percent(0.999), percent(0.001), percent(None)
    ('50 %', '99 %', '<1 %', '–')
    """
    if x is None or pd.isna(x):
        return "–"
    text = f"{100 * x:.{digits}f}"
    least = 10**-digits  # what the last digit counts
    if float(text) == 100 and x < 1:
        text = f"{100 - least:.{digits}f}"
    elif float(text) == 0 and x > 0:
        text = f"{least:.{digits}f}" if digits else "<1"
    return f"{text} %"


def span(low: Any, high: Any) -> str:
    """Return an interval of shares in percent, '' where it is unknown.

    >>> span(0.25, 0.5)
    '25–50'
    """
    if pd.isna(low):
        return ""
    return f"{100 * low:.0f}–{100 * high:.0f}"


def points(x: Any) -> str:
    """Return a difference of shares in points, with its sign. '–' where it is unknown.

    >>> points(0.25), points(-0.25), points(-0.001)
    ('+25', '−25', '0')
    """
    if pd.isna(x):
        return "–"
    text = f"{100 * x:+.0f}".replace("-", "−")
    # A difference that rounds to nothing has no sign.
    return text.replace("+0", "0").replace("−0", "0")


def money(x: Any) -> str:
    """US dollars with as many digits as the sum needs. '–' where it is unknown."""
    if pd.isna(x):
        return "–"
    if x == 0:
        return "0"
    if x < 0.01:
        return f"{x:.2g}"
    return f"{x:.4f}" if x < 1 else f"{x:,.2f}"
