"""The pytest plugin: the fixture `assert_parses`.

Nothing but pytest is loaded until a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest


@pytest.fixture
def assert_parses(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`toolparse_lab.integrations.testing.assert_parses`, coloured where pytest writes colours.

    request: pytest's own fixture, which knows the terminal that the report goes to.

    Its argument `color` is set. All others are those of the function.
    """
    from .assertions import assert_parses  # the engine: 0.1 s, in every run of pytest

    return partial(assert_parses, color=request.config.get_terminal_writer().hasmarkup)
