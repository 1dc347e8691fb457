"""Shared by all tests."""

from __future__ import annotations

import atexit
import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from toolparse_lab.arguments.schema.validate import load_jsonschema

if TYPE_CHECKING:
    from tests.mock_openai import MockOpenAI
    from toolparse_lab import Lab

# Before the test of notebooks does, whose import of it builds grammars for a second.
load_jsonschema()
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
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="every case of the tests marked exhaustive, of which else a part is asked",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("exhaustive"):
        os.environ["TOOLPARSE_EXHAUSTIVE"] = "1"  # read where the laws are imported
    if config.getoption("quick"):
        os.environ["TOOLPARSE_QUICK"] = "1"  # read by tests that ask many cases


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab with a store of its own: runs.db in the test's folder."""
    from toolparse_lab import Lab

    with Lab(tmp_path / "runs.db") as made:
        yield made


@pytest.fixture(scope="module")
def mock() -> Iterator[MockOpenAI]:
    """An endpoint that says what it is asked to say."""
    from tests.mock_openai import MockOpenAI

    with MockOpenAI() as running:
        yield running


def pytest_collection_finish() -> None:
    """Collect rarely: most objects are packages and tests, which stay. It took a fifth of the time."""
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what the options ask for, and put browser tests last.

    While Playwright is up, no other test of the process can start an event loop.
    """
    chosen = set(items)
    if config.getoption("quick"):
        chosen = _one_of_each(items)
    elif not config.getoption("exhaustive"):
        chosen -= _for_the_night(items)
    # A test or case that was asked for by its name is run.
    if len(chosen) < len(items) and not any("::" in argument for argument in config.args):
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


def _for_the_night(items: list[pytest.Item]) -> set[pytest.Item]:
    """The cases of tests marked `exhaustive(n, first)` that are not each n-th, counted in each test.

    first: the one to begin with, so that tests over the same formats ask of different ones.
    """
    left_out: set[pytest.Item] = set()
    seen: Counter[str] = Counter()
    for item in items:
        if (mark := item.get_closest_marker("exhaustive")) is not None:
            test = item.nodeid.partition("[")[0]
            every, first = (*mark.args, 0, 0)[:2]
            if not every or seen[test] % every != first:
                left_out.add(item)
            seen[test] += 1
    return left_out


def _one_of_each(items: list[pytest.Item]) -> set[pytest.Item]:
    """The first case of each test function; the next one where the first is left out."""
    first: dict[str, pytest.Item] = {}
    for item in items:
        if not any(item.get_closest_marker(name) for name in APART):
            first.setdefault(item.nodeid.partition("[")[0], item)
    return set(first.values())
