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
  on: (name, listener) => listeners.add(listener),
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
    page.expose_function(
        "traits", lambda: {"_first": browser._first, "_view_source": browser._view_source}
    )
    sent: list[Any] = []
    browser.send = lambda content, buffers=None: sent.append(content)

    def answer(message: Any) -> Any:
        browser._on_message(browser, message, None)
        return json.loads(json.dumps(sent.pop()))

    page.expose_function("answer", answer)
    css = browser._css
    source = json.dumps(browser._esm).replace("<", "\\u003c")
    path = folder / "host.html"
    path.write_text(HOST.replace("CSS", css).replace("SOURCE", source), encoding="utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector(".tpb-row")
    return path


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": 900, "height": 900})
    yield page
    page.close()


def test_by_keyboard_and_by_mouse(page: Page, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows([TEXTS[i // 4 % 3] for i in range(120)]))
        browser = run.browse()
        watch = Watch(page)
        host(page, browser, tmp_path)
        status = page.locator(".tpb-status")
        assert status.text_content() == "120 trials, 100 failures"
        page.get_by_label("fold equal causes").uncheck()
        page.wait_for_function("document.querySelectorAll('.tpb-row').length === 50")
        assert page.locator(".tpb-row").count() == 50
        mark = page.locator(".tpb-row mark").first
        assert mark.text_content() == "seven"

        # By keyboard: a cell of the heatmap, its trials, one of them, and the next failures.
        page.locator(".tpb-cell").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_function(
            "document.querySelector('.tpb-status').textContent.startsWith('30 ')"
        )
        assert page.locator('.tpb-cell[aria-pressed="true"]').count() == 1
        assert page.evaluate("document.activeElement.className") == "tpb-cell"
        page.locator(".tpb-list").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector(".tpb-detail .tp")
        first = browser.trial_id
        assert browser.trial.trial_id == first
        page.keyboard.press("n")
        page.wait_for_function(
            f"!document.querySelector('.tpb-hidden[role=status]').textContent.includes('{first}')"
        )
        second = browser.trial_id
        assert second != first
        page.keyboard.press("p")
        page.wait_for_function(
            f"document.querySelector('.tpb-hidden[role=status]').textContent.includes('{first}')"
        )
        page.keyboard.press("/")
        page.keyboard.type("no call at")
        page.wait_for_function(
            "document.querySelector('.tpb-status').textContent.startsWith('10 ')"
        )
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        assert page.locator(".tpb-open").count() == 0

        # By mouse: the cell again lets it go; filters; another heatmap; paging by scrolling.
        page.locator('.tpb-cell[aria-pressed="true"]').click()
        page.wait_for_function(
            "document.querySelector('.tpb-status').textContent.startsWith('40 ')"
        )
        page.get_by_label("text", exact=True).fill("")
        page.wait_for_function(
            "document.querySelector('.tpb-status').textContent.startsWith('120 ')"
        )
        page.get_by_text("more filters").click()
        page.get_by_label("failures only").check()
        page.wait_for_function(
            "document.querySelector('.tpb-status').textContent.startsWith('100 ')"
        )
        page.get_by_role("combobox", name="outcome", exact=True).select_option("wrong_call")
        page.wait_for_function(
            "document.querySelector('.tpb-status').textContent.startsWith('20 ')"
        )
        page.get_by_role("combobox", name="outcome", exact=True).select_option("")
        page.wait_for_function(
            "document.querySelector('.tpb-status').textContent.startsWith('100 ')"
        )
        page.locator(".tpb-list").evaluate("e => e.scrollTo(0, e.scrollHeight)")
        page.wait_for_function("document.querySelectorAll('.tpb-row').length === 100")
        page.get_by_role("combobox", name="rows", exact=True).select_option("category")
        page.wait_for_function("document.querySelectorAll('.tpb-map tbody tr').length === 3")
        assert watch.noise == []


def test_the_workbench_beside_the_list(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 1400, "height": 1000})
    with tp.Lab(tmp_path / "runs.db") as lab:
        browser = lab.ingest(rows([TEXTS[1]] * 3)).browse()
        watch = Watch(page)
        path = host(page, browser, tmp_path)
        page.get_by_label("fold equal causes").uncheck()
        page.locator(".tpb-row").nth(2).wait_for()
        page.locator(".tpb-list").focus()
        page.keyboard.press("w")
        field = page.get_by_label("Raw text")
        field.wait_for()
        first = browser.trial_id
        assert page.get_by_role("button", name="workbench (w)").get_attribute("aria-pressed") == (
            "true"
        )
        # Typing is for the workbench alone: no letter of the text is a key of the list.
        field.fill(TEXTS[0])
        page.wait_for_function(
            "document.querySelector('.tpb-detail').textContent.includes('1 executable')"
        )
        field.press("End")
        field.press_sequentially(" nwp/")
        assert browser.trial_id == first
        page.screenshot(path=tmp_path / "bench.png", full_page=True)

        # The next failure comes on the workbench too, as it was recorded, and w goes back.
        page.keyboard.press("Escape")
        page.keyboard.press("n")
        page.wait_for_function(
            f"document.querySelector('[aria-label=\"Raw text\"]').value === {json.dumps(TEXTS[1])}"
        )
        assert browser.trial_id != first
        page.locator(".tpb-list").focus()
        page.keyboard.press("w")
        page.wait_for_selector(".tpb-detail .tp:not(.tb)")
        assert page.locator(".tb").count() == 0
        # The front end's own modules come from its memory.
        assert [url for url in watch.requests if not url.startswith("blob:")] == [path.as_uri()]


def test_remarks_are_written_in_the_browser(page: Page, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows([TEXTS[1]] * 4))
        host(page, run.browse(), tmp_path)
        page.locator(".tpb-row").first.click()
        page.wait_for_selector(".tpb-detail .tp")
        page.get_by_label("note", exact=True).fill("<b>seven</b> is a number")
        page.get_by_text("keep note").click()
        page.get_by_text("note: <b>seven</b> is a number").wait_for()
        page.get_by_role("combobox", name="outcome by hand").select_option("correct")
        page.get_by_label("why", exact=True).fill("close enough")
        page.get_by_text("set outcome").click()
        page.get_by_text("by hand: correct").wait_for()
        remarks = [trial.remarks for trial in run.trials() if trial.remarks.note]
    assert [(r.note, r.outcome, r.why) for r in remarks] == [
        ("<b>seven</b> is a number", "correct", "close enough")
    ]


@pytest.mark.parametrize("width", [900, 360])
def test_hostile_trials_are_only_shown(width: int, page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    texts = list(HOSTILE.values())
    texts += [
        f"{text}{i}{TEXTS[1]}" for i in range(200 // len(texts) + 1) for text in HOSTILE.values()
    ]
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows([text.replace("\ud800", "") for text in texts[:200]], texts[0]))
        browser = run.browse("category", "model")
        watch = Watch(page)
        path = host(page, browser, tmp_path)
        page.get_by_label("fold equal causes").uncheck()
        page.locator(".tpb-row").nth(49).wait_for()
        for row in (0, 7, 20, 49):
            page.locator(".tpb-row").nth(row).click()
            page.wait_for_selector(".tpb-detail .tp")
        page.wait_for_timeout(50)
        assert [url for url in watch.requests if not url.startswith("blob:")] == [path.as_uri()]
        assert watch.noise == []
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        static = tmp_path / "static.html"
        static.write_text(render_page("Trials", browser.static_html()), encoding="utf-8")
        watch.open(static)
        watch.check(static)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
