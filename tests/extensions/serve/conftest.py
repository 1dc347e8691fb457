"""The provider behind the gateway."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mock_openai import MockOpenAI


@pytest.fixture(scope="module")
def mock() -> Iterator[MockOpenAI]:
    with MockOpenAI(chunk_size=6) as server:
        yield server
