"""Delimiters of a format in text that another wrote: neutralised for the prompt, and back.

A user's text, or a document's, may hold the format's own delimiters, and a model that reads them
takes them for calls. The neutral form is the one that results have (see `results`): the first
character of a delimiter becomes its JSON escape, so that a model still reads the meaning.
"""

# How it works
# ------------
# `<tool_call>` becomes `\u003ctool_call>`. So that the way back is exact, backslashes right before
# a delimiter, or before what looks like a neutral one, are doubled: 2n + 1 of them before the code
# of an escape stand for n and the character, 2n for n and the code as it was.
#
# Cost: one regular expression over the text.

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .base import Protocol, Tools
from .results import write_escape

_LETTER = re.compile(r"[^\W\d_]")


def delimiters_of(protocol: Protocol, tools: Tools) -> tuple[str, ...]:
    """Return the delimiters of a format that a text can be rid of: those with a letter in them.

    What consists of brackets, quotes or backticks alone is in any text, and opens no call by
    itself.
    """
    envelope = protocol.envelope
    literals = (literal.strip() for literal in (*envelope.heads(tools), *envelope.closers))
    return tuple(dict.fromkeys(literal for literal in literals if _LETTER.search(literal)))


def neutral(text: str, delimiters: Iterable[str]) -> str:
    """Return the text with none of the delimiters in it.

    `with_delimiters` gives it back.

    >>> neutral("a <tool_call> b", ["<tool_call>"])
    'a \\\\u003ctool_call> b'
    """
    pattern = _pattern(tuple(delimiters))
    return text if pattern is None else pattern.sub(_neutralised, text)


def with_delimiters(text: str, delimiters: Iterable[str]) -> str:
    """Return the text that `neutral` was given, under the same delimiters.

    >>> with_delimiters("a \\\\u003ctool_call> b", ["<tool_call>"])
    'a <tool_call> b'
    """
    pattern = _pattern(tuple(delimiters))
    return text if pattern is None else pattern.sub(_restored, text)


@lru_cache(maxsize=256)
def _pattern(delimiters: tuple[str, ...]) -> re.Pattern[str] | None:
    # a delimiter or its neutral form, with the backslashes before it
    if not delimiters:
        return None
    bare = "|".join(rf"{re.escape(d[0])}(?={re.escape(d[1:])})" for d in delimiters)
    coded = "|".join(
        rf"{re.escape(write_escape(d[0])[1:])}(?={re.escape(d[1:])})" for d in delimiters
    )
    # Possessive, and never begun inside a run, so that a long run is looked at once.
    return re.compile(rf"(?<!\\)(?P<slashes>\\*+)(?:(?P<bare>{bare})|(?P<coded>{coded}))")


def _neutralised(match: re.Match[str]) -> str:
    # An escape that was there already is kept apart by doubled backslashes.
    slashes, bare = match["slashes"], match["bare"]
    if bare is not None:
        return slashes * 2 + write_escape(bare)
    return slashes * 2 + str(match["coded"])


def _restored(match: re.Match[str]) -> str:
    slashes, coded = match["slashes"], match["coded"]
    if coded is None:
        return match[0]
    half = slashes[: len(slashes) // 2]
    if len(slashes) % 2 == 0:
        return half + str(coded)
    return half + chr(int(coded[1:5], 16))
