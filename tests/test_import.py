"""`import toolparse_lab` in a fresh interpreter loads the parser and nothing heavy. The time is in benchmarks/."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
HEAVY = (
    "IPython", "anywidget", "asyncio", "email", "ipywidgets", "jsonschema", "litellm", "lxml", "numpy", "pandas",
    "platformdirs", "pyarrow", "referencing", "rich", "scipy", "sqlalchemy", "statsmodels", "tqdm", "traitlets",
    "xllamacpp", "yaml",
)  # fmt: skip
# Using the parser, not only importing it.
PARSE = """
tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
call = tp.parse('<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>', "hermes", tools).calls[0]
assert call.valid and call.origin("/a")
"""


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after running `code`."""
    program = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


# What a .pth file of the environment loads is not our doing.
BEFORE = loaded_after("")


def test_the_import_loads_nothing_heavy() -> None:
    assert loaded_after("import toolparse_lab") & set(HEAVY) <= BEFORE


def test_the_import_loads_no_layer_above_the_parser() -> None:
    ours = {m.split(".")[1] for m in loaded_after("import toolparse_lab") if m.startswith("toolparse_lab.")}
    assert ours & {"cli", "demo", "evals", "lab", "notebook", "prompt", "render", "runner", "widgets"} == set()
    assert {"engine", "scan", "rjson"} <= ours


def test_parsing_loads_neither_frames_nor_clients() -> None:
    unused = set(HEAVY) - {"email", "jsonschema", "referencing"}  # entry points and validation are used here
    assert loaded_after(f"import toolparse_lab as tp\n{PARSE}") & unused <= BEFORE


def test_a_heavy_import_would_be_seen() -> None:
    assert "sqlite3" in loaded_after("import sqlite3") - BEFORE
