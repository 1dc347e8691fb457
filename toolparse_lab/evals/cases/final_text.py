"""The wanted text at the end of a conversation: `{"contains": …}`, `{"equals": …}`, or a text that
is to be contained.

The target is a text, a list of texts that must all be there (`contains` only), or ``{"$any": […]}``
of texts. Texts are compared without regard to case, and to how they are spaced.

>>> matches_answer({"contains": ["18", {"$any": ["rain", "drizzle"]}]}, "18 °C,\\nwith Drizzle.")
True
>>> matches_answer({"equals": "yes"}, " Yes "), matches_answer({"equals": "yes"}, "Yes, it is.")
(True, False)
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

_SHAPE = 'a text, {"contains": text or texts} or {"equals": text}'


def check_answer(answer: Any) -> tuple[str, Any, str] | None:
    """Return the complaint about a wanted answer of any form: (message, got, expected), or None.

    >>> check_answer({"equals": "yes"}) is None, check_answer({"contains": []})[1]
    (True, [])
    """
    way, parts = _parts_of(answer)
    if not way:
        return "an answer is a text to be contained, or one of the ways to match it", answer, _SHAPE
    for part in parts:
        is_any = isinstance(part, Mapping) and set(part) == {"$any"}
        texts = part["$any"] if is_any else [part]
        is_texts = isinstance(texts, list) and all(isinstance(t, str) and t.strip() for t in texts)
        if not texts or not is_texts:
            return f"{way} wants texts that are not empty", part, _SHAPE
    return None


def matches_answer(answer: Any, text: str) -> bool:
    """Return True if the last text of a conversation is the wanted one. answer: as `check_answer`
    allows it.
    """
    way, parts = _parts_of(answer)
    plain = _plain(text)
    for part in parts:
        wanted = map(_plain, part["$any"] if isinstance(part, Mapping) else [part])
        if not (plain in wanted if way == "equals" else any(one in plain for one in wanted)):
            return False
    return True


def _parts_of(answer: Any) -> tuple[str, list[Any]]:
    # The way, '' for none there is, and the texts or alternatives that have to match.
    if isinstance(answer, str):
        return "contains", [answer]
    if not isinstance(answer, Mapping) or len(answer) != 1:
        return "", []
    ((way, inner),) = answer.items()
    if way not in ("contains", "equals"):
        return "", []
    # Only `contains` has several texts, since one text cannot equal two.
    return way, inner if way == "contains" and isinstance(inner, list) and inner else [inner]


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
