"""The recipes of docs/extensions/serve.md in the frameworks themselves, as `benchmarks/frameworks.py`
runs them.

Those whose environment `make frameworks` set up run here; the others run at night.
"""

from __future__ import annotations

import re

import pytest

from benchmarks import frameworks

CASES = [(recipe, way) for recipe in frameworks.FRAMEWORKS for way in recipe.ways]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "way"), CASES, ids=[f"{recipe.folder}-{way}" for recipe, way in CASES]
)
def test_a_recipe_works_in_its_framework(recipe: frameworks.Recipe, way: str) -> None:
    if not (frameworks.FOLDER / recipe.folder / ".packages").exists():
        pytest.skip("make frameworks sets the environments up")
    python = frameworks.environment(recipe, frameworks.FOLDER)
    found = frameworks.cells_of(recipe, way, python, frameworks.FOLDER)
    assert list(found) == list(frameworks.CELLS)
    assert {k: v for k, v in found.items() if v != "ok" and not v.startswith("limit: ")} == {}


def test_every_recipe_stands_in_the_page() -> None:
    page = frameworks.SHARED.PAGE.read_text("utf-8")
    headings = re.findall(r"^### (.*)$", page, re.M)
    for recipe in frameworks.FRAMEWORKS:
        section = page.partition(f"\n### {recipe.name}\n")[2].partition("\n### ")[0]
        blocks = re.findall(r"```(?:python|yaml)[^\n]*\n(.*?)```", section, re.S)
        assert len(blocks) == len(recipe.ways), recipe.name
        # Five lines beside the imports, an empty one and `register`.
        assert all(len(block.splitlines()) <= 10 for block in blocks), recipe.name
        assert recipe.name in headings


def test_the_table_of_the_page_has_no_failure() -> None:
    page = frameworks.SHARED.PAGE.read_text("utf-8")
    table = page.partition("<!-- measured: frameworks -->")[2].partition("<!-- end -->")[0]
    assert "fails" not in table
    for recipe in frameworks.FRAMEWORKS:
        for way in recipe.ways:
            assert f"| {recipe.name}, {way} |" in table
