"""The bridge with the newest litellm and with the oldest that this package takes."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from .bridge_calls import CASES, outcomes

ROOT = Path(__file__).parent.parent
OLDEST = ROOT / ".venv-oldest" / "bin" / "python"


def wrong(found: dict[str, Any]) -> dict[str, Any]:
    """The outcomes that are not what their case says."""
    assert len(found) == len(CASES) * 8
    return {k: v for k, v in found.items() if v != list(CASES[k.partition(": ")[2]][2])}


def test_the_litellm_that_is_installed() -> None:
    assert wrong(outcomes()) == {}


@pytest.mark.slow
@pytest.mark.skipif(not OLDEST.exists(), reason="make oldest sets the environment up")
def test_the_oldest_litellm() -> None:
    done = subprocess.run(
        [OLDEST, "-m", "tests.bridge_calls"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert wrong(said["outcomes"]) == {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    floor = next(d for d in project["project"]["optional-dependencies"]["lab"] if "litellm" in d)
    assert said["litellm"].startswith(floor.partition(">=")[2] + ".")
