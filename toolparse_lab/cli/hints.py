"""Errors are written for whoever calls from Python; here they name the flags of a shell instead."""

from __future__ import annotations

import re

# Names in the messages of `evals.cases` and `ingest`; a message that is changed there and not here
# only shows the argument of Python again.
_NAMED = r"columns=\{(['\"])(?P<old>.+?)\1: "
_PRICE = r"tp\.Model\(\.\.\., price=\(input, output\) per million tokens; \(0, 0\) = free\)"
_FLAGS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), flag)
    # The longer pattern first: each is replaced in the text that the one before it left.
    for pattern, flag in (
        (
            _NAMED + r"(['\"])(?P<new>.+?)\3\}, or None",
            r"--columns '\g<old>=\g<new>', or '\g<old>='",
        ),
        (_NAMED + r"(['\"])(?P<new>.+?)\3\}", r"--columns '\g<old>=\g<new>'"),
        (_NAMED + r"None\}", r"--columns '\g<old>='"),
        (r"by columns=", "by --columns"),
        (r"by errors=\"skip\"", "by --skip-bad"),
        (_PRICE, "`price = [input, output]` per million tokens in [models.NAME], [0, 0] = free"),
        (r"by max_calls\b", "by --max-calls"),
        (r"lab\.check\(models, \['native'\]\)", "`toolparse check`"),
        (r"lab\.run\(plan, despite_check=True\)", "--despite-check"),
        (r"\bengine=(['\"])(\w+)\1", r"--engine \2"),
        (r"\bclient=(?!\w)", "--client"),
    )
)


def as_flags(text: str) -> str:
    """An error's text with flags where it names arguments of Python.

    >>> as_flags('mend them, or leave them out by errors="skip"')
    'mend them, or leave them out by --skip-bad'
    """
    for pattern, flag in _FLAGS:
        text = pattern.sub(flag, text)
    return text
