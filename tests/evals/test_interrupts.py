"""Ctrl-C while processes of a pool start, work and end: all of them end."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.interrupts import interrupted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes from /proc"),
]


@pytest.mark.parametrize("after", [0.02, 0.15, 0.4, 1.2])
@pytest.mark.exhaustive(2, 1)
def test_an_interrupt_ends_all_processes(after: float) -> None:
    assert interrupted(after) == ""


def test_processes_end_with_a_parent_that_was_killed() -> None:
    assert interrupted(0.6, signal.SIGKILL, everyone=False) == ""
