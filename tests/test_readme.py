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
from typing import Any

import pytest

from tests.mock_openai import MockOpenAI

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


SERVER = "http://localhost:8000/v1"
CALL = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'


class Answering(MockOpenAI):
    """An endpoint that answers every question with one text."""

    def _answer(self, http: Any, body: dict[str, Any]) -> None:
        super()._answer(http, {**body, "messages": [{"role": "user", "content": "say=" + CALL}]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("heading", "prints"),
    [
        ("## Compare two protocols", "26 trials judged"),
        ("## Read a stream", "CallEnd"),
        ("## Tool calling for any", "name='now'"),
    ],
)
def test_the_examples_with_a_server_run_as_they_stand(
    heading: str, prints: str, tmp_path: Path
) -> None:
    """Against an endpoint on loopback, in an empty folder, as somebody would paste them."""
    match = re.search(r"```python no-run\n(.*?)```", TEXT[TEXT.index(heading) :], re.DOTALL)
    assert match is not None
    with Answering() as mock:
        program = match[1].replace(SERVER, mock.url)
        assert program != match[1]
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False,
            cwd=tmp_path, timeout=120,
            env={**os.environ, "PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert prints in done.stdout


def test_its_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", TEXT):
        assert (ROOT / target).exists(), target
