"""The README's figures are those of the shipped recording. `test_docs.py` runs its code, that with
a server included."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")


def _readme_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme", ROOT / "scripts" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_demo_block_is_what_the_recording_gives() -> None:
    readme = _readme_module()
    assert readme.with_block(TEXT, readme.demo_block()) == TEXT, "run: python scripts/readme.py"


def test_the_first_example_prints_what_stands_below_it() -> None:
    code, output = re.findall(r"```(?:python|text)\n(.*?)```", TEXT, re.DOTALL)[:2]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "README.md", "exec"), {})
    assert said.getvalue() == output


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target
