"""Takes the picture of the parse view that the README shows: python docs/picture.py (needs Chromium
and playwright)."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import toolparse_lab as tp
from toolparse_lab.widgets import export_html

TARGET = Path(__file__).parent / "images" / "parse-view.png"
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
        page = browser.new_page(viewport={"width": 1180, "height": 620}, device_scale_factor=2)
        page.goto(page_file.resolve().as_uri())
        page.get_by_role("treeitem").filter(has_text="guests").last.hover()
        page.screenshot(path=str(TARGET), clip=_box(page))
        browser.close()
    print(TARGET.relative_to(Path.cwd()) if TARGET.is_relative_to(Path.cwd()) else TARGET)
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
