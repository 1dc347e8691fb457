"""Take the pictures of the parse view and of the workbench in README and docs.

Run python scripts/picture.py. It needs Chromium and playwright.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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

        with _opened(Path(folder)) as address:
            page = browser.new_page(viewport={"width": 1180, "height": 960}, device_scale_factor=2)
            page.goto(address)
            # The first parse of a process also loads what parses.
            page.get_by_label("recover").uncheck()
            page.get_by_role("button", name="As recorded").click()
            page.locator('[name="recover"]:checked').wait_for()
            page.locator("summary", has_text="As a stream").click()
            page.get_by_role("spinbutton", name="Characters a chunk").fill("1")
            page.locator('[data-part="stream"][data-last]').wait_for()
            chunk = page.get_by_role("slider", name="Chunk")
            chunk.fill("120")
            page.get_by_text("chunk 121 of").wait_for()
            page.screenshot(path=str(IMAGES / "workbench.png"))
        browser.close()
    for image in (TARGET, DARK, IMAGES / "workbench.png"):
        print(image.relative_to(Path.cwd()) if image.is_relative_to(Path.cwd()) else image)
    return 0


@contextmanager
def _opened(folder: Path) -> Iterator[str]:
    """The address of the same answer on the workbench."""
    (folder / "answer.txt").write_text(RAW, encoding="utf-8")
    (folder / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    words = ["open", "answer.txt", "--protocol", "hermes", "--tools", "tools.json", "--no-browser"]
    server = subprocess.Popen(  # noqa: S603 - this package itself
        [sys.executable, "-m", "toolparse_lab.cli", *words],
        cwd=folder, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        line = server.stdout.readline() if server.stdout else ""
        yield line[line.index("http://") :].split()[0]
    finally:
        server.terminate()
        server.wait()


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
