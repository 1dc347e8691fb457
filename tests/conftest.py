"""Shared by all tests."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: while Playwright is up, no other test of the process can start an event loop."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
