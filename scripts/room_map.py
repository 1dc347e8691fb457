"""The part of docs/architecture.md that is made from code: one line for each folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "toolparse_lab"


def room_parts() -> dict[str, str]:
    """Part of the page -> its Markdown."""
    rooms = sorted({path.parent for path in PACKAGE.rglob("*.py")})
    root = [path for path in sorted(PACKAGE.glob("*.py")) if path.name != "__init__.py"]
    lines = ["```text", *_root_lines(root), *map(_room_line, rooms[1:]), "```"]
    return {"rooms": "\n".join(lines)}


def _root_lines(files: list[Path]) -> Iterator[str]:
    for file in files:
        yield f"{file.name:24}{_sentence(file)}"


def _room_line(folder: Path) -> str:
    place = folder.relative_to(PACKAGE)
    name = "  " * (len(place.parts) - 1) + place.name + "/"
    return f"{name:24}{_sentence(folder / '__init__.py')}"


def _sentence(file: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    doc = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return " ".join(doc.split("\n\n")[0].split())
