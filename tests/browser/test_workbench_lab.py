"""The workbench in JupyterLab itself: every action by mouse and by keyboard, and the view that is
left when a saved notebook is opened without its kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("anywidget", reason="the workbench needs the jupyter extra")

import toolparse_lab as tp
from tests.notebook.test_widgets_bench import AMBIGUOUS, PLOT, TEXT, TOOL
from toolparse_lab.notebook.bench.view import CHOICES

from .test_parse_view_lab import cell

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from .conftest import Lab

pytestmark = pytest.mark.browser
RUN = (
    "import tempfile\n"
    "from toolparse_lab.cli.demo import recording_plan\n"
    "lab = tp.Lab(tempfile.mkdtemp() + '/runs.db').replaying(tp.example_recording())\n"
    "failures = lab.run(recording_plan(lab), progress=False).failures()\n"
    "tp.workbench(failures)"
)


def notebook() -> str:
    cells = [
        cell(
            "import toolparse_lab as tp\n"
            f"bench = tp.workbench({TEXT!r}, 'hermes', {[TOOL]!r})\nbench"
        ),
        cell(f"tp.workbench({AMBIGUOUS!r}, 'hermes', {[PLOT]!r})"),
        cell(RUN),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    )


@pytest.fixture(scope="module")
def page(chromium: Browser, lab: Lab) -> Iterator[Page]:
    """The notebook, run: three workbenches are on the page."""
    (lab.folder / "bench.ipynb").write_text(notebook(), encoding="utf-8")
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(lab.notebook_url("bench.ipynb"))
    page.wait_for_function(
        "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === "
        "'idle'",
        timeout=90_000,
    )
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function("document.querySelectorAll('.tb').length === 3", timeout=90_000)
    yield page
    page.close()


def picture(page: Page, name: str) -> None:
    """A screenshot where somebody wants to look at it."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def wait_for_text(page: Page, selector: str, words: str) -> None:
    page.wait_for_function(
        "([selector, words]) => document.querySelector(selector)?.textContent.includes(words)",
        arg=[selector, words],
        timeout=15_000,
    )


FIRST = ".tb >> nth=0"


def test_the_text_is_changed_and_read_as_one_types(page: Page) -> None:
    bench = page.locator(FIRST)
    assert bench.get_by_label("Raw text", exact=False).first.input_value() == TEXT
    text = bench.locator("textarea").first
    text.fill(TEXT.replace("'5'", "7"))
    wait_for_text(page, ".tb .tb-sentence", "13 repairs")
    wait_for_text(page, ".tb .tb-changed", "“'5'” became “7”")
    page.wait_for_function(
        "document.querySelector('.tb .tp-row[data-path=\"/minutes\"] .tp-value').textContent === '7'"
    )
    bench.get_by_label("policy").select_option("none")
    wait_for_text(page, ".tb .tb-changed", "coerce: safe became none")
    bench.get_by_label("protocol").select_option("gemma")
    wait_for_text(page, ".tb .tp-badge[title=protocol]", "gemma")
    picture(page, "bench-edited")
    # Each of the three is taken back by itself, and the rest at once.
    bench.get_by_role("button", name="Undo").click()
    wait_for_text(page, ".tb .tp-badge[title=protocol]", "hermes")
    bench.get_by_role("button", name="Original").click()
    wait_for_text(page, ".tb .tb-changed", "As it was recorded")
    assert text.input_value() == TEXT


def test_tools_that_are_no_json_lose_nothing(page: Page) -> None:
    bench = page.locator(FIRST)
    bench.locator("summary", has_text="Tools (1)").click()
    tools = bench.get_by_label("Tools as JSON")
    old = tools.input_value()
    tools.fill("[{")
    wait_for_text(page, ".tb .tb-fault", "the tools are not JSON")
    assert bench.locator(".tp-row").count() > 0
    tools.fill(old.replace("integer", "string"))
    page.wait_for_function("document.querySelector('.tb .tb-fault').hidden")
    page.wait_for_function(
        "document.querySelector('.tb .tp-row[data-path=\"/minutes\"] .tp-value').textContent === '\"5\"'"
    )
    bench.get_by_role("button", name="Original").click()
    wait_for_text(page, ".tb .tb-changed", "As it was recorded")


def test_the_stages_by_keyboard(page: Page) -> None:
    bench = page.locator(FIRST)
    bench.get_by_role("tab", name="raw").first.focus()
    for key, name, words in (
        ("2", "segments", "Sure."),
        ("3", "repaired", "rjson.trailing-comma"),
        ("4", "decoded", '"minutes":"5"'),
        ("5", "coerced", "coerce.integer-from-string"),
        ("6", "validated", "repaired (lossless)"),
    ):
        page.keyboard.press(key)
        chosen = bench.locator(".tb-stages [aria-selected=true]")
        assert name in (chosen.text_content() or "")
        assert words in (bench.locator(".tb-lines").text_content() or "")
    page.keyboard.press("ArrowLeft")
    assert "coerced" in (bench.locator(".tb-stages [aria-selected=true]").text_content() or "")
    page.keyboard.press("e")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Raw text"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "tab"


