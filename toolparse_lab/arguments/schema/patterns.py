"""A schema's own regular expressions, run on a model's text with a limit on their time.

Patterns are written by people for their data, not against an adversary: `^(a|aa)+$` takes
exponential time on a text that a model may well write. Python's `re` cannot be stopped. The `regex`
package can.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

LIMIT = 0.2  # seconds for one search


class TooSlow(Exception):
    """A pattern took longer than `LIMIT` on a text."""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    # Late: few schemas have patterns, and the package is slow to load.
    import regex

    return regex.compile(pattern)


def matches(pattern: str, text: str) -> bool:
    """Tell if the pattern matches somewhere in the text."""
    # Raises TooSlow, and regex.error for a broken pattern.
    try:
        return _compiled(pattern).search(text, timeout=LIMIT) is not None
    except TimeoutError:
        raise TooSlow(f"the pattern {pattern[:60]!r} takes too long on this text") from None
