"""Shared by all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# litellm asks the network for prices when it is imported, and waits where there is none.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

# On a machine with other work, one example may take a second for no fault of its own. The same
# commit asks the same examples each time; `make nightly` asks for others, and for many more.
settings.register_profile("toolparse", deadline=None, derandomize=True)
settings.register_profile("nightly", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "toolparse"))

APART = ("slow", "browser", "local_model")
"""Markers of tests that `--quick` leaves out."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="one case of each test, and none that is marked slow, browser or local_model",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what `--quick` asks for, and put browser tests last.

    While Playwright is up, no other test of the process can start an event loop.
    """
    if config.getoption("quick"):
        chosen = _one_of_each(items)
        left_out = [item for item in items if item not in chosen]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in chosen]
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


def _one_of_each(items: list[pytest.Item]) -> set[pytest.Item]:
    """The first case of each test function; the next one where the first is left out."""
    first: dict[str, pytest.Item] = {}
    for item in items:
        if not any(item.get_closest_marker(name) for name in APART):
            first.setdefault(item.nodeid.partition("[")[0], item)
    return set(first.values())
