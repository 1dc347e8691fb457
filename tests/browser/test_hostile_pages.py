"""Hostile model text in a real browser: nothing is executed, nothing is requested, all of it is
shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.render_samples import HOSTILE, example, hostile, plain, several
from toolparse_lab.views import render_page, render_result
from toolparse_lab.views.show import visible

pytest.importorskip("anywidget", reason="the parse view needs the jupyter extra")

from toolparse_lab.notebook import export_html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

pytestmark = pytest.mark.browser


class Watch:
    """A page that remembers every request, dialog and error."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.noise: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self.refuse)
        page.on("pageerror", lambda error: self.noise.append(str(error)))
        page.on(
            "console",
            lambda message: self.noise.append(message.text) if message.type == "error" else None,
        )

    def refuse(self, dialog: Dialog) -> None:
        self.noise.append(dialog.message)
        dialog.dismiss()

    def open(self, path: Path) -> None:
        self.requests.clear()
        self.noise.clear()
        self.page.goto(path.as_uri())

    def check(self, path: Path) -> None:
        self.page.wait_for_timeout(50)
        assert self.requests == [path.as_uri()]
        assert self.noise == []
        assert self.page.evaluate("window.pwned") is None


@pytest.fixture(scope="module")
def watch(chromium: Browser) -> Any:
    page = chromium.new_page()
    yield Watch(page)
    page.close()


@pytest.mark.parametrize(
    "text", [*HOSTILE.values(), HOSTILE["onerror"] * 3_000], ids=[*HOSTILE, "200 KB"]
)
def test_static_view_runs_nothing(text: str, watch: Watch, tmp_path: Path) -> None:
    """Without a Content-Security-Policy, so that escaping alone has to hold."""
    result = hostile(text)
    path = tmp_path / "bare.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{render_result(result)}", encoding="utf-8")
    watch.open(path)
    watch.check(path)
    if len(result.raw) < 100_000:
        assert watch.page.text_content(".toolparse-raw") == visible(result.raw)
    assert (
        watch.page.evaluate("document.querySelectorAll('script, img, iframe, a, svg, link').length")
        == 0
    )


@pytest.mark.parametrize(
    "text", [*HOSTILE.values(), HOSTILE["script"] * 6_000], ids=[*HOSTILE, "200 KB"]
)
def test_exported_view_runs_nothing_of_the_model(text: str, watch: Watch, tmp_path: Path) -> None:
    result = hostile(text) if len(text) < 100_000 else plain(text)
    path = export_html(result, tmp_path / "export.html", title=text[:200])
    watch.open(path)
    watch.page.wait_for_selector(".pv.live")
    watch.page.focus(".toolparse-raw")
    for key in ("1", "2", "3", "4", "1"):
        watch.page.keyboard.press(key)
    watch.check(path)
    assert watch.page.text_content(".toolparse-raw") == visible(result.raw)
    assert watch.page.evaluate("document.querySelectorAll('img, iframe, a, svg, link').length") == 0


def test_a_page_runs_nothing_even_unescaped(watch: Watch, tmp_path: Path) -> None:
    """The second wall: the page's policy blocks what a mistake in escaping would let in."""
    path = tmp_path / "page.html"
    path.write_text(
        render_page("x", "".join(HOSTILE[k] for k in ("script", "onerror", "svg"))),
        encoding="utf-8",
    )
    watch.open(path)
    watch.page.wait_for_timeout(100)
    assert watch.page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in line for line in watch.noise)


def lit(page: Page) -> str:
    return "".join(page.locator("[open] > .raw .lit").all_text_contents())


def rows(page: Page) -> list[str | None]:
    return [row.get_attribute("data-p") for row in page.locator(".tree .lit").all()]


def test_every_argument_is_linked_both_ways(watch: Watch, tmp_path: Path) -> None:
    page = watch.page
    page.set_viewport_size({"width": 1200, "height": 900})
    watch.open(export_html(several(), tmp_path / "several.html"))
    expected = {
        "/city": "Zürich 😀",
        "/days": "3",
        "/units": "metric",
        "/options/hourly": "true",
        "/options/fields/0": "wind",
        "/options/fields/1": "rain⟨202E⟩⟨ESC⟩[31m",
        "/topic": "5",
    }
    for path, text in expected.items():
        page.hover(f'.tree [data-p="{path}"]')
        assert lit(page) == text
        page.hover("h1")
        assert lit(page) == ""
        node = page.get_attribute(f'.tree [data-p="{path}"]', "data-n")
        page.locator(f'[open] > .raw [data-n~="{node}"]').first.hover()
        assert rows(page) == [path]
        assert lit(page) == text
        page.hover("h1")
    page.hover('.tree [data-p="/options"]')
    assert lit(page) == "truewindrain⟨202E⟩⟨ESC⟩[31m", "a container lights what it holds"


def test_keyboard_alone_reaches_everything(watch: Watch, tmp_path: Path) -> None:
    page = watch.page
    watch.open(export_html(example(), tmp_path / "keys.html"))
    page.focus(".toolparse-raw")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.p") == "/a"
    assert lit(page) == "1"
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.locator('.tree [data-p="/a"].pinned').wait_for()
    page.keyboard.press("3")
    assert page.get_attribute("[data-tab][aria-selected=true]", "data-tab") == "decoded"
    assert page.text_content("[open] > .raw") == 'f {\n  "a": "1"\n}'
    page.keyboard.press("Escape")
    assert page.locator(".pinned").count() == 0
    page.focus("[data-tab][aria-selected=true]")
    page.keyboard.press("ArrowLeft")
    assert page.get_attribute("[data-tab][aria-selected=true]", "data-tab") == "repaired"
    page.focus(".notes [data-n]")
    assert "," in lit(page), "a change lights its characters"
