"""The wanted text at the end of a conversation: `{"contains": …}`, `{"equals": …}`, or a text that is to be contained.

What is wanted is a text, a list of texts that must all be there (`contains` only), or ``{"$any": […]}`` of texts.
Texts are compared without regard to case, and to how they are spaced.

>>> matches_answer({"contains": ["18", {"$any": ["rain", "drizzle"]}]}, "It is 18 °C\\nwith Drizzle.")
True
>>> matches_answer({"equals": "yes"}, " Yes "), matches_answer({"equals": "yes"}, "Yes, it is.")
(True, False)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

_WAYS = ("contains", "equals")
_SHAPE = 'a text, {"contains": text or texts} or {"equals": text}'


def check_answer(wanted: Any) -> tuple[str, Any, str] | None:
    """What is wrong with a wanted answer, as (message, got, expected); None where nothing is."""
    way, inner = _way_of(wanted)
    if way is None:
        return "an answer is a text to be contained, or one of the ways to match it", wanted, _SHAPE
    for one in inner if way == "contains" and isinstance(inner, list) and inner else [inner]:
        texts = one["$any"] if isinstance(one, Mapping) and set(one) == {"$any"} else [one]
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) and t.strip() for t in texts):
            return f"{way} wants texts that are not empty", one, _SHAPE
    return None


def matches_answer(wanted: Any, text: str) -> bool:
    """Whether a text is the wanted one."""
    way, inner = _way_of(wanted)
    said = _plain(text)
    for one in inner if isinstance(inner, list) else [inner]:
        texts = [_plain(t) for t in (one["$any"] if isinstance(one, Mapping) else [one])]
        if not (said in texts if way == "equals" else any(t in said for t in texts)):
            return False
    return True


def _way_of(wanted: Any) -> tuple[str | None, Any]:
    if isinstance(wanted, str):
        return "contains", wanted
    if isinstance(wanted, Mapping) and len(wanted) == 1:
        ((way, inner),) = wanted.items()
        if way in _WAYS:
            return way, inner
    return None, None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
