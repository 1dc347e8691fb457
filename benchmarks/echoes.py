"""Echoes refused and genuine calls kept, in every format, with the request and without.

Run with `python benchmarks/echoes.py`. 20 calls quoted in ten ways make 200 echoes a format. In
the column `echoed` somebody else's text holds the call quoted in a way, and the answer is the call
itself and the call quoted; in `seen` nothing is known of the request, and the answer quotes the
call in one of the ways that can be seen. Both count the calls that could be executed, of which
there should be none. `kept` counts the genuine calls that stay: with arguments that the request
says in prose, and behind prose.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import toolparse_lab as tp
from tests.quotations import CALLS, SEEN, TOOLS, WAYS, asked, formats, written


def main() -> None:
    """Print the table."""
    heads = ("format", "echoes", "executed", "seen", "executed", "genuine", "kept")
    print("| " + " | ".join(heads) + " |\n|---" + "|--:" * (len(heads) - 1) + "|")
    totals = [0] * (len(heads) - 1)
    for name, protocol in formats():
        row = _row(name, protocol)
        totals = [a + b for a, b in zip(totals, row, strict=True)]
        print(f"| {name} | " + " | ".join(map(str, row)) + " |")
    print("| all | " + " | ".join(map(str, totals)) + " |")


def _row(name: str, protocol: Any) -> list[int]:
    """(echoes, executed, seen, executed, genuine, kept) of one format."""
    echoes = executed = seen = executed_unseen = genuine = kept = 0
    for tool, arguments in CALLS:
        call = written(protocol, tool, arguments)
        if call is None:
            continue
        for way, quote in WAYS.items():
            request = asked(quote(call))
            echoes += 1
            executed += any(_executable(text, name, request) for text in (call, quote(call)))
            if way in SEEN:
                seen += 1
                executed_unseen += _executable(quote(call), name, None) > 0
        prose = asked(f"Please {tool}: {', '.join(arguments.strip('{}').split(','))}", "user")
        for text in (call, f"I do it now.\n\n{call}"):
            if text != call and _executable(text, name, None) == 0:
                continue  # the format takes no words before a call
            genuine += 1
            kept += _executable(text, name, prose) == 1
    return [echoes, executed, seen, executed_unseen, genuine, kept]


def _executable(text: str, protocol: str, request: Any) -> int:
    """The number of calls of an answer that could be executed."""
    return sum(c.valid for c in tp.parse(text, protocol, TOOLS, request=request).calls)


if __name__ == "__main__":
    main()
