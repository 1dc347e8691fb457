"""`toolparse setup-local`."""

from __future__ import annotations

import argparse
from typing import Any

from ...runner.local.setup import setup_local
from ..output import say

EXAMPLES = ("toolparse setup-local",)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare nothing: the packages are always the same."""


def run(options: Any) -> int:
    """Install the packages of the embedded model."""
    setup_local(say)
    return 0
