"""A dozen calls through the bridge, and the versions that the gate tries."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.bridge_calls import CASES, outcomes

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


def test_every_way_through_the_bridge() -> None:
    found = outcomes()
    assert len(found) == len(CASES) * 8
    assert {k: v for k, v in found.items() if v != list(CASES[k.partition(": ")[2]][2])} == {}


@pytest.mark.parametrize("line", sorted(set(DEPENDENCIES)))
def test_the_gate_names_a_version_of_each_dependency(line: str) -> None:
    found = re.match(r"([\w.-]+)(?:\[\w+\])?>=([\w.]+)", line)
    assert found is not None, f"{line}: a dependency has a lower bound"
    name, floor = found.groups()
    lowest, newest = pins("constraints-lowest.txt")[name], pins("constraints.txt")[name]
    assert lowest == floor or lowest.startswith(f"{floor}."), f"{name}: run `make constraints`"
    assert newest
