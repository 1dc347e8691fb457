"""The parts of the notebook views that need no page, under node."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from toolparse_lab.core.types import VERDICTS

FOLDER = Path(__file__).parents[1] / "front_end"


def test_the_parts_of_the_front_end() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    ran = subprocess.run(
        [node, "--test", *map(str, sorted(FOLDER.glob("*.mjs")))],
        env={**os.environ, "TOOLPARSE_VERDICTS": json.dumps(list(VERDICTS))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
