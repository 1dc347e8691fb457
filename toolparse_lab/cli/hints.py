"""Errors are written for whoever calls from Python.

Here they name the flags of a shell instead.
"""

from __future__ import annotations

import re

from ..core.errors import ToolparseError
from ..core.values.printable import printable

# Names in the messages of `evals.cases` and `ingest`; a message that is changed there and not here
# only shows the argument of Python again.
_NAMED = r"columns=\{(['\"])(?P<old>.+?)\1: "
_PRICE = r"tp\.Model\(\.\.\., price=\(input, output\) per million tokens; \(0, 0\) = free\)"
_LONG_LIST = 64  # letters of the names that an error lists beside the one that is meant
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
        (r"columns= maps (.*): \{'(\w+)': '(\w+)'\}", r"--columns maps \1: --columns '\2=\3'"),
        (r"by columns=", "by --columns"),
        (r"by errors=\"skip\"", "by --skip-bad"),
        (_PRICE, "`price = [input, output]` per million tokens in [models.NAME], [0, 0] = free"),
        (
            r"pass tp\.Model\(name, api_key=…\)",
            "name its variable by `api_key_env` in [models.NAME]",
        ),
        (r"any key: api_key=\"none\"", "any key"),
        (r"tp\.Model\(name, api_base=…\)", "`api_base` of [models.NAME]"),
        (r"give Model\(price=\.\.\.\)", "give `price = [input, output]` in [models.NAME]"),
        (r"tp\.protocols\(\)", "`toolparse list protocols`"),
        (
            r"lab\.runs\(\), or open another store: tp\.Lab\(path\)",
            "`toolparse list`, or name another store: --store PATH",
        ),
        (r"lab\.runs\(\)", "`toolparse list`"),
        (r"(?m)^(  expected: .*\b0 or more), or None$", r"\1"),
        (r"by max_calls\b", "by --max-calls"),
        (r"lab\.check\(models, \['native'\]\)", "`toolparse check`"),
        (r"lab\.run\(plan, despite_check=True\)", "--despite-check"),
        (r"\bengine=(['\"])(\w+)\1", r"--engine \2"),
        (r"\bclient=(?!\w)", "--client"),
        (r"pass api_key=\.\.\., or stay on 127", "name its variable by --key-env, or stay on 127"),
        (r"\bmax_rows=(\d+)", r"--max-rows \1"),
        (
            r"toolparse_lab\.store\.recording\.import_recording adds it to a store",
            "`toolparse ingest FILE` adds it to a store",
        ),
    )
)


def shortened(error: ToolparseError) -> str:
    """Return an error's text; where a name is meant that is like the given one, it stands first
    and the long list of all names is cut.

    >>> names = ", ".join(f"name{i}" for i in range(100))
    >>> print(shortened(ToolparseError("no such name", got="nme1", expected=names,
    ...     hint="did you mean name1?")))
    no such name
      got: nme1
      what to do: did you mean name1?
      expected: name0, name1, name2, name3, name4, name5, name6, name7, name8, …
    """
    text = str(error)
    expected = str(error.expected or "")
    if len(expected) <= _LONG_LIST or not (error.hint or "").startswith("did you mean"):
        return text
    head = str(ToolparseError(error.message, got=error.got, hint=error.hint))
    few = expected[:_LONG_LIST].rpartition(", ")[0]
    return f"{head}\n  expected: {printable(few)}, …"


def as_flags(text: str) -> str:
    """Return an error's text with flags where it names arguments of Python.

    >>> as_flags('mend them, or leave them out by errors="skip"')
    'mend them, or leave them out by --skip-bad'
    """
    for pattern, flag in _FLAGS:
        text = pattern.sub(flag, text)
    return text
