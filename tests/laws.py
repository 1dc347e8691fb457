"""The laws, as the tests use them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import toolparse_lab as tp
from toolparse_lab.core.types import ParseResult
from toolparse_lab.entry.laws import LONG, check_partition, check_serial, run_chunks
from toolparse_lab.entry.laws import check_all as check_laws

__all__ = ["check_all", "check_partition", "check_serial", "run_chunks"]

EXHAUSTIVE = bool(os.environ.get("TOOLPARSE_EXHAUSTIVE"))
EXAMPLES = int(os.environ.get("TOOLPARSE_EXAMPLES", "30"))
"""Random texts for each law and protocol; `make nightly` asks for many more."""
Case = TypeVar("Case")
FEW = 4  # splits near delimiters, and as many anywhere, by default


def examples(by_day: int) -> int:
    """The number of random examples of a test; with --exhaustive ten times as many."""
    return 10 * by_day if EXHAUSTIVE else by_day


def part(cases: Sequence[Case], every: int, first: int = 0) -> Sequence[Case]:
    """Each n-th of some cases, counted from `first`; with --exhaustive all."""
    return cases if EXHAUSTIVE else cases[first % every :: every]


def in_pieces(
    raw: str, size: int, protocol: Any, tools: Any = None, options: Any = None, **more: Any
) -> ParseResult:
    """Return what a stream makes of a text in pieces of that size."""
    parser = tp.stream(protocol, tools, options, **more)
    for at in range(0, len(raw), size):
        parser.feed(raw[at : at + size])
    return parser.close()


def check_all(
    raw: str, protocol: Any, tools: Any = None, options: Any = None, *, every_split: bool = True
) -> ParseResult:
    """Check every law on one text; with --exhaustive on every split of it, else on some.

    No split is tried if `every_split` is False.
    """
    most = LONG if EXHAUSTIVE else FEW
    return check_laws(raw, protocol, tools, options, every_split=every_split, most=most)
