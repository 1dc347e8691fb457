"""axe-core on a page, from the package that brings it along: axe-playwright-python."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

_SERIOUS = ("serious", "critical")


@lru_cache(maxsize=1)
def _source() -> str:
    pytest.importorskip("axe_playwright_python", reason="pip install axe-playwright-python")
    return (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


def serious_faults(page: Page, within: str = "html") -> list[Any]:
    """The rule, the elements and the words of each serious fault inside the elements of a
    selector."""
    page.evaluate(_source())
    violations = page.evaluate("(within) => axe.run(within).then((r) => r.violations)", within)
    return [
        (violation["id"], node["target"], node["failureSummary"])
        for violation in violations
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]
