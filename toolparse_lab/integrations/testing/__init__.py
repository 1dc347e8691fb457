"""Tests of how text is read: `assert_parses`, and the pytest plugin that offers it as a fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .assertions import assert_parses

__all__ = ["assert_parses"]


def __getattr__(name: str) -> Any:
    if name == "assert_parses":
        # pytest imports this package for its plugin in every run of somebody else's tests.
        from .assertions import assert_parses  # the engine: 0.1 s

        return assert_parses

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
