"""Every limit in scanners and engine: a text around it reads alike in one piece and in many."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.entry.laws import run_chunks

TOOLS = [tool_named(name, text="string", rows="object") for name in ("note", "get tide", "x" * 250)]


def around(limits: list[int]) -> Iterator[int]:
    """The lengths at and beside each limit, and twice as long."""
    seen: set[int] = set()
    for limit in limits:
        for n in (*range(limit - 3, limit + 4), 2 * limit):
            if n > 0 and n not in seen:
                seen.add(n)
                yield n


def pieces(raw: str) -> Iterator[list[str]]:
    """Some ways to cut a text: everywhere, in sevens, and in two."""
    if len(raw) < 3000:
        yield list(raw)
    for size in (7, 64, 511):
        yield [raw[i : i + size] for i in range(0, len(raw), size)]
    for part in (3, 2):
        yield [raw[: len(raw) // part], raw[len(raw) // part :]]
    for behind in (1, 2, 12):
        yield [raw[:-behind], raw[-behind:]]
    places = [i + 1 for i, char in enumerate(raw) if char in "<>\"'="]
    yield from ([raw[:at], raw[at:]] for at in places[:24] + places[-8:])


@each_case
@pytest.mark.exhaustive(10)
def test_a_text_around_a_limit_reads_alike_however_it_is_cut(
    protocol: str, limits: list[int], text: list[str | list[str]]
) -> None:
    """A piece of the text in a list of its own stands there as often as a limit has characters."""
    for n in around(limits):
        raw = "".join(part if isinstance(part, str) else part[0] * n for part in text)
        whole = run_chunks([raw], protocol, TOOLS, None)
        for chunks in pieces(raw):
            assert run_chunks(chunks, protocol, TOOLS, None) == whole, (n, [len(c) for c in chunks])
