"""Imports go downward only. Two tables say so; a walk over every module's syntax tree holds the
code to them.

Imports inside functions and under TYPE_CHECKING count like all others. `core/hooks.py` is the one door
upward, and what it names is a table as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import toolparse_lab
from tests.tables import each_case
from toolparse_lab.core import hooks

ROOT = Path(toolparse_lab.__file__).parent
NAME = "toolparse_lab"

_PARSING = ("core", "arguments", "formats", "parser", "entry")
_READING = (*_PARSING, "middleware", "runner", "views")
_LAB = (*_READING, "evals", "experiments")
# Room, or a file in the root -> the rooms that it may import, itself apart. In order: arrows go up the table.
ROOMS = {
    "core": (),
    "runner": ("core",),  # never the parsers
    "views": ("core",),  # views know results, not where they came from
    "arguments": ("core",),
    "formats": ("core", "arguments"),
    "parser": ("core", "arguments", "formats"),
    "entry": ("core", "arguments", "formats", "parser"),
    "__init__.py": _PARSING,
    "middleware": (*_PARSING, "runner", "views"),
    "evals": _READING,
    "experiments": (*_READING, "evals", "__init__.py"),
    "lab.py": (*_LAB, "__init__.py"),
    "integrations": (*_LAB, "lab.py", "__init__.py"),
    "notebook": (*_LAB, "lab.py", "__init__.py"),
    "cli": (*_LAB, "lab.py", "integrations", "notebook", "__init__.py"),
    # Nothing imports these; an extension imports no other one, which a test of its own asks.
    "extensions": (*_LAB, "lab.py", "integrations", "notebook", "cli", "__init__.py"),
}
# Package from elsewhere -> the folders (and all below them) or root files that may import it.
THIRD_PARTY = {
    "IPython": ("notebook",),
    "altair": ("evals/reports/pages",),
    "aiohttp": ("extensions/serve",),
    "httpx2": ("runner",),
    "anywidget": ("notebook",),
    "backports": ("experiments/ingest",),
    "distributed": ("evals/engines.py",),
    "fsspec": ("core",),
    "httpx": ("middleware/correction", "runner"),
    "jinja2": ("runner/chat_templates", "views"),
    "jsonschema": ("arguments/schema",),
    "jsonschema_specifications": ("arguments/schema",),
    "litellm": ("extensions/serve", "integrations/litellm_bridge", "runner"),
    "lxml": ("formats/rxml",),
    "markupsafe": ("views",),
    "multidict": ("extensions/serve",),
    "numpy": ("evals", "extensions/study"),
    "opentelemetry": ("integrations/telemetry.py",),
    "pandas": ("evals", "extensions/readers", "extensions/study"),
    "polars": ("evals",),
    "pyarrow": ("evals",),
    "pydantic_core": ("extensions/readers/worker",),
    "pytest": ("integrations/testing",),
    "referencing": ("arguments/schema",),
    "regex": ("arguments/schema",),
    "rfc3987_syntax": ("arguments/schema",),
    "scipy": ("evals", "extensions/study"),
    "sglang": ("extensions/readers/worker", "extensions/serve/sglang.py"),
    "sqlalchemy": ("runner/store",),
    "tornado": ("notebook",),
    "tqdm": ("runner",),
    "traitlets": ("notebook",),
    "transformers": ("extensions/readers/worker",),
    "vllm": ("extensions/readers/worker", "extensions/serve/vllm.py"),
    "xllamacpp": ("extensions/serve/local.py", "runner/local"),
    "yaml": ("formats/yaml",),
    "yarl": ("extensions/serve",),
}
# The late names of core/hooks.py: what low layers may reach upward for, and nothing else.
UPWARD = {
    "evals.reports.pages.charts": ("figure_chart",),
    "evals.reports.pages.files": ("figure_html", "figure_markdown", "figure_text", "save_figure"),
    "formats.spec": ("from_spec",),
    "formats.surface": ("format_tool_call", "format_tool_response", "format_tools"),
    "integrations.litellm_bridge.calls": ("acompletion_with", "completion_with"),
    "notebook.display": ("browse", "debug", "frame", "html", "text", "workbench"),
}
# These import by a name they compute; their tables are checked instead.
BY_NAME = (
    "__init__.py", "cli/parser.py", "cli/verbs/__init__.py", "core/hooks.py", "core/late.py",
    "extensions/serve/vllm.py", "formats/registry.py", "extensions/readers/worker/__main__.py",
)  # fmt: skip
# Package from elsewhere, or file of ours -> the rooms that may import it for its types alone.
TYPING_ONLY = {"pandas": ("core",), "lab.py": ("experiments",)}


@dataclass(frozen=True)
class Import:
    """One import: the dotted name of what is imported, the line, and whether only type checkers run
    it."""

    target: str
    line: int
    typing_only: bool


class Walker(ast.NodeVisitor):
    """Collects the imports of one module, those by importlib and `__import__` included."""

    def __init__(self, package: str, root: Path) -> None:
        self.package = package
        self.root = root
        self.found: list[Import] = []
        self._typing_only = False

    def visit_If(self, node: ast.If) -> None:
        outer = self._typing_only
        self._typing_only = outer or ast.unparse(node.test).endswith("TYPE_CHECKING")
        for child in node.body:
            self.visit(child)
        self._typing_only = outer
        for child in node.orelse:
            self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parts = self.package.split(".")
            parts = parts[: len(parts) - node.level + 1]
            base = ".".join([*parts, base] if base else parts)
        for alias in node.names:
            # A name taken from a folder may be a module of it, or something it re-exports.
            folder = self.root.parent.joinpath(*base.split("."))
            front = base == self.package.partition(".")[0]
            module = (folder / f"{alias.name}.py").is_file() or (folder / alias.name).is_dir()
            self._add(f"{base}.{alias.name}" if front or module else base, node)

    def visit_Call(self, node: ast.Call) -> None:
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("import_module", "__import__"):
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                self._add(name.value, node)
            else:
                self._add("?", node)
        self.generic_visit(node)

    def _add(self, target: str, node: ast.stmt | ast.expr) -> None:
        self.found.append(Import(target, node.lineno, self._typing_only))


@cache
def imports_of(path: Path, root: Path) -> list[Import]:
    walker = Walker(".".join((root.name, *path.relative_to(root).parts[:-1])), root)
    walker.visit(ast.parse(path.read_text("utf-8")))
    return walker.found


def exports(root: Path) -> dict[str, str]:
    """The names that the package itself re-exports -> the module each comes from."""
    out: dict[str, str] = {}
    front = root / "__init__.py"
    for node in ast.walk(ast.parse(front.read_text("utf-8"))) if front.exists() else ():
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                out[alias.asname or alias.name] = node.module or alias.name
    return out


def room_of(module: Path) -> str:
    """The key in `ROOMS` of a file, given relative to the package."""
    return module.parts[0]


def room_of_target(dotted: str, root: Path) -> str | None:
    """The room of an imported name, given without the package's own name; None for what is no room."""
    head = dotted.partition(".")[0]
    return next((r for r in (head, f"{head}.py") if r in ROOMS or (root / r).exists()), None)


