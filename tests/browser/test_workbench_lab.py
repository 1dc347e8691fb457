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
    page.wait_for_function("document.querySelectorAll('[data-bench]').length === 3", timeout=90_000)
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


FIRST = "[data-bench] >> nth=0"


def test_the_text_is_changed_and_read_as_one_types(page: Page) -> None:
    bench = page.locator(FIRST)
    text = bench.get_by_label("Raw text")
    assert text.text_content() == TEXT
    text.fill(TEXT.replace("'5'", "7"))
    wait_for_text(page, "[data-bench] .tree", "minutes: 7")
    wait_for_text(page, "[data-bench] [data-part=status]", "Text changed")
    bench.get_by_label("Policy", exact=True).select_option("none")
    bench.get_by_label("Read as", exact=True).select_option("gemma")
    wait_for_text(page, "[data-bench] [data-part=calls]", "read as gemma")
    picture(page, "bench-edited")
    # Each of the three is taken back by itself, and the rest at once.
    bench.get_by_role("button", name="Undo").click()
    wait_for_text(page, "[data-bench] [data-part=calls]", "read as hermes")
    bench.get_by_role("button", name="As recorded").click()
    wait_for_text(page, "[data-bench] [data-part=status]", "Text as recorded")
    assert text.text_content() == TEXT


def test_tools_that_are_no_json_lose_nothing(page: Page) -> None:
    bench = page.locator(FIRST)
    bench.locator("summary", has_text="Tools").click()
    tools = bench.get_by_label("Tools as JSON")
    old = tools.input_value()
    tools.fill("[{")
    wait_for_text(page, "[data-bench] .alert", "the tools are not JSON")
    assert bench.locator(".tree [data-n]").count() > 0
    tools.fill(old.replace("integer", "string"))
    wait_for_text(page, "[data-bench] .tree", 'minutes: "5"')
    bench.get_by_role("button", name="As recorded").click()
    wait_for_text(page, "[data-bench] .tree", "minutes: 5")


def test_the_stages_by_keyboard(page: Page) -> None:
    bench = page.locator(FIRST)
    bench.get_by_role("tab", name="Raw").focus()
    for key, name, words in (
        ("2", "Repaired", "set_timer"),
        ("3", "Read", '"minutes": "5"'),
        ("4", "Coerced", '"minutes": 5'),
        ("5", "Checked", '"minutes": 5'),
    ):
        page.keyboard.press(key)
        assert name in (bench.locator("[data-tab][aria-selected=true]").text_content() or "")
        assert words in (bench.locator("[open] > .raw").text_content() or "")
    page.keyboard.press("1")
    page.keyboard.press("e")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Raw text"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "tab"


def test_the_stream_is_replayed(page: Page) -> None:
    bench = page.locator(FIRST)
    bench.locator("summary", has_text="As a stream").click()
    stream = "[data-bench] [data-part=stream]"
    wait_for_text(page, stream, "the end of the text")
    assert TEXT in (bench.locator("[data-part=stream] .raw").text_content() or "")
    slider = bench.get_by_role("slider", name="Chunk")
    slider.focus()
    page.keyboard.press("Home")
    wait_for_text(page, stream, "chunk 1 of")
    for _ in range(9):
        page.keyboard.press("ArrowRight")
    wait_for_text(page, stream, "chunk 10 of")
    assert bench.locator(".held").text_content() == "<tool_call"[: 10 - len("Sure.\n")]
    bench.get_by_label("Characters a chunk").fill("20")
    page.keyboard.press("Tab")
    wait_for_text(page, stream, "the end of the text")
    picture(page, "bench-stream")


def test_all_protocols_and_what_is_kept(page: Page) -> None:
    bench = page.locator(FIRST)
    bench.locator("summary", has_text="formats side by side").click()
    row = bench.locator("[data-part=compare] tr", has_text="yaml_xml").first
    row.wait_for()
    assert 'set_timer({"minutes":5' in (row.text_content() or "")
    bench.locator("summary", has_text="Keep it").click()
    bench.get_by_role("button", name="As a test").click()
    wait_for_text(page, "[data-bench] [data-part=keep]", "def test_answer")


def test_a_reading_is_chosen(page: Page) -> None:
    bench = page.locator("[data-bench] >> nth=1")
    after = bench.locator("[data-part=after]")
    assert "Nothing was chosen for you" in (after.text_content() or "")
    bench.get_by_role("button", name="Put this in the text").first.click()
    bench.get_by_text("✓ Can be executed").wait_for()
    bench.get_by_role("button", name="Undo").click()
    bench.get_by_text("✗ Cannot be executed").wait_for()


def test_from_one_failure_to_the_next(page: Page) -> None:
    bench = page.locator("[data-bench] >> nth=2")
    place = bench.locator(".num").first
    total = (place.text_content() or "").split(" of ")[1]
    bench.locator("[data-tab][aria-selected=true]").focus()
    page.keyboard.press("n")
    bench.get_by_text(f"2 of {total}").wait_for()
    assert "≠" in (bench.text_content() or "")
    bench.get_by_role("button", name="previous").click()
    bench.get_by_text(f"1 of {total}").wait_for()
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
    assert again.locator("[data-bench]").count() == 0
    # The line that Lab has for a view without a model is there, and nobody sees it.
    line = again.get_by_text("Error displaying widget").first
    line.wait_for(state="attached", timeout=60_000)
    assert not line.is_visible()
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
        page.wait_for_selector(".pv.live")
        page.keyboard.press("2")
        assert page.locator("[contenteditable], textarea, select").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        picture(page, f"bench-page-{scheme}")
        page.close()
    assert {url.split(":")[0] for url in requests} == {"file"}
    assert CHOICES[0] == "coerce"
