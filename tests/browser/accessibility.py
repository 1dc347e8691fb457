"""axe-core on a page, from the package that brings it along: axe-playwright-python."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

CONTRAST = """(selector) => {
    const channels = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const element = document.querySelector(selector);
    const ink = channels(getComputedStyle(element).color);
    let ground = null;
    for (let e = element; e; e = e.parentElement) {
        const colour = channels(getComputedStyle(e).backgroundColor);
        if (colour.length === 3) { ground = colour; break; }
    }
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
}"""
"""The contrast of an element's text and the ground below it, as WCAG defines it."""
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
