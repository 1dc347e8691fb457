"""How the code reads, held to limits: complexity, columns, docstrings, imports in functions.

The figures come from benchmarks/style.py. What may be an exception stands in a table with its
reason; an exception that is no longer one fails, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import style

PACKAGE = style.ROOT.name
FILES = style.files_of(style.ROOT)
IDS = [path.relative_to(style.ROOT).as_posix() for path in FILES]
MOST_COMPLEX = 24
MOST_FIELDS = 15
# File and class with more fields -> why.
WIDE: dict[str, str] = {
    "runner/answer.py:Answer": "everything that comes in while one answer is received",
    "parser/capture/captured.py:Captured": "one field for each thing that some client says of an answer",
    "evals/scoring/trial.py:Trial": "a row of the trials frame with everything behind it",
    "runner/exchange/completion.py:Completion": "the record of an answer as it is stored",
    "formats/parameters/walk.py:Walk": "the state that the parts of one scanner share",
    "runner/pool.py:_Pool": "one call of run_requests and all that its workers share",
    "core/types/call.py:ToolCall": "a call with all that is known of it; a refused one has readings",
    "formats/rxml/element.py:Element": "an element of a tree that is walked without calls between parts",
}
MOST_INNER_IMPORTS = 60


def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def place(path: Path) -> str:
    return path.relative_to(style.ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_lines_are_short(path: Path) -> None:
    wide = [n for n, line in enumerate(lines_of(path), 1) if len(line) > style.WIDTH]
    assert not wide, f"lines over {style.WIDTH} columns"


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_docstrings_begin_with_a_verb_or_what_comes_back(path: Path) -> None:
    riddles = [
        f"{node.name}: {doc.splitlines()[0]}"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        and (doc := ast.get_docstring(node))
        and doc.split()[0] in style.RIDDLES
    ]
    assert not riddles


def test_no_function_does_too_much() -> None:
    functions = [f for path in FILES for f in style.functions_of(path, path.read_text("utf-8"))]
    over = {f"{place(f.file)}:{f.name}": f.complexity for f in functions
            if f.complexity > MOST_COMPLEX}  # fmt: skip
    assert not over


def is_keywords(node: ast.ClassDef) -> bool:
    """Whether a class is a TypedDict: it has the keyword `total`."""
    return any(keyword.arg == "total" for keyword in node.keywords)


def test_no_class_holds_too_much() -> None:
    classes = {
        f"{place(path)}:{node.name}": len(style.fields_of(node))
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        # A TypedDict holds no state: it is a list of keywords.
        if isinstance(node, ast.ClassDef) and not is_keywords(node)
    }
    over = {name: count for name, count in classes.items() if count > MOST_FIELDS}
    assert over.keys() == WIDE.keys(), over


def inner_imports() -> Iterator[tuple[Path, int]]:
    """(file, line) of every import of our own inside a function."""
    for path in FILES:
        tree = ast.parse(path.read_text("utf-8"))
        # A function in a function is walked twice; its import counts once.
        yield from sorted(
            {
                (path, node.lineno)
                for function in ast.walk(tree)
                if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
                for node in style.inner_imports(function, PACKAGE)
            }
        )


def test_imports_inside_functions_are_few_and_each_says_why() -> None:
    silent = []
    found = list(inner_imports())
    for path, line in found:
        lines = lines_of(path)
        before, own = lines[line - 2].strip(), lines[line - 1]
        same_reason = (path, line - 1) in found
        if "#" not in own and not before.startswith("#") and not same_reason:
            silent.append(f"{place(path)}:{line}")
    assert not silent, "say in a comment why this import waits"
    assert len(found) <= MOST_INNER_IMPORTS


def test_the_package_as_a_whole() -> None:
    row = style.measure(FILES, PACKAGE).row()
    assert row["complexity mean"] <= 4
    assert row["complexity per line"] <= 0.32
    assert row["docstrings What… %"] == 0
    assert row["over 100 columns %"] == 0


def test_the_root_holds_the_doors_only() -> None:
    assert len([path for path in FILES if path.parent == style.ROOT]) <= 9  # with __init__.py
