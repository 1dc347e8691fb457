"""Extensions stand apart: nothing outside their folder imports one, and none imports another."""

from __future__ import annotations

from pathlib import Path

import toolparse_lab
from tests.core.test_layers import imports_of

ROOT = Path(toolparse_lab.__file__).parent
EXTENSIONS = ROOT / "extensions"
NAMES = sorted(path.name for path in EXTENSIONS.iterdir() if (path / "__init__.py").is_file())


def extension_of(target: str) -> str | None:
    """The extension that a dotted name lies in, if it lies in one."""
    parts = target.split(".")
    return parts[2] if parts[1:2] == ["extensions"] and len(parts) > 2 else None


def test_nothing_outside_imports_an_extension() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line.line}: {line.target}"
        for path in sorted(ROOT.rglob("*.py"))
        if not path.is_relative_to(EXTENSIONS)
        for line in imports_of(path, ROOT)
        if extension_of(line.target)
    ]
    assert found == []


def test_no_extension_imports_another() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line.line}: {line.target}"
        for name in NAMES
        for path in sorted((EXTENSIONS / name).rglob("*.py"))
        for line in imports_of(path, ROOT)
        if extension_of(line.target) not in (None, name)
    ]
    assert found == []