def test_the_stream_is_replayed_without_the_kernel(page: Page) -> None:
    bench = page.locator(FIRST)
    bench.locator("summary", has_text="Stream").click()
    slider = bench.get_by_role("slider", name="Chunk")
    page.wait_for_function("Number(document.querySelector('.tb .tb-slider').max) > 50")
    slider.focus()
    page.keyboard.press("Home")
    assert (slider.get_attribute("aria-valuetext") or "").startswith("chunk 1 of")
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    assert bench.locator(".tb-held").text_content() == "<tool_call"[: 10 - len("Sure.\n")]
    assert "held back" in (bench.locator(".tb-events").text_content() or "")
    page.keyboard.press("End")
    assert (bench.locator(".tb-fed").text_content() or "") == TEXT
    bench.get_by_label("Characters a chunk", exact=False).fill("20")
    page.keyboard.press("Enter")
    page.wait_for_function("Number(document.querySelector('.tb .tb-slider').max) < 10")
    picture(page, "bench-stream")


def test_all_protocols_and_what_is_kept(page: Page) -> None:
    bench = page.locator(FIRST)
    bench.locator("summary", has_text="All protocols").click()
    row = bench.locator(".tb-compared tr", has_text="yaml_xml").first
    row.wait_for()
    assert 'set_timer({"minutes":5' in (row.text_content() or "")
    bench.locator("summary", has_text="Keep it").click()
    bench.get_by_role("button", name="as a pytest case").click()
    page.wait_for_function(
        "document.querySelectorAll('.tb .tb-keep textarea')[0].value.includes('def test_answer')"
    )


def test_a_reading_is_chosen(page: Page) -> None:
    bench = page.locator(".tb >> nth=1")
    assert "nothing was chosen for you" in (bench.locator(".tb-readings").text_content() or "")
    bench.get_by_role("button", name="Take this one").first.click()
    page.wait_for_function(
        "document.querySelectorAll('.tb')[1].querySelector('.tb-readings').hidden"
    )
    bench.get_by_role("button", name="Undo").click()
    page.wait_for_function(
        "!document.querySelectorAll('.tb')[1].querySelector('.tb-readings').hidden"
    )


def test_from_one_failure_to_the_next(page: Page) -> None:
    bench = page.locator(".tb >> nth=2")
    place = bench.locator(".tb-place")
    total = (place.text_content() or "").split(" of ")[1]
    bench.locator(".tb-stages [aria-selected=true]").focus()
    page.keyboard.press("n")
    page.wait_for_function(
        f"document.querySelectorAll('.tb')[2].querySelector('.tb-place').textContent === '2 of {total}'"
    )
    assert bench.locator(".tb-wanted th").all_text_contents() == ["wanted", "got", "difference"]
    bench.locator(".tb-stages [aria-selected=true]").focus()
    page.keyboard.press("p")
    page.wait_for_function(
        f"document.querySelectorAll('.tb')[2].querySelector('.tb-place').textContent === '1 of {total}'"
    )
    bench.locator("summary", has_text="What was asked").click()
    assert bench.locator(".tb-asked dt").count() >= 1
    picture(page, "bench-failures")


def test_a_saved_notebook_shows_the_static_view_without_its_kernel(
    page: Page, chromium: Browser, lab: Lab
) -> None:
    assert page.locator("[id^=toolparse-static]").first.is_hidden()
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function(
        "!window.jupyterapp.shell.currentWidget.context.model.dirty", timeout=20_000
    )
    saved = json.loads((lab.folder / "bench.ipynb").read_text("utf-8"))
    (lab.folder / "reopened.ipynb").write_text(json.dumps(saved), encoding="utf-8")
    again = chromium.new_page(viewport={"width": 1200, "height": 900})
    again.goto(lab.notebook_url("reopened.ipynb"))
    static = again.locator("[id^=toolparse-static], .toolparse-raw").first
    static.wait_for(timeout=60_000)
    assert static.is_visible()
    assert again.locator(".tb").count() == 0
    picture(again, "bench-reopened")
    again.close()


def test_a_page_from_disk_shows_all_and_changes_nothing(chromium: Browser, tmp_path: Path) -> None:
    target = tp.workbench(TEXT, "hermes", [TOOL]).export_html(tmp_path / "bench.html")
    requests: list[str] = []
    for scheme, width in (("light", 1200), ("dark", 400)):
        page = chromium.new_page(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page.on("request", lambda request: requests.append(request.url))
        page.goto(target.as_uri())
        page.locator("summary", has_text="Stream").click()
        page.wait_for_function("Number(document.querySelector('.tb-slider').max) > 0")
        page.get_by_role("slider", name="Chunk").focus()
        page.keyboard.press("Home")
        assert page.locator(".tb-later").text_content()
        assert page.get_by_label("protocol").is_disabled()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"bench-page-{scheme}")
        page.close()
    assert {url.split(":")[0] for url in requests} == {"file"}
    assert CHOICES[0] == "coerce"
