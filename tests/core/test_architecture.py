"""The map of the code is true: every layer, file and name that docs/architecture.md speaks of."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.core.test_layers import ROOMS, ROOT

PAGE = (ROOT.parent / "docs" / "architecture.md").read_text("utf-8")
JOURNEYS = PAGE[PAGE.index("## Three journeys") :]
PLACES = sorted(set(re.findall(r"`([a-z_/]+\.py)(?::([\w.]+))?`", PAGE)))


def defined(path: Path, name: str) -> bool:
    """Return whether a file defines a class or function of that name, or a method of a class."""
    scope: list[ast.stmt] = ast.parse(path.read_text("utf-8")).body
    for part in name.split("."):
        found = next((n for n in scope if getattr(n, "name", None) == part), None)
        if found is None:
            return False
        scope = getattr(found, "body", [])
    return True


@pytest.mark.parametrize(("file", "name"), PLACES, ids=[":".join(p) for p in PLACES])
def test_a_place_on_the_way_is_there(file: str, name: str) -> None:
    path = ROOT / file
    if not path.exists():
        path = ROOT.parent / file
    assert path.is_file()
    assert not name or defined(path, name)


def test_each_journey_is_a_walk_of_several_rooms() -> None:
    for journey in JOURNEYS.split("### ")[1:]:
        rooms = {Path(file).parent for file in re.findall(r"`([a-z_/]+\.py)", journey)}
        assert len(rooms) >= 3, journey.splitlines()[0]


def test_the_table_of_rooms_is_that_of_the_test() -> None:
    table = PAGE[PAGE.index("| room |") : PAGE.index("One module reaches upward")]
    rows = re.findall(r"^\| `(\S+)` \| .+? \| (.+?) \|$", table, re.MULTILINE)
    on_page = {room: set(re.findall(r"`([\w./]+)`", allowed)) for room, allowed in rows}
    assert on_page == {room: set(allowed) for room, allowed in ROOMS.items()}
