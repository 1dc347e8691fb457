"""The common part of two texts at their beginnings and ends."""

from __future__ import annotations


def common_prefix(a: str, b: str) -> int:
    """Return how many characters two texts begin with alike.

    >>> common_prefix("abc", "abd")
    2
    """
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    return next(i for i in range(length) if a[i] != b[i])


def common_suffix(a: str, b: str) -> int:
    """Return how many characters two texts end with alike.

    >>> common_suffix("xbc", "abc")
    2
    """
    return common_prefix(a[::-1], b[::-1])