def may_import(where: Path, package: str) -> bool:
    """Whether a file, or a folder it lies in, is in the package's row of `THIRD_PARTY`."""
    return any(where.is_relative_to(r) for r in THIRD_PARTY.get(package, ()))


def violations(root: Path) -> Iterator[str]:
    """One line for every import that the tables forbid."""
    exported = exports(root)
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root)
        room = room_of(where)
        if room not in ROOMS:
            yield f"{where}: {room!r} is no room"
            continue
        for found in imports_of(path, root):
            place = f"{where}:{found.line}"
            top, _, rest = found.target.partition(".")
            if found.target == "?":
                if where.as_posix() not in BY_NAME:
                    yield f"{place}: imports a module whose name it computes"
                continue
            if top != NAME:
                if found.typing_only and room in TYPING_ONLY.get(top, ()):
                    continue
                if top not in sys.stdlib_module_names and not may_import(where, top):
                    yield f"{place}: {room} may not import {top}"
                continue
            if room == "__init__.py" and found.typing_only:
                continue  # the late names, which have a test of their own
            target = (
                room_of_target(exported.get(rest, rest), root) if rest else None
            ) or "__init__.py"
            if target in (room, *ROOMS[room]):
                continue
            if not (found.typing_only and room in TYPING_ONLY.get(target, ())):
                yield f"{place}: {room} may not import {target}"


