"""What an error says of a value, whatever that value is."""

from __future__ import annotations

import re
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


def test_a_class_of_an_earlier_version_is_the_one_that_took_it_in() -> None:
    for name, merged in errors._MERGED.items():
        with pytest.warns(DeprecationWarning, match=name):
            assert getattr(errors, name) is merged


def test_the_package_itself_uses_no_class_of_an_earlier_version() -> None:
    old = re.compile(rf"\b(?:{'|'.join(errors._MERGED)})\b")
    allowed = {"core/errors.py", "formats/rxml/__init__.py"}
    paths = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
    assert not [name for name in paths.keys() - allowed if old.search(paths[name].read_text())]


def test_each_class_has_a_code_of_its_own() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type)]
    codes = [c.code for c in classes if issubclass(c, ToolparseError)]
    assert len(codes) > 20
    assert len(codes) == len(set(codes))
