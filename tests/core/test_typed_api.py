"""The public API as type checkers see it: right lines pass, each wrong line is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.type_lines import HEAD, RIGHT, WRONG
from toolparse_lab.experiments.arms import FACTORS
from toolparse_lab.formats.base import SpecKeywords
from toolparse_lab.formats.spec import _COMMON, _FIELDS
from toolparse_lab.integrations.litellm_bridge.options import KEYWORDS, BridgeArguments
from toolparse_lab.middleware.flow.factors import PlanSettings, QuestionSettings
from toolparse_lab.runner.exchange.types import PARAMETERS

ROOT = Path(__file__).parents[2]
RIGHT_LINES = RIGHT.strip().splitlines()
WRONG_LINES = WRONG.strip().splitlines()
FIRST = HEAD.count("\n") + 1
HAS_PYRIGHT = find_spec("pyright") is not None and shutil.which("node") is not None


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("types") / "lines.py"
    path.write_text("\n".join([HEAD.rstrip("\n"), "", *RIGHT_LINES, *WRONG_LINES, ""]))
    return path


def check(refused: set[int]) -> None:
    """Compare the numbers of the refused lines with the wrong lines."""
    first = FIRST + 1
    lines = dict(enumerate([*RIGHT_LINES, *WRONG_LINES], first))
    assert not refused - lines.keys(), "the head itself is refused"
    names = {lines[number] for number in refused}
    assert [line for line in RIGHT_LINES if line in names] == []
    assert [line for line in WRONG_LINES if line not in names] == []


def environment() -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "MYPYPATH": str(ROOT), "PYTHONPATH": path}


def test_there_are_enough_lines() -> None:
    assert min(len(RIGHT_LINES), len(WRONG_LINES)) >= 30


def test_mypy(module: Path) -> None:
    config = ("--config-file", str(ROOT / "pyproject.toml"))
    command = (sys.executable, "-m", "mypy", *config, "--strict", "--no-error-summary")
    run = subprocess.run(
        [*command, "--cache-dir", str(ROOT / ".mypy_cache"), str(module)],
        cwd=ROOT, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    ours = re.findall(rf"^\S*{module.name}:(\d+): error", run.stdout, re.MULTILINE)
    assert ours, run.stdout + run.stderr
    check(set(map(int, ours)))


@pytest.mark.skipif(not HAS_PYRIGHT, reason="pyright or node is not installed")
def test_pyright(module: Path) -> None:
    settings = {
        "include": [module.name],
        "extraPaths": [str(ROOT)],
        "reportUnusedExpression": "none",
        "reportUnusedCallResult": "none",
        "typeCheckingMode": "standard",
    }
    config = module.parent / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    try:
        # Its first run fetches the checker from the package registry.
        run = subprocess.run(
            [*command, "--outputjson", "--project", str(config)],
            cwd=module.parent, env=environment(), capture_output=True, text=True, check=False,
            timeout=180,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip("pyright cannot run here: it did not answer within 180 s")
    if not run.stdout.lstrip().startswith("{"):
        pytest.skip(f"pyright cannot run here: {(run.stderr or run.stdout).strip()[-200:]}")
    diagnostics = json.loads(run.stdout)["generalDiagnostics"]
    errors = [d["range"]["start"]["line"] + 1 for d in diagnostics if d["severity"] == "error"]
    check(set(errors))


def test_the_types_hold_every_name() -> None:
    plan, question = PlanSettings.__optional_keys__, QuestionSettings.__optional_keys__
    assert plan | {"seed"} == {*FACTORS, *PARAMETERS}
    assert question - {"fresh"} == {*FACTORS, *PARAMETERS}
    assert set(KEYWORDS) <= BridgeArguments.__optional_keys__
    spec = {name for fields in (_COMMON, *_FIELDS.values()) for name in fields}
    assert SpecKeywords.__optional_keys__ == spec
