"""Parameters of a function, read from its source: names, types, defaults and their help.

A verb takes its options from the function that it calls. Importing the lab takes seconds and needs
an extra, and `toolparse VERB --help` may need neither, so its file is parsed instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
_ARGUMENT = re.compile(r"(\w+(?:, \w+)*): (.*)")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. default: None too where there is none. help: the first sentence about it."""

    annotation: str
    default: Any
    help: str


@cache
def parameters(path: str) -> Mapping[str, Parameter]:
    """Return the parameters of a function, or the members of a TypedDict, by name.

    path: such as "lab.Lab.ingest", below the package. Raises LookupError if it is not there.
    """
    node = _definition(path)
    helps = _helps(ast.get_docstring(node) or "")
    rows: list[tuple[str, ast.expr | None, ast.expr | None]]
    if isinstance(node, ast.ClassDef):
        fields = [row for row in node.body if isinstance(row, ast.AnnAssign)]
        rows = [(ast.unparse(row.target), row.annotation, row.value) for row in fields]
    else:
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        defaults = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
        rows = [
            (arg.arg, arg.annotation, default)
            for arg, default in zip(
                [*plain, *args.kwonlyargs], [*defaults, *args.kw_defaults], strict=True
            )
        ]
    return {
        name: Parameter(
            "" if annotation is None else ast.unparse(annotation),
            default.value if isinstance(default, ast.Constant) else None,
            helps.get(name, ""),
        )
        for name, annotation, default in rows
    }


def _definition(path: str) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef:
    # The last of a name: the ones before it are its overloads.
    names = path.split(".")
    place = PACKAGE
    while names and (place / names[0]).is_dir():
        place /= names.pop(0)
    found: Any = _module(place / f"{names.pop(0)}.py")
    for name in names:
        found = next((node for node in found.body[::-1] if getattr(node, "name", "") == name), None)
        if found is None:
            raise LookupError(f"there is no {path}")
    definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef = found
    return definition


@cache
def _module(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def _helps(docstring: str) -> dict[str, str]:
    # The first sentence about each argument of the section "Args:".
    _, _, section = docstring.partition("\nArgs:\n")
    section = section.split("\n\n")[0]
    helps: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \S)", f"\n{section}"):
        found = _ARGUMENT.match(" ".join(entry.split()))
        if found:
            sentence = re.split(r"\.(?: |$)", found[2], maxsplit=1)[0]
            helps |= dict.fromkeys(found[1].split(", "), sentence)
    return helps
