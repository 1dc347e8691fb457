"""How long the workbench and its page take, in seconds: what Python makes, what a browser draws.

Run with `python benchmarks/views.py` (needs Chromium and playwright). A row is one text. `kernel`
is reading it and making the view, which is what a key costs there; `page` is the time from opening
the exported page to its last element, in headless Chromium. `static` is the size of the static HTML
by that of the text.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from playwright.sync_api import sync_playwright

import toolparse_lab as tp
from toolparse_lab.notebook.bench import Desk, setups_of
from toolparse_lab.views import render_result

TOOL = {
    "name": "set_timer",
    "parameters": {
        "type": "object",
        "properties": {"minutes": {"type": "integer"}, "label": {"type": "string"}},
    },
}
CALL = '<tool_call>{"name": "set_timer", "arguments": {"minutes": "5", "label": "tea"}}</tool_call>'
PROSE = "The timer is a matter of some minutes, and nobody hears it before it rings. "
TEXTS = {
    "10 KB, 20 calls": (PROSE * 5 + CALL) * 20,
    "1 MB, 1 call": PROSE * 13_000 + CALL,
    "1 MB, 12,500 calls": CALL * 12_500,
}
TIMES = 3
DRAWN = "document.querySelector('.pv.live') !== null"


def seconds(task: Callable[[], Any]) -> float:
    """The median of some runs."""
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        task()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("no Chromium here", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        print(
            f"{'text':<20} {'kernel':>7} {'message':>9} {'page':>6} {'elements':>9} {'static':>7}"
        )
        for name, text in TEXTS.items():
            (setup,) = setups_of(text, "hermes", [TOOL])
            desk = Desk([setup])
            edit = {"kind": "edit", "raw": text + " "}
            kernel = seconds(lambda desk=desk, edit=edit: desk.answer(edit))  # type: ignore[misc]
            message = len(json.dumps(desk.answer(edit)))
            target = tp.workbench(text, "hermes", [TOOL]).export_html(Path(folder) / "page.html")
            page = browser.new_page(viewport={"width": 1200, "height": 900})

            def load(page: Any = page, target: Path = target) -> None:
                page.goto(target.as_uri())
                page.wait_for_function(DRAWN)

            drawn = seconds(load)
            elements = page.evaluate("document.querySelectorAll('*').length")
            static = len(render_result(tp.parse(text, "hermes", [TOOL]))) / len(text)
            page.close()
            print(
                f"{name:<20} {kernel:7.3f} {message / 1000:7.0f}kB {drawn:6.2f} {elements:9,} "
                f"{static:6.1f}x"
            )
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
