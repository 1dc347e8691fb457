"""The map of the code is true: every layer, file and name that docs/architecture.md speaks of."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from benchmarks import house
from scripts import language, site
from tests.core.test_layers import ROOMS, ROOT
from tests.tables import asked_of

PAGE = (ROOT.parent / "docs" / "architecture.md").read_text("utf-8")
JOURNEYS = PAGE[PAGE.index("## Three journeys") :]
PLACES = sorted(set(re.findall(r"`([a-z_/]+\.py)(?::([\w.]+))?`", PAGE)))


def defined(path: Path, name: str) -> bool:
    """Return whether a file defines a class or function of that name, or a method of a class."""
    scope: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for part in name.split("."):
        found = next((n for n in scope if getattr(n, "name", None) == part), None)
        if found is None:
            return False
        scope = getattr(found, "body", [])
    return True


@asked_of(("file", "name"), PLACES, ids=[":".join(p) for p in PLACES])
def test_a_place_on_the_way_is_there(file: str, name: str) -> None:
    path = ROOT / file
    if not path.exists():
        path = ROOT.parent / file
    assert path.is_file()
    assert not name or defined(path, name)


def test_each_journey_is_a_walk_of_several_rooms() -> None:
    for journey in JOURNEYS.split("### ")[1:]:
        rooms = {Path(file).parent for file in re.findall(r"`([a-z_/]+\.py)", journey)}
        assert len(rooms) >= 3, journey.splitlines()[0]


def test_the_table_of_rooms_is_that_of_the_test() -> None:
    table = PAGE[PAGE.index("| room |") : PAGE.index("One module reaches upward")]
    rows = re.findall(r"^\| `(\S+)` \| .+? \| (.+?) \|$", table, re.MULTILINE)
    on_page = {room: set(re.findall(r"`([\w./]+)`", allowed)) for room, allowed in rows}
    assert on_page == {room: set(allowed) for room, allowed in ROOMS.items()}


# What the code weighs, as far as a test can hold it: waiting imports, files in the root. The
# other figures are printed by `python benchmarks/house.py` and judged by a person.


FILES = house.files_of(house.ROOT)


@lru_cache
def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def place(path: Path) -> str:
    return path.relative_to(house.ROOT).as_posix()


def inner_imports() -> Iterator[tuple[Path, int]]:
    """(file, line) of every import of our own inside a function."""
    for path in FILES:
        waiting: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text("utf-8")), False)]
        while waiting:
            node, inside = waiting.pop()
            inside |= isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
            if inside and isinstance(node, ast.ImportFrom) and is_own(node):
                yield path, node.lineno


def is_own(node: ast.ImportFrom) -> bool:
    return bool(node.level) or (node.module or "").partition(".")[0] == house.ROOT.name


def test_imports_inside_functions_say_why_they_wait() -> None:
    silent = []
    found = sorted(inner_imports())
    for path, line in found:
        lines = lines_of(path)
        before, own = lines[line - 2].strip(), lines[line - 1]
        same_reason = (path, line - 1) in found
        if "#" not in own and not before.startswith("#") and not same_reason:
            silent.append(f"{place(path)}:{line}")
    assert not silent, "say in a comment why this import waits"


def test_the_root_holds_the_doors_only() -> None:
    assert len([path for path in FILES if path.parent == house.ROOT]) == 2  # __init__.py and lab.py


# The language of README and pages stays plain; `scripts/language.py` measures it.


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
