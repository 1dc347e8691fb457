"""The versions that the gate tries, and the example of the page on applications."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.bridge import litellm
from tests.tables import asked_of
from toolparse_lab.runner.local.setup import local_model_ready

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DEPENDENCIES = [
    line
    for lines in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for line in lines
    if not line.startswith(PROJECT["name"])
]


def pins(name: str) -> dict[str, str]:
    """Package -> version of a file in .ci; of several, for several Pythons, the first."""
    lines = re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / ".ci" / name).read_text("utf-8"), re.M)
    return dict(reversed(lines))


@asked_of("line", sorted(set(DEPENDENCIES)))
def test_the_gate_names_a_version_of_each_dependency(line: str) -> None:
    found = re.match(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)", line)
    assert found is not None, f"{line}: a dependency has a lower bound"
    name, floor = found.groups()
    lowest, newest = pins("constraints-lowest.txt")[name], pins("constraints.txt")[name]
    assert lowest == floor or lowest.startswith(f"{floor}."), f"{name}: run `make constraints`"
    assert newest


# The example of docs/app.md that needs the embedded model; the others are run with all pages.


TEXT = (Path(__file__).parents[2] / "docs" / "app.md").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.local_model
@pytest.mark.skipif(
    not local_model_ready(), reason="the embedded model's packages are not installed"
)
def test_a_model_string_is_all_that_changes(capsys: pytest.CaptureFixture[str]) -> None:
    litellm()
    (code,) = re.findall(r"```python no-run: [^\n]*\n(.*?)```", TEXT, re.S)
    assert len(code.splitlines()) <= 12
    exec(code, {})
    assert capsys.readouterr().out == "tool_calls roll\n"
    assert "It prints `tool_calls roll`" in TEXT
