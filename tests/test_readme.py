"""The README's figures are those of the shipped recording, and its code prints what it says it
prints."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from toolparse_lab.runner.local.setup import local_model_ready

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text("utf-8")


def _readme_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme", ROOT / "docs" / "readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_demo_block_is_what_the_recording_gives() -> None:
    readme = _readme_module()
    assert readme.with_block(TEXT, readme.demo_block()) == TEXT, "run: python docs/readme.py"


def test_the_first_example_prints_what_stands_below_it() -> None:
    code, output = re.findall(r"```(?:python|text)\n(.*?)```", TEXT, re.DOTALL)[:2]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "README.md", "exec"), {})
    assert said.getvalue() == output


@pytest.mark.local_model
@pytest.mark.slow
@pytest.mark.skipif(
    not local_model_ready(), reason="the embedded model is not installed: toolparse setup-local"
)
def test_the_main_job_runs_as_it_stands(tmp_path: Path) -> None:
    """On the embedded model, in an empty folder, as somebody would paste it.

    The pages' own test runs no blocks that need a model, so this one is left to us.
    """
    section = TEXT[TEXT.index("## In a notebook") :]
    match = re.search(r"```python no-run\n(.*?)```", section, re.DOTALL)
    assert match is not None
    assert "max_cost=5" in match[1]
    done = subprocess.run(
        [sys.executable, "-c", match[1]], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "8 trials judged" in done.stdout
    assert "hermes" in done.stdout
    assert "morph_xml" in done.stdout


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target


def test_the_protocols_it_lists_are_there() -> None:
    import toolparse_lab as tp

    table = TEXT[TEXT.index("| protocol | what |") : TEXT.index("## In a notebook")]
    assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == {*tp.protocols(), "auto"}
