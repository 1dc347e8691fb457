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

_WAYS = ("contains", "equals")
_SHAPE = 'a text, {"contains": text or texts} or {"equals": text}'


def check_answer(answer: Any) -> tuple[str, Any, str] | None:
    """Return the complaint about a wanted answer, as (message, got, expected).

    None without one.

    answer: the member of a case as it was read, of any form.

    >>> check_answer({"equals": "yes"}) is None, check_answer({"contains": []})[1]
    (True, [])
    """
    way, inner = _way_of(answer)
    if way is None:
        return "an answer is a text to be contained, or one of the ways to match it", answer, _SHAPE

    for part in _parts(way, inner):
        alternatives = part["$any"] if _is_any(part) else [part]
        if not _is_texts(alternatives):
            return f"{way} wants texts that are not empty", part, _SHAPE
    return None


def _parts(way: str, inner: Any) -> list[Any]:
    # Only `contains` has several texts, since one text cannot equal two.
    if way == "contains" and isinstance(inner, list) and inner:
        return inner
    return [inner]


def _is_any(part: Any) -> bool:
    return isinstance(part, Mapping) and set(part) == {"$any"}


def _is_texts(alternatives: Any) -> bool:
    if not isinstance(alternatives, list) or not alternatives:
        return False
    return all(isinstance(text, str) and text.strip() for text in alternatives)


def matches_answer(answer: Any, text: str) -> bool:
    """Return True if a text is the wanted one.

    answer: as `check_answer` allows it. Of several texts to be contained, all have to be there.
    text: the last text of a conversation.
    """
    way, inner = _way_of(answer)
    plain = _plain(text)
    # Unlike in `_parts` the answer was checked, so that a list can only be several texts.
    parts = inner if isinstance(inner, list) else [inner]
    return all(_matches_part(way, part, plain) for part in parts)


def _matches_part(way: str | None, part: Any, plain: str) -> bool:
    # plain: the text in the form of `_plain`.
    alternatives = part["$any"] if isinstance(part, Mapping) else [part]
    texts = [_plain(text) for text in alternatives]
    if way == "equals":
        return plain in texts
    return any(text in plain for text in texts)


def _way_of(answer: Any) -> tuple[str | None, Any]:
    if isinstance(answer, str):
        return "contains", answer
    if not isinstance(answer, Mapping) or len(answer) != 1:
        return None, None

    ((way, inner),) = answer.items()
    if way not in _WAYS:
        return None, None
    return way, inner


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split())
