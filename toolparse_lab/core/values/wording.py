"""The one form of a share, a range, a difference, a p, a duration and an amount of money: on pages,
in notebooks, in a terminal and in files.

A number that is worded twice is rounded twice: 33 of 40 was 82 % in one view and 83 % in another.
So halves go up, here alone, and a share has one decimal from 1,000 on, where it means something.
"""

from __future__ import annotations

import math
from typing import Any

NOTHING = "–"
"""The words for a number that is not known."""
_DECIMALS_FROM = 1_000  # so many counted make a tenth of a percent worth telling


def known(x: Any) -> float | None:
    """Return a number as a float, and None for one that is missing in any way."""
    try:
        number = float(x)
    except (TypeError, ValueError):  # None, and the missing values of pandas
        return None
    return None if math.isnan(number) else number


def _rounded(x: float, decimals: int) -> float:
    # Halves away from zero. Nine digits first: 0.285 * 100 is a little less than 28.5.
    scale = 10**decimals
    return math.copysign(math.floor(round(abs(x) * scale, 9) + 0.5) / scale, x)


def _decimals(n: Any) -> int:
    return int((known(n) or 0) >= _DECIMALS_FROM)


def share(x: Any, n: Any = 0) -> str:
    """Return a share of n as a percentage.

    Nothing but a whole is 100 %, and nothing but nothing is 0 %.

    >>> share(33 / 40, 40), share(0.9, 2_500), share(0.999), share(0.001), share(None)
    ('83 %', '90.0 %', '> 99 %', '< 1 %', '–')
    """
    text = _percent(x, n)
    return text if text == NOTHING else f"{text} %"


def _percent(x: Any, n: Any) -> str:
    number = known(x)
    if number is None:
        return NOTHING
    decimals = _decimals(n)
    step = 10.0**-decimals
    shown = _rounded(100 * number, decimals)
    if shown >= 100 > 100 * number:
        return f"> {100 - step:.{decimals}f}"
    if not shown and number > 0:
        return f"< {step:.{decimals}f}"
    return f"{shown:.{decimals}f}"


def part_of(count: int, whole: int) -> str:
    """Return a count with its whole and its share.

    >>> part_of(61, 2_500)
    '61 of 2,500 (2.4 %)'
    """
    told = f"{count:,} of {whole:,}"
    return f"{told} ({share(count / whole, whole)})" if whole else told


def span(low: Any, high: Any, n: Any = 0) -> str:
    """Return a range of shares of n, '' where it is not known.

    >>> span(0.25, 0.5), span(0.888, 0.911, 2_500)
    ('25–50 %', '88.8–91.1 %')
    """
    if known(low) is None or known(high) is None:
        return ""
    # The ends are bounds: "< 1" would say the wrong thing of one.
    decimals = _decimals(n)
    ends = (f"{_rounded(100 * float(end), decimals):.{decimals}f}" for end in (low, high))
    return f"{'–'.join(ends)} %"


def points(x: Any, n: Any = 0, *, signed: bool = True) -> str:
    """Return a difference of two shares of n in points.

    >>> points(0.25), points(-0.048, 2_500), points(-0.001), points(-0.048, signed=False)
    ('+25', '−4.8', '0', '5')
    """
    number = known(x)
    if number is None:
        return NOTHING
    decimals = _decimals(n)
    shown = _rounded(100 * number, decimals)
    if not shown:  # what rounds to nothing has no sign
        return "0"
    sign = ("−" if shown < 0 else "+") if signed else ""
    return f"{sign}{abs(shown):.{decimals}f}"


def plain_points(x: float) -> str:
    """Return a margin, or another amount of points, as short as it can be said.

    >>> plain_points(0.05), plain_points(0.0752)
    ('5', '7.52')
    """
    return f"{100 * x:.3g}"


def points_span(low: Any, high: Any, n: Any = 0) -> str:
    """Return the interval of a difference in points, '–' where it is not known.

    >>> points_span(-0.066, 0.03, 2_500)
    '−6.6 to +3.0'
    """
    if known(low) is None or known(high) is None:
        return NOTHING
    return f"{points(low, n)} to {points(high, n)}"


def p_value(p: Any) -> str:
    """Return a p.

    >>> p_value(0.04), p_value(0.00001), p_value(1)
    ('0.040', '< 0.001', '1.000')
    """
    number = known(p)
    if number is None:
        return NOTHING
    return "< 0.001" if number < 0.001 else f"{_rounded(number, 3):.3f}"


def p_words(p: Any) -> str:
    """Return a p with its name.

    >>> p_words(0.04), p_words(0)
    ('p = 0.040', 'p < 0.001')
    """
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def level_words(level: float) -> str:
    """Return the level of an interval.

    >>> level_words(0.95), level_words(0.9986)
    ('95 %', '99.9 %')
    """
    return f"{round(100 * level, 1):g} %"


def seconds(x: Any) -> str:
    """Return a duration.

    >>> seconds(0.704), seconds(12.34), seconds(754)
    ('0.70 s', '12.3 s', '754 s')
    """
    number = known(x)
    if number is None:
        return NOTHING
    decimals = 2 if number < 10 else 1 if number < 100 else 0
    return f"{_rounded(number, decimals):,.{decimals}f} s"


def money(x: Any) -> str:
    """Return US dollars, with as many digits as a small sum needs.

    >>> money(0.00042), money(0.0312), money(1234.5), money(0), money(None)
    ('$0.00042', '$0.0312', '$1,234.50', '$0', '–')
    """
    number = known(x)
    if number is None:
        return NOTHING
    if not number:
        return "$0"
    if number < 0.01:
        return f"${float(f'{number:.2g}'):.10f}".rstrip("0")
    return f"${number:.4f}" if number < 1 else f"${number:,.2f}"
