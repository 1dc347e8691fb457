"""Figures of how the code reads: python benchmarks/style.py [NAME=FOLDER ...] [--rooms]

One row a package (this one by default, others to compare with): functions, complexity as radon
counts it, comments, columns, names, docstrings, fields, imports inside functions. `--rooms` adds
a row for each folder. tests/test_style.py holds this package to limits on the same figures.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from radon.complexity import cc_visit

ROOT = Path(__file__).parent.parent / "toolparse_lab"
WIDTH = 100
PARTICIPLES = frozenset(
    (
        "said", "told", "found", "given", "made", "known", "how", "asked", "held", "shown", "kept",
        "seen", "left", "begun", "meant", "wanted", "taken", "sent", "put", "heard", "filled",
        "drawn", "listed", "written", "read",
    )
)  # fmt: skip
"""Words that say what was done to a value and not what it is."""
RIDDLES = ("What", "Whether", "Where", "How", "Those", "As", "Which", "Nothing", "Says")
"""Words with which a docstring asks a question instead of naming what comes back."""


@dataclass(frozen=True)
class Function:
    """A function and its complexity; `name` holds its class."""

    file: Path
    name: str
    complexity: int


@dataclass
class Figures:
    """What was counted in some files."""

    sizes: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    fields: list[int] = field(default_factory=list)
    comments: int = 0
    documented: int = 0
    riddles: int = 0
    variables: int = 0
    participles: int = 0
    inner_imports: int = 0

    def row(self) -> dict[str, float]:
        """The figures by the names of the table's columns."""
        complexity = [f.complexity for f in self.functions] or [0]
        lengths = self.lengths or [0]
        lines = sum(self.sizes)
        return {
            "files": len(self.sizes),
            "lines": lines,
            "file max": max(self.sizes, default=0),
            "function median": median(lengths),
            "over 40 lines %": percent(sum(n > 40 for n in lengths), len(lengths)),
            "complexity mean": mean(complexity),
            "complexity max": max(complexity),
            "over 15": sum(n > 15 for n in complexity),
            "complexity per line": mean(complexity) / max(mean(lengths), 1),
            "comments per 1000": 1000 * self.comments / max(lines, 1),
            "over 100 columns %": percent(sum(n > WIDTH for n in self.widths), len(self.widths)),
            "participle names %": percent(self.participles, self.variables),
            "docstrings What… %": percent(self.riddles, self.documented),
            "fields max": max(self.fields, default=0),
            "imports inside functions": self.inner_imports,
        }


def percent(part: int, whole: int) -> float:
    return 100 * part / max(whole, 1)


def files_of(root: Path) -> list[Path]:
    """The Python files of a package, tests left out."""
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if not {"test", "tests"} & set(path.relative_to(root).parts)
    ]


def measure(files: Iterable[Path], package: str) -> Figures:
    """Counts the files; `package` is the name by which they import one another."""
    figures = Figures()
    for path in files:
        source = path.read_text("utf-8", errors="ignore")
        lines = source.splitlines()
        figures.sizes.append(len(lines))
        figures.widths += [len(line) for line in lines if line.strip()]
        figures.comments += sum(1 for _ in comments_of(source))
        figures.functions += functions_of(path, source)
        for node in ast.walk(ast.parse(source)):
            _count(node, figures, package)
    return figures


def comments_of(source: str) -> Iterator[tokenize.TokenInfo]:
    """The comments of a file."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token


def functions_of(path: Path, source: str) -> Iterator[Function]:
    """Every function and method with its complexity."""
    for block in cc_visit(source):
        if type(block).__name__ == "Function":
            # radon lists methods a second time beside the functions; its class has them by name.
            if not block.is_method:
                yield Function(path, block.name, block.complexity)
        else:
            for method in block.methods:
                yield Function(path, f"{block.name}.{method.name}", method.complexity)


def _count(node: ast.AST, figures: Figures, package: str) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        figures.lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
        figures.inner_imports += sum(1 for _ in inner_imports(node, package))
    if isinstance(node, ast.ClassDef):
        figures.fields.append(len(fields_of(node)))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        words = (ast.get_docstring(node) or "").split()
        figures.documented += bool(words)
        figures.riddles += bool(words) and words[0] in RIDDLES
    if name := variable_of(node):
        figures.variables += 1
        figures.participles += name in PARTICIPLES


def variable_of(node: ast.AST) -> str | None:
    """The name that a node gives to a variable or a parameter."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def inner_imports(function: ast.AST, package: str) -> Iterator[ast.ImportFrom]:
    """The imports of the package's own modules inside a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.ImportFrom):
            own = (node.module or "").partition(".")[0] == package
            if node.level or own:
                yield node


def fields_of(node: ast.ClassDef) -> set[str]:
    """The instance fields of a class: annotated names, `__slots__`, and what `self.x = …` makes."""
    names: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            names.add(item.target.id)
        if isinstance(item, ast.Assign) and "__slots__" in map(ast.unparse, item.targets):
            constants = (n.value for n in ast.walk(item.value) if isinstance(n, ast.Constant))
            names.update(value for value in constants if isinstance(value, str))
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            names.update([part.attr] if ast.unparse(part.value) == "self" else [])
    return names


def rooms_of(root: Path) -> dict[str, list[Path]]:
    """Folder -> its files."""
    rooms: dict[str, list[Path]] = {}
    for path in files_of(root):
        rooms.setdefault(path.parent.relative_to(root).as_posix(), []).append(path)
    return rooms


def write_table(rows: dict[str, dict[str, float]]) -> str:
    """The rows as Markdown, one column a package or folder."""
    figures = list(next(iter(rows.values())))
    lines = ["| | " + " | ".join(rows) + " |", "|---" * (len(rows) + 1) + "|"]
    for name in figures:
        cells = (f"{row[name]:.2f}".rstrip("0").rstrip(".") for row in rows.values())
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    named = [a.partition("=") for a in arguments if a != "--rooms"]
    roots = {name: Path(folder) for name, _, folder in named} or {"toolparse_lab": ROOT}
    print(write_table({n: measure(files_of(r), r.name).row() for n, r in roots.items()}))
    if "--rooms" in arguments:
        for root in roots.values():
            rooms = rooms_of(root)
            print()
            print("\n".join(_room_lines(rooms, root)))
    return 0


def _room_lines(rooms: dict[str, list[Path]], root: Path) -> Iterator[str]:
    columns = (
        "files", "lines", "complexity mean", "complexity max", "complexity per line",
        "comments per 1000", "participle names %", "imports inside functions",
    )  # fmt: skip
    yield "| room | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    for room, files in rooms.items():
        row = measure(files, root.name).row()
        cells = (f"{row[name]:.2f}".rstrip("0").rstrip(".") for name in columns)
        yield f"| {room} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
