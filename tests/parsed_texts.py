"""The texts that a run parses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolparse_lab.experiments import trial_reader


def with_each_text(monkeypatch: pytest.MonkeyPatch, do: Callable[[str], object]) -> None:
    """Do something with each text before it is parsed."""
    reader_of = trial_reader.answer_reader  # type: ignore[attr-defined]  # as it is imported there

    def answer_reader(*arguments: Any) -> Any:
        read = reader_of(*arguments)

        def noted(raw: str, *others: Any) -> Any:
            do(raw)
            return read(raw, *others)

        return noted

    monkeypatch.setattr(trial_reader, "answer_reader", answer_reader)