def files_in_circles(root: Path) -> list[list[str]]:
    """Groups of files that import one another, directly or by way of others; imports inside functions and for type
    checkers count: what cannot be read apart is one thing.
    """
    names = {p: ".".join(p.relative_to(root).with_suffix("").parts) for p in root.rglob("*.py")}
    modules = {n.removesuffix(".__init__"): n for n in names.values()}
    arrows: dict[str, set[str]] = {}
    for path, name in names.items():
        arrows[name] = set()
        if name == "__init__":
            continue
        for found in imports_of(path, root):
            top, _, rest = found.target.partition(".")
            if top == NAME and rest:
                target = modules.get(rest) or modules.get(rest.rpartition(".")[0])
                if target and target != name:
                    arrows[name].add(target)
    return [sorted(group) for group in strongly_connected(arrows) if len(group) > 1]


def strongly_connected(arrows: dict[str, set[str]]) -> list[list[str]]:
    nodes = sorted(arrows)
    places = {node: place for place, node in enumerate(nodes)}
    edges = [(places[node], places[target]) for node in nodes for target in arrows[node]]
    rows, columns = zip(*edges, strict=True)
    graph = coo_array(([1] * len(edges), (rows, columns)), shape=(len(nodes), len(nodes)))
    _, labels = connected_components(graph, connection="strong")
    groups: dict[int, list[str]] = {}
    for node, label in zip(nodes, labels.tolist(), strict=True):
        groups.setdefault(label, []).append(node)
    return list(groups.values())


def test_circles_stay_within_a_room_and_small() -> None:
    for group in files_in_circles(ROOT):
        rooms = {name.partition(".")[0] for name in group}
        assert len(rooms) == 1, f"files of several rooms import one another: {group}"
        assert len(group) <= 3, f"more than three files import one another: {group}"


def test_the_code_keeps_to_the_tables() -> None:
    assert list(violations(ROOT)) == []


def test_the_one_door_upward_leads_where_its_table_says() -> None:
    assert hooks.UPWARD == UPWARD
    for module, functions in UPWARD.items():
        assert room_of_target(module, ROOT) in ROOMS
        source = ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")
        assert all(f"def {function}(" in source for function in functions)


def test_late_names_are_the_ones_type_checkers_see() -> None:
    seen: dict[str, str] = {}
    for node in ast.parse((ROOT / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for child in node.body:
                assert isinstance(child, ast.ImportFrom)
                seen[str(child.module)] = " ".join(alias.name for alias in child.names)
    assert seen == toolparse_lab._LATE
    assert set(" ".join(seen.values()).split()) <= set(toolparse_lab.__all__)


def test_every_late_name_is_there() -> None:
    for name in toolparse_lab.__all__:
        assert getattr(toolparse_lab, name) is not None


@each_case
def test_planted_violations_are_found(
    tmp_path: Path, file: str, source: str, complaint: str
) -> None:
    root = tmp_path / NAME
    front = root / "__init__.py"
    planted = root / file
    planted.parent.mkdir(parents=True)
    front.write_text(
        "from .entry.parse import parse\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from "
        ".lab import Lab\n"
    )
    planted.write_text(source)
    found = list(violations(root))
    assert len(found) == 1, found
    assert file in found[0]
    assert complaint in found[0]


def test_what_is_allowed_is_not_complained_about(tmp_path: Path) -> None:
    root = tmp_path / NAME
    (root / "evals").mkdir(parents=True)
    (root / "__init__.py").write_text("from .entry.parse import parse\n")
    (root / "evals" / "a.py").write_text(
        "import json\nimport pandas as pd\nfrom .. import parse\nfrom ..runner.exchange.types import "
        "Model\nfrom .b import c\n"
    )
    (root / "cli").mkdir()
    (root / "cli" / "a.py").write_text("import toolparse_lab as tp\nimport json\n")
    assert list(violations(root)) == []
