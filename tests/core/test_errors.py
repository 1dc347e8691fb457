"""What an error says of a value, whatever that value is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolparse_lab.core import errors
from toolparse_lab.core.errors import BadOptions, ToolparseError, near

PACKAGE = Path(errors.__file__).parent.parent


def deep_list() -> Any:
    value: Any = []
    for _ in range(5000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("got", "line"),
    [
        ("text", "got: text"),
        ({"a": 1}, "got: {'a': 1}"),
        ("x" * 1000, "got: " + "x" * 297 + "..."),
        (deep_list(), "got: list, too large to show"),
        (10**5000, "got: int, too large to show"),
    ],
    ids=["text", "mapping", "long", "deep", "huge"],
)
def test_a_value_is_shown_in_one_short_line(got: object, line: str) -> None:
    assert str(BadOptions("no case", got=got)).splitlines() == ["no case", f"  {line}"]


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    assert near("hermse", ["hermes", "gemma"]) == "did you mean hermes?"
    assert near("zzz", ["hermes"]) is None


def test_each_class_has_a_code_of_its_own() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type)]
    codes = [c.code for c in classes if issubclass(c, ToolparseError)]
    assert len(codes) > 20
    assert len(codes) == len(set(codes))
