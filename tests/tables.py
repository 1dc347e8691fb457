"""Tables of cases beside their test modules: `test_x.jsonl` holds those of `test_x.py`, one JSON
object a line, so that anybody can run them.

`test` is the test that asks the row (without `test_`), `title` its name, `about` a remark for the
reader; the other members are the arguments of the test.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., object])


@cache
def table(module: str) -> list[dict[str, Any]]:
    """The rows of a test module, by its file."""
    lines = Path(module).with_suffix(".jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def each_case(test: Test) -> Test:
    """Ask a test once for each of its rows."""
    name = test.__name__.removeprefix("test_")
    rows = [row for row in table(str(sys.modules[test.__module__].__file__)) if row["test"] == name]
    names = [key for key in rows[0] if key not in ("test", "title", "about")]
    cases = [pytest.param(*(row[key] for key in names), id=row.get("title")) for row in rows]
    marked: Test = pytest.mark.parametrize(names, cases)(test)
    return marked
