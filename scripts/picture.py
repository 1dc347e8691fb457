"""Take the pictures of the parse view and of the workbench in README and docs.

Run python scripts/picture.py. It needs Chromium and playwright.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import toolparse_lab as tp
from toolparse_lab.notebook import export_html

IMAGES = Path(__file__).parents[1] / "docs" / "images"
TARGET = IMAGES / "parse-view.png"
DARK = IMAGES / "parse-view-dark.png"
TOOLS = [
    {
        "name": "book_table",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "guests": {"type": "integer"},
                "days": {"type": "array", "items": {"type": "string"}},
            },
        },
    }
]
RAW = """<think>Dinner for four, then. 🍝</think>I will book it.
<tool_call>
{"name": "book_table", 'arguments': {"city": "Bergen", "guests": "4", \
"days": ["Friday", "Saturday",]}}
</tool_call>"""


def main() -> int:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium here", file=sys.stderr)
        return 2
    TARGET.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = export_html(tp.parse(RAW, "hermes", TOOLS), Path(folder) / "view.html")
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for target, scheme in ((TARGET, "light"), (DARK, "dark")):
            page = browser.new_page(
                viewport={"width": 1180, "height": 620}, device_scale_factor=2, color_scheme=scheme
            )
            page.goto(page_file.resolve().as_uri())
            page.get_by_role("treeitem").filter(has_text="guests").last.hover()
            page.screenshot(path=str(target), clip=_box(page))
            page.close()

        bench = tp.workbench(RAW, "hermes", TOOLS).export_html(Path(folder) / "bench.html")
        page = browser.new_page(viewport={"width": 1180, "height": 1300}, device_scale_factor=2)
        page.goto(bench.resolve().as_uri())
        page.get_by_role("tab", name="repaired").first.click()
        page.locator("summary", has_text="Stream").click()
        page.get_by_role("slider", name="Chunk").focus()
        page.keyboard.press("Home")
        for _ in range(70):
            page.keyboard.press("ArrowRight")
        page.screenshot(path=str(IMAGES / "workbench.png"), clip=_box(page))
        browser.close()
    for image in (TARGET, DARK, IMAGES / "workbench.png"):
        print(image.relative_to(Path.cwd()) if image.is_relative_to(Path.cwd()) else image)
    return 0


def _box(page: object) -> dict[str, float]:
    """The view itself, with a little room around it."""
    box = page.locator("[class*=tp]").first.bounding_box()  # type: ignore[attr-defined]  # playwright is imported late
    pad = 8
    return {
        "x": max(0, box["x"] - pad),
        "y": max(0, box["y"] - pad),
        "width": box["width"] + 2 * pad,
        "height": box["height"] + 2 * pad,
    }


if __name__ == "__main__":
    sys.exit(main())
