"""The browser of trials by mouse and by keyboard, and 200 hostile trials in it: nothing runs, nothing
is requested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.test_hostile_pages import Watch
from tests.render_samples import HOSTILE
from tests.tools import tool_named

pytest.importorskip("anywidget", reason="the browser needs the jupyter extra")
pytest.importorskip("litellm", reason="runs need the lab extra")

import toolparse_lab as tp
from toolparse_lab.notebook.browser import Browser
from toolparse_lab.views import render_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser as Chromium
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TOOL = tool_named("f", required=["x"], x="integer")
TEXTS = (
    '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>',
    '<tool_call>{"name": "f", "arguments": {"x": "seven"}}</tool_call>',
    "no call at all",
)
HOST = """
<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"><style>CSS</style>
<div id="view"></div><script type="module">
const listeners = new Set();
window.deliver = (message) => listeners.forEach((listener) => listener(message));
const source = SOURCE;
const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
const traits = await window.traits();
module.default.render({ el: document.getElementById("view"), model: {
  get: (name) => traits[name],
  send: (message) => window.answer(message).then(window.deliver),
  on: (name, listener) => name === "msg:custom" && listeners.add(listener),
  off: (name, listener) => listeners.delete(listener),
} });
</script>
"""


def rows(texts: list[str], question: str = "ask") -> list[dict[str, Any]]:
    return [
        {
            "id": f"c{i}",
            "input": f"{question} {i}",
            "tools": [TOOL],
            "target": [{"name": "f", "arguments": {"x": 1}}],
            "raw": text,
            "model": f"m{i % 2}",
            "protocol": ("hermes", "morph-xml")[i // 2 % 2],
            "metadata": {"category": text},
        }
        for i, text in enumerate(texts)
    ]


def host(page: Page, browser: Browser, folder: Path) -> Path:
    """Open a page that stands for a notebook: the front end, with this widget behind it."""
    page.expose_function("traits", lambda: {"_html": browser._html, "_static": browser._static})
    sent: list[Any] = []
    browser.send = lambda content, buffers=None: sent.append(content)

    def answer(message: Any) -> Any:
        browser._handle_custom_msg(message, None)
        return json.loads(json.dumps(sent.pop()))

    page.expose_function("answer", answer)
    css = browser._css
    source = json.dumps(browser._esm).replace("<", "\\u003c")
    path = folder / "host.html"
    path.write_text(HOST.replace("CSS", css).replace("SOURCE", source), encoding="utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector(".item")
    return path


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": 900, "height": 900})
    yield page
    page.close()


def shown(page: Page, words: str) -> None:
    """Wait until so many answers are said to be shown."""
    page.wait_for_function(
        "w => document.querySelector('[data-part=shown]').textContent === w", arg=words
    )


def test_by_keyboard_and_by_mouse(page: Page, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows([TEXTS[i // 4 % 3] for i in range(120)]))
        browser = run.browse()
        watch = Watch(page)
        host(page, browser, tmp_path)
        assert page.inner_text(".say b") == "100 of 120 answers are wrong"
        assert page.locator(".item mark").all_text_contents()[:3] == ["seven"] * 3

        # By keyboard: a cell of the shares, its answers, and one of them.
        page.locator(".cell").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        shown(page, "30 of 120 answers")
        assert page.locator('.cell[aria-pressed="true"]').count() == 1
        # A filter recomputes no rate.
        assert "10 of 30" in page.locator('.cell[aria-pressed="true"]').inner_text()
        page.locator(".list").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector(".detail .pv")
        first = browser.trial_id
        assert browser.trial.trial_id == first
        assert page.locator(".detail .num").first.inner_text().startswith("1 of ")
        page.keyboard.press("Escape")
        page.wait_for_function("!document.querySelector('.opened')")
        page.keyboard.press("/")
        page.keyboard.type("no call at")
        shown(page, "10 of 120 answers")

        # By mouse: what is filtered is taken away; a cause; more of it; another axis.
        page.get_by_role("button", name="take away text").click()
        shown(page, "30 of 120 answers")
        page.locator('.cell[aria-pressed="true"]').click()
        shown(page, "120 answers")
        chip = page.locator(".chips .chip").first
        count = int(chip.locator("b").inner_text())
        chip.click()
        shown(page, f"{count} of 120 answers")
        assert page.locator(".item").count() == min(count, 50)
        chip.click()
        shown(page, "120 answers")
        page.locator(".more").first.click()
        page.wait_for_function("document.querySelectorAll('.item').length > 9")
        page.get_by_label("rows", exact=True).select_option("category")
        page.wait_for_function("document.querySelectorAll('.heat tbody tr').length === 3")
        assert watch.noise == []


def test_hostile_trials_are_only_shown(page: Page, tmp_path: Path) -> None:
    texts = list(HOSTILE.values())
    texts += [
        f"{text}{i}{TEXTS[1]}" for i in range(200 // len(texts) + 1) for text in HOSTILE.values()
    ]
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows([text.replace("\ud800", "") for text in texts[:200]], texts[0]))
        browser = run.browse("category", "model")
        watch = Watch(page)
        path = host(page, browser, tmp_path)
        count = page.locator(".item").count()
        for row in range(0, count, max(1, count // 4)):
            page.locator(".item").nth(row).dispatch_event("click")
            page.wait_for_selector(".detail .pv")
            page.wait_for_timeout(50)
        page.wait_for_timeout(50)
        assert [url for url in watch.requests if not url.startswith("blob:")] == [path.as_uri()]
        assert watch.noise == []
        assert page.evaluate("window.pwned") is None
        fits(page)
        static = tmp_path / "static.html"
        static.write_text(render_page("Trials", browser.static_html()), encoding="utf-8")
        watch.open(static)
        watch.check(static)
        fits(page)


def fits(page: Page) -> None:
    """Neither a window nor a phone scrolls to the side."""
    for width in (900, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
