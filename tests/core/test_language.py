"""The language of README and pages stays plain; `scripts/language.py` measures it."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator

import pytest

from scripts import language, site


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, float]]:
    return dict(language.rows(()))


@pytest.mark.parametrize("name", ["README.md", "all pages", "notebooks"])
def test_pages_are_plain(rows: dict[str, dict[str, float]], name: str) -> None:
    row = rows[name]
    outside = language.outside(row)
    assert not outside, {figure: (row[figure], language.RANGES[figure]) for figure in outside}


def summaries() -> Iterator[tuple[str, list[str]]]:
    """(name, lines of the docstring) of each name that the reference documents."""
    for room in site.API:
        module = importlib.import_module(room)
        for name in site.exported(room):
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            yield f"{room}.{name}", (inspect.getdoc(value) or "").split("\n")
            for own, member in vars(value).items():
                doc = inspect.getdoc(member) if inspect.isclass(value) else None
                # A constant of a class has the docstring of its type.
                if doc and not own.startswith("_") and callable(member):
                    yield f"{room}.{name}.{own}", doc.split("\n")


def test_exported_names_have_a_short_first_line() -> None:
    long = [
        (name, lines[0]) for name, lines in summaries() if len(lines[0]) > 80 or any(lines[1:2])
    ]
    assert long == []


def test_the_measure_itself() -> None:
    assert doctest.testmod(language).failed == 0
    text = language.prose_of("What is it? Run it; calls are parsed.\n\n| what |\n")
    figures = language.figures(text)
    assert (figures["n"], figures["begins"], figures["semicolons"]) == (8, 125, 125)
    assert figures["passive"] == 125
