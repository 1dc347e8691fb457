"""How far two sequences begin, or end, alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def common_prefix(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return how many items two sequences of one type begin with alike.

    >>> common_prefix("abc", "abd")
    2
    """
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    return next(i for i in range(length) if a[i] != b[i])


def common_suffix(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return how many items two sequences of one type end with alike."""
    return common_prefix(a[::-1], b[::-1])
