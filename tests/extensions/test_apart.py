"""Extensions stand apart: nothing outside their folder imports one, and none imports another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import toolparse_lab
from tests.core.test_layers import imports_of
from tests.without_extension import without

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


IMPORT_ALL = """
import importlib, pkgutil
import toolparse_lab
for module in pkgutil.walk_packages(toolparse_lab.__path__, "toolparse_lab."):
    # What vLLM, SGLang and a worker process import is not there.
    if module.name.rpartition(".")[2] not in ("__main__", "vllm", "sglang"):
        importlib.import_module(module.name)
from toolparse_lab.cli.parser import build_parser
build_parser()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "gone",
    [NAMES, *(pytest.param((name,), marks=pytest.mark.exhaustive) for name in NAMES)],
    ids=lambda names: names[0] if len(names) == 1 else "all",
)
def test_the_rest_stands_without(gone: Sequence[str], tmp_path: Path) -> None:
    """`python -m tests.without_extension NAME` runs the tests of what is left as well."""
    without(gone, ROOT.parent, tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORT_ALL],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
