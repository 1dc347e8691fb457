"""Imports go downward only. Two tables say so; a walk over every module's syntax tree holds the code to them.

Imports inside functions and under TYPE_CHECKING count like all others. `hooks.py` is the one door upward, and what it
names is a table as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

import toolparse_lab
from toolparse_lab import hooks

ROOT = Path(toolparse_lab.__file__).parent
NAME = "toolparse_lab"

# A module (file or folder directly inside the package) -> its layer. One that is not here fails the test.
LAYER_OF = {
    **dict.fromkeys(("deep", "errors", "explain", "hooks", "numerals", "rules", "toolspec", "types", "values"), "L0"),
    **dict.fromkeys(("prompt", "rjson", "rxml", "scan", "schema"), "L1"),
    "protocols": "L2",
    **dict.fromkeys(
        ("api", "auto", "detection", "engine", "foreign", "foreign_parse", "law_report", "law_texts", "laws", "parts"),
        "L3",
    ),
    "capture": "L3",
    **dict.fromkeys(("placing", "provenance", "quoting", "recovery", "registry", "resolve", "stream_report"), "L3"),
    "runner": "RUN",
    "render": "VIEW",
    **dict.fromkeys(("flow", "middleware"), "L4"),
    **dict.fromkeys(("evals", "litellm_bridge", "reparse", "telemetry"), "L5"),
    **dict.fromkeys(
        (
            "arms",
            "asking",
            "canary",
            "check",
            "checking",
            "cli",
            "demo",
            "lab",
            "notebook",
            "opening",
            "plan",
            "plan_file",
            "pytest_plugin",
            "record",
            "rounds",
            "run",
            "run_reading",
            "settings",
            "testing",
        ),
        "L6",
    ),
    **dict.fromkeys(("ingest", "widgets"), "L6"),
}
PARSING = ("L0", "L1", "L2", "L3")
# Layer -> what it may import, its own layer included.
ALLOWED = {
    "L0": ("L0",),
    "L1": ("L0", "L1"),
    "L2": ("L0", "L1", "L2"),
    "L3": PARSING,
    "RUN": ("L0", "RUN"),  # never the parsers
    "VIEW": (*PARSING, "VIEW"),  # views know results, not where they came from
    "L4": (*PARSING, "RUN", "VIEW", "L4"),
    "L5": (*PARSING, "RUN", "VIEW", "L4", "L5"),
    "L6": (*PARSING, "RUN", "VIEW", "L4", "L5", "L6"),
}
# Package from elsewhere -> the modules that may import it.
THIRD_PARTY = {
    "IPython": ("notebook", "widgets"),
    "anywidget": ("widgets",),
    "distributed": ("reparse",),
    "ipywidgets": ("widgets",),
    "jsonschema": ("schema",),
    "regex": ("schema",),
    "rfc3987_syntax": ("schema",),
    "litellm": ("litellm_bridge", "runner"),
    "lxml": ("rxml",),
    "numpy": ("evals",),
    "pandas": ("evals",),
    "platformdirs": ("runner",),
    "pytest": ("pytest_plugin",),
    "pyarrow": ("evals",),
    "referencing": ("schema",),
    "rich": ("cli", "demo"),
    "scipy": ("evals",),
    "sqlalchemy": ("runner",),
    "tqdm": ("runner",),
    "traitlets": ("widgets",),
    "xllamacpp": ("runner",),
    "yaml": ("protocols",),
}
# The late names of hooks.py: what low layers may reach upward for, and nothing else.
UPWARD = {
    "acompletion": ("toolparse_lab.litellm_bridge.calls", "acompletion_with"),
    "completion": ("toolparse_lab.litellm_bridge.calls", "completion_with"),
    "create_stream_parser": ("toolparse_lab.parts", "create_stream_parser"),
    "debug": ("toolparse_lab.notebook", "debug"),
    "extract_tool_call_segments": ("toolparse_lab.parts", "extract_tool_call_segments"),
    "frame": ("toolparse_lab.notebook", "frame"),
    "html": ("toolparse_lab.notebook", "html"),
    "parse_generated_text": ("toolparse_lab.parts", "parse_generated_text"),
    "text": ("toolparse_lab.notebook", "text"),
}
# These import by a name they compute; their tables are checked instead.
BY_NAME = ("__init__", "hooks", "registry")


@dataclass(frozen=True)
class Import:
    """One import: the dotted name of what is imported, the line, and whether only type checkers run it."""

    target: str
    line: int
    typing_only: bool


class Walker(ast.NodeVisitor):
    """Collects the imports of one module, those by importlib and `__import__` included."""

    def __init__(self, package: str) -> None:
        self.package = package
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
            # A name taken from the package itself may be a module or something the package re-exports.
            self._add(f"{base}.{alias.name}" if base == self.package.partition(".")[0] else base, node)

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func)
        if called in ("importlib.import_module", "import_module", "__import__"):
            name = node.args[0] if node.args else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                self._add(name.value, node)
            else:
                self._add("?", node)
        self.generic_visit(node)

    def _add(self, target: str, node: ast.stmt | ast.expr) -> None:
        self.found.append(Import(target, node.lineno, self._typing_only))


def imports_of(path: Path, root: Path) -> list[Import]:
    walker = Walker(".".join((root.name, *path.relative_to(root).parts[:-1])))
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


def violations(root: Path) -> Iterator[str]:
    """One line for every import that the tables forbid."""
    exported = exports(root)
    for path in sorted(root.rglob("*.py")):
        where = path.relative_to(root)
        unit = where.parts[0].removesuffix(".py")
        layer = "FRONT" if unit == "__init__" else LAYER_OF.get(unit, "")
        if not layer:
            yield f"{where}: {unit!r} has no layer"
            continue
        allowed = PARSING if layer == "FRONT" else ALLOWED[layer]
        for found in imports_of(path, root):
            place = f"{where}:{found.line}"
            top, _, rest = found.target.partition(".")
            if found.target == "?":
                if unit not in BY_NAME:
                    yield f"{place}: imports a module whose name it computes"
                continue
            if top != NAME:
                if top not in sys.stdlib_module_names and unit not in THIRD_PARTY.get(top, ()):
                    yield f"{place}: {unit} may not import {top}"
                continue
            if layer == "FRONT" and found.typing_only:
                continue  # the late names, which have a test of their own
            target = rest.partition(".")[0]
            if target not in LAYER_OF:
                target = exported.get(target, target).partition(".")[0]
            if target not in LAYER_OF:
                if layer != "L6":
                    yield f"{place}: {unit} imports the whole package ({found.target})"
            elif LAYER_OF[target] not in allowed:
                yield f"{place}: {unit} ({layer}) may not import {target} ({LAYER_OF[target]})"


def test_the_code_keeps_to_the_tables() -> None:
    assert list(violations(ROOT)) == []


def test_the_one_door_upward_leads_where_its_table_says() -> None:
    assert hooks._PROVIDERS == UPWARD
    for module, function in UPWARD.values():
        assert LAYER_OF[module.split(".")[1]] in ("L6", "L5", "L3")
        assert f"def {function}(" in ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text("utf-8")


def test_late_names_are_the_ones_type_checkers_see() -> None:
    seen: dict[str, str] = {}
    for node in ast.parse((ROOT / "__init__.py").read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for child in node.body:
                assert isinstance(child, ast.ImportFrom)
                seen |= {alias.asname or alias.name: f"{NAME}.{child.module}" for alias in child.names}
    assert seen == toolparse_lab._LATE
    assert seen.keys() <= set(toolparse_lab.__all__)


def test_every_late_name_is_there() -> None:
    if find_spec("pandas") is None:
        pytest.skip("late names need the lab extra: pip install 'toolparse_lab[lab]'")
    for name in toolparse_lab.__all__:
        assert getattr(toolparse_lab, name) is not None


PLANTED = {
    "upward": ("rjson/a.py", "from ..engine import StreamParser\n", "rjson (L1) may not import engine (L3)"),
    "lazily upward": ("types.py", "def f():\n    from .lab import Lab\n", "types (L0) may not import lab (L6)"),
    "for type checkers only": (
        "render/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..runner.types import Model\n",
        "render (VIEW) may not import runner (RUN)",
    ),
    "by its full name": ("scan.py", "import toolparse_lab.protocols.base\n", "scan (L1) may not import protocols (L2)"),
    "by importlib": (
        "values.py",
        "import importlib\nimportlib.import_module('toolparse_lab.cli')\n",
        "values (L0) may not import cli (L6)",
    ),
    "by a computed name": ("scan.py", "def f(x):\n    __import__(x)\n", "imports a module whose name it computes"),
    "a name of the front": ("evals/a.py", "from .. import Lab\n", "evals (L5) may not import lab (L6)"),
    "the whole front": ("engine.py", "import toolparse_lab as tp\n", "engine imports the whole package"),
    "the front upward": (
        "__init__.py",
        "from .evals.cases import Case\n",
        "__init__ (FRONT) may not import evals",
    ),
    "the runner parses": ("runner/a.py", "from .. import engine\n", "runner (RUN) may not import engine (L3)"),
    "from elsewhere": ("evals/a.py", "def f():\n    import litellm.utils\n", "evals may not import litellm"),
    "from elsewhere, unknown": ("cli.py", "from requests import get\n", "cli may not import requests"),
    "without a layer": ("extra.py", "", "'extra' has no layer"),
}


@pytest.mark.parametrize(("file", "source", "complaint"), PLANTED.values(), ids=PLANTED)
def test_planted_violations_are_found(tmp_path: Path, file: str, source: str, complaint: str) -> None:
    root = tmp_path / NAME
    front = root / "__init__.py"
    planted = root / file
    planted.parent.mkdir(parents=True)
    front.write_text(
        "from .api import parse\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .lab import Lab\n"
    )
    planted.write_text(source)
    found = list(violations(root))
    assert len(found) == 1, found
    assert file in found[0]
    assert complaint in found[0]


def test_what_is_allowed_is_not_complained_about(tmp_path: Path) -> None:
    root = tmp_path / NAME
    (root / "evals").mkdir(parents=True)
    (root / "__init__.py").write_text("from .api import parse\n")
    (root / "evals" / "a.py").write_text(
        "import json\nimport pandas as pd\nfrom .. import parse\nfrom ..runner.types import Model\nfrom .b import c\n"
    )
    (root / "cli.py").write_text("import toolparse_lab as tp\nimport rich.console\n")
    assert list(violations(root)) == []
