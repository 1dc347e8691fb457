"""What the code weighs, as far as a test can hold it: waiting imports, files in the root.

The other figures are printed by `python benchmarks/house.py` and judged by a person.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from benchmarks import house

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
