"""Tables of cases beside their test modules: `test_x.jsonl` holds those of `test_x.py`, one JSON
object a line, so that anybody can run them.

`test` is the test that asks the row (without `test_`), `title` its name, `about` a remark for the
reader; the other members are the arguments of the test.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
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
    marked: Test = pytest.mark.parametrize(*_rows_of(test))(test)
    return marked


def every_case(test: Test) -> Test:
    """Ask one test for all of its rows; see `asked_of`."""
    return asked_of(*_rows_of(test))(test)


def _rows_of(test: Callable[..., object]) -> tuple[list[str], list[Any]]:
    name = test.__name__.removeprefix("test_")
    rows = [row for row in table(str(sys.modules[test.__module__].__file__)) if row["test"] == name]
    names = [key for key in rows[0] if key not in ("test", "title", "about")]
    return names, [pytest.param(*(row[k] for k in names), id=row.get("title")) for row in rows]


def asked_of(
    names: str | Sequence[str], cases: Iterable[Any], ids: Any = None
) -> Callable[[Test], Test]:
    """As `pytest.mark.parametrize`, in one test that asks all cases and names those that fail.

    For small questions in their hundreds, around which pytest would work longer than on them. They
    share the fixtures of the test. With --quick one is asked.
    """
    names = [names] if isinstance(names, str) else names
    params = [
        case if hasattr(case, "marks") else pytest.param(*(case if len(names) > 1 else (case,)))
        for case in cases
    ]
    if ids is not None:
        titles = [ids(*param.values) for param in params] if callable(ids) else ids
        params = [pytest.param(*p.values, id=str(t)) for p, t in zip(params, titles, strict=True)]

    def ask_all(test: Test) -> Test:
        @functools.wraps(test)
        def ask(**others: Any) -> None:
            for_each(params, lambda *case: test(**dict(zip(names, case, strict=True)), **others))

        parameters = inspect.signature(test).parameters
        kept = [parameter for name, parameter in parameters.items() if name not in names]
        vars(ask).pop("__wrapped__")  # where pytest would find the names of the cases
        vars(ask)["__signature__"] = inspect.Signature(kept)
        marked: Any = ask
        return marked  # type: ignore[no-any-return]

    return ask_all


def for_each(params: Sequence[Any], ask: Callable[..., object]) -> None:
    """Ask all cases, and raise what failed with their names."""
    failures: list[Exception] = []
    for param in params[: 1 if os.environ.get("TOOLPARSE_QUICK") else None]:
        try:
            ask(*param.values)
        except (Exception, pytest.fail.Exception) as failure:
            told = failure if isinstance(failure, Exception) else AssertionError(failure)
            case = param.id or ", ".join(f"{value!r:.60}" for value in param.values)
            told.add_note(f"Case: {case}")
            failures.append(told)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(params)} cases", failures[:20])
