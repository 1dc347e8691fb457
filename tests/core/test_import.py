"""`import toolparse_lab` in a fresh interpreter loads the parser and nothing heavy. The time is in
benchmarks/."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = (
    "IPython", "anywidget", "asyncio", "email", "ipywidgets", "jinja2", "jsonschema", "litellm",
    "lxml", "markupsafe", "numpy", "pandas", "platformdirs", "pyarrow", "referencing", "rich",
    "scipy", "sqlalchemy", "statsmodels", "tqdm", "traitlets", "xllamacpp", "yaml",
)  # fmt: skip
# Using the parser, not only importing it.
PARSE = """
tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
call = tp.parse('<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>', "hermes", tools).calls[0]
assert call.valid and call.origin("/a")
"""


@cache
def loaded_after(code: str) -> frozenset[str]:
    """The modules that a fresh interpreter holds after running `code`."""
    program = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return frozenset(json.loads(done.stdout.splitlines()[-1]))


# What a .pth file of the environment loads is not our doing.
BEFORE = loaded_after("")


def test_the_import_loads_nothing_heavy() -> None:
    assert loaded_after("from toolparse_lab import parse") & set(HEAVY) <= BEFORE


def test_the_package_alone_loads_no_parser() -> None:
    loaded = loaded_after("import toolparse_lab")
    assert {m.split(".")[1] for m in loaded if m.startswith("toolparse_lab.")} == {"core"}


def test_a_report_is_made_without_scipy() -> None:
    code = """
import pandas as pd
from toolparse_lab.evals.reports.figures.cells import REQUIRED
from toolparse_lab.evals.reports.figures.report import Report
rows = [
    {"model": m, "case_id": c, "score_success": c % 3 > 0, "trial_id": f"{m}{c}", "policy": "safe"}
    for m in "abc" for c in range(20)
]
frame = pd.DataFrame(rows).assign(trial=0)
report = Report(frame.assign(**{c: None for c in REQUIRED if c not in frame}), by="model")
assert report.text() and report.compare("a", "b").frame["p"][0] == 1
"""
    assert "scipy" not in loaded_after(code) - BEFORE


def test_the_import_loads_no_layer_above_the_parser() -> None:
    ours = {
        m.split(".")[1]
        for m in loaded_after("from toolparse_lab import parse")
        if m.startswith("toolparse_lab.")
    }
    assert ours == {"arguments", "core", "entry", "formats", "parser"}


def test_of_prompts_only_what_protocols_say_of_themselves_is_loaded() -> None:
    loaded = {m for m in loaded_after("from toolparse_lab import parse") if ".prompt." in m}
    assert loaded == {
        "toolparse_lab.formats.prompt.type_rules",
        "toolparse_lab.formats.prompt.wording",
    }


def test_parsing_loads_neither_frames_nor_clients() -> None:
    unused = set(HEAVY) - {
        "email",
        "jsonschema",
        "referencing",
    }  # entry points and validation are used here
    assert loaded_after(f"import toolparse_lab as tp\n{PARSE}") & unused <= BEFORE


def test_a_heavy_import_would_be_seen() -> None:
    assert "sqlite3" in loaded_after("import sqlite3") - BEFORE


MISSING = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
import toolparse_lab as tp
try:
    tp.{name}
except tp.errors.MissingExtra as error:
    print(error)
"""


def test_a_name_without_its_extra_says_what_to_install() -> None:
    program = MISSING.format(name="Lab", package="sqlalchemy")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "toolparse_lab.Lab needs the package sqlalchemy" in done.stdout
    assert "pip install '.[lab]'" in done.stdout
