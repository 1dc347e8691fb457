"""The provider behind the bridge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bridge import litellm
from tests.mock_openai import MockOpenAI


@pytest.fixture(scope="module")
def mock() -> Iterator[MockOpenAI]:
    litellm()
    with MockOpenAI() as running:
        yield running
