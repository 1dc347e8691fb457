"""The parse view and the workbench in JupyterLab itself, on one notebook: keys that stay in the view,
both themes, no foreign request, every action by mouse and by keyboard, and the view that is left when
a saved notebook is opened without its kernel.

Screenshots go to the test's temporary folder, or to SCREENSHOTS when that is set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import toolparse_lab as tp
from tests.render_samples import EXAMPLE, several
from tests.tools import tool_named
from toolparse_lab.core import hooks
from toolparse_lab.views.show import visible

pytest.importorskip("anywidget", reason="the parse view needs the jupyter extra")

from tests.notebook.test_widgets_bench import AMBIGUOUS, PLOT, TEXT, TOOL
from toolparse_lab.notebook import export_html
from toolparse_lab.notebook.bench.view import CHOICES

from .accessibility import CONTRAST

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from .conftest import Lab

pytestmark = pytest.mark.browser

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
WEATHER = [
    tool_named(
        "get_weather",
        city="string",
        days="integer",
        units={"enum": ["si", "us"]},
        hourly="boolean",
        fields={"type": "array", "items": {"type": "string"}},
    )
]
ANSWER = (
    "<think>Weather 😀 & news.</think>I will check.\n"
    '<tool_call>{"name": "get_weather", "arguments": {"city": "Zürich 😀", "days": "3", "units": '
    "'metric', "
    '"hourly": "true", "fields": ["wind", "rain\u202e\x1b[31m"],}}</tool_call>\n'
    '<tool_call>{"name": "nws", "arguments": {"topic": 5}}</tool_call> and <tool_call>{"name": '
    '"cut", "argum'
)


RUN = (
    "import tempfile\n"
    "from toolparse_lab.cli.demo import recording_plan\n"
    "lab = tp.Lab(tempfile.mkdtemp() + '/runs.db').replaying(tp.example_recording())\n"
    "failures = lab.run(recording_plan(lab), progress=False).failures()\n"
    "tp.workbench(failures)"
)
VIEW = ".tpx.widget"
FIRST = ".tpx.widget >> nth=0 >>"


def cell(source: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "id": f"cell-{abs(hash(source)) % 10**8}",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": source,
    }


def notebook() -> str:
    cells = [
        cell(
            "import toolparse_lab as tp\n\n"
            f"result = tp.parse({EXAMPLE!r}, 'hermes', tools={TOOLS!r})\nview = "
            "result.debug()\nview"
        ),
        cell("result"),
        cell(f"rich = tp.parse({ANSWER!r}, 'hermes', tools={WEATHER!r})\nrich.debug()"),
        cell("rich"),
        cell(f"tp.workbench({TEXT!r}, 'hermes', {[TOOL]!r})"),
        cell(f"tp.workbench({AMBIGUOUS!r}, 'hermes', {[PLOT]!r})"),
        cell(RUN),
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    )


@pytest.fixture(scope="module")
def page(chromium: Browser, lab: Lab) -> Iterator[Page]:
    """The notebook, run: its widgets are on the page, three workbenches last."""
    (lab.folder / "views.ipynb").write_text(notebook(), encoding="utf-8")
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(lab.notebook_url("views.ipynb"))
    page.wait_for_function(
        "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === "
        "'idle'",
        timeout=90_000,
    )
    # Awaiting the command would wait for ever if a dialog opened.
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_selector(f'{VIEW} .tree [data-p="/city"]', timeout=60_000)
    page.wait_for_function("document.querySelectorAll('[data-bench]').length === 3", timeout=90_000)
    page.evaluate("document.querySelector('.tpx.widget').scrollIntoView({block: 'center'})")
    yield page
    page.close()


ROW = f'{FIRST} .tree [data-p="/a"]'


def test_keys_stay_in_the_view(page: Page) -> None:
    """In command mode the same keys would make headings, move between cells and open the search of
    Lab."""
    cells = "window.jupyterapp.shell.currentWidget.content.model.toJSON().cells.map((c) => [c.cell_type, c.source])"
    index = "window.jupyterapp.shell.currentWidget.content.activeCellIndex"
    kinds = page.evaluate(cells)
    page.focus(ROW)
    active = page.evaluate(index)
    for key in ("4", "ArrowUp", "ArrowDown", "Enter", "Escape", "2"):
        page.keyboard.press(key)
    assert page.evaluate(cells) == kinds
    assert page.evaluate(index) == active
    assert page.text_content(f"{FIRST} [data-tab][aria-selected=true]") == "Repaired"
    page.keyboard.press("1")


def test_pin_and_stage_reach_the_kernel(page: Page) -> None:
    page.click(ROW)
    page.keyboard.press("4")
    for _ in range(
        20
    ):  # the widget sends one change at a time, so the second may still be on its way
        page.evaluate(
            """() => {
                const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                window.said = "";
                const future = kernel.requestExecute({ code: "print(view.pinned, view.stage)" });
                future.onIOPub = (m) => { if (m.header.msg_type === "stream") window.said += m.content.text; };
            }"""
        )
        page.wait_for_function("window.said.includes('\\n')", timeout=20_000)
        if page.evaluate("window.said") == "/a coerced\n":
            break
        page.wait_for_timeout(100)
    assert page.evaluate("window.said") == "/a coerced\n"
    page.keyboard.press("1")
    page.keyboard.press("Escape")


def test_static_view_stands_beside_it(page: Page) -> None:
    assert page.text_content(".toolparse-raw >> nth=0") == EXAMPLE
    assert page.locator("[id^=toolparse-static]").first.is_hidden()


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_both_themes(page: Page, theme: str, tmp_path: Path) -> None:
    """Text and ground differ enough in both themes, and the screenshots are there to be looked
    at."""
    page.evaluate(
        "theme => void window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
        theme,
    )
    page.wait_for_function(f"document.body.dataset.jpThemeName === '{theme}'", timeout=20_000)
    page.wait_for_timeout(800)
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    name = theme.split()[1].lower()
    page.evaluate("document.querySelector('.tpx.widget').scrollIntoView({block: 'center'})")
    page.hover(ROW)
    page.wait_for_timeout(200)
    page.screenshot(path=folder / f"lab-{name}-example.png")
    page.evaluate("document.querySelectorAll('.tpx.widget')[1].scrollIntoView({block: 'center'})")
    page.hover(f'{VIEW} .tree [data-p="/city"]')
    page.wait_for_timeout(200)
    page.screenshot(path=folder / f"lab-{name}-rich.png")
    page.evaluate("[...document.querySelectorAll('.tpx')].at(-1).scrollIntoView({block: 'start'})")
    page.wait_for_timeout(200)
    page.screenshot(path=folder / f"lab-{name}-static.png")
    for selector in (".tree [data-p]", ".notes .soft", ".toolparse-raw", ".tree .at"):
        assert page.evaluate(CONTRAST, selector) >= 4.5, selector


def test_nothing_is_asked_of_another_host(page: Page, lab: Lab) -> None:
    foreign = page.evaluate(
        "performance.getEntriesByType('resource').map((e) => e.name).filter((n) => "
        "!n.startsWith(location.origin)"
        " && !n.startsWith('data:') && !n.startsWith('blob:'))"
    )
    assert foreign == []


def test_stored_output_reads_without_a_kernel(chromium: Browser, lab: Lab) -> None:
    """An untrusted notebook loses style sheets, ids and data attributes; the static view needs none
    of them."""
    result = several()
    output = {
        "output_type": "execute_result",
        "execution_count": 1,
        "metadata": {},
        "data": hooks.mimebundle(result),
    }
    stored = {**cell("result"), "outputs": [output], "execution_count": 1}
    (lab.folder / "stored.ipynb").write_text(
        json.dumps({"cells": [stored], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}),
        encoding="utf-8",
    )
    page = chromium.new_page()
    page.goto(lab.notebook_url("stored.ipynb"))
    page.wait_for_selector(".toolparse-raw", timeout=60_000)
    assert page.text_content(".toolparse-raw") == visible(result.raw)
    kept = page.evaluate(
        """() => {
            const box = document.querySelector(".toolparse-raw");
            const mark = box.querySelector(".k-name");
            const style = getComputedStyle(mark);
            if (style.color !== getComputedStyle(box).color) return ["the text has lost its colour", style.color];
            return [style.backgroundColor, style.borderBottomStyle, mark.title];
        }"""
    )
    assert kept == [
        "rgba(0, 114, 178, 0.26)",
        "solid",
        "tool name get_weather · characters 67 to 78",
    ]
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / "lab-untrusted.png")
    page.close()


def test_many_marks_are_shown_in_time(chromium: Browser, tmp_path: Path) -> None:
    """As many arguments as are drawn, and 250 KB of text: drawn and answering a hover, all of it in the browser."""
    arguments = ", ".join(f'"key_{i}": "{"x" * 100}"' for i in range(2_200))
    raw = f'<tool_call>{{"name": "f", "arguments": {{{arguments}}}}}</tool_call>'
    page = chromium.new_page()
    page.goto(export_html(tp.parse(raw, "hermes"), tmp_path / "many.html").as_uri())
    page.wait_for_selector(".tree [data-p] >> nth=1150", timeout=20_000)
    took = page.evaluate(
        """() => {
            const row = document.querySelectorAll(".tree [data-p]")[900];
            const start = performance.now();
            row.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
            document.body.getBoundingClientRect();
            return performance.now() - start;
        }"""
    )
    assert page.locator("[open] > .raw .lit").text_content() == "x" * 100
    assert took < 500, "milliseconds for one hover"
    assert page.locator(".notes p").count() >= 1
    page.close()


# The workbenches of the same notebook.


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


BENCH = "[data-bench] >> nth=0"


def test_the_text_is_changed_and_read_as_one_types(page: Page) -> None:
    bench = page.locator(BENCH)
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
    bench = page.locator(BENCH)
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
    bench = page.locator(BENCH)
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
    bench = page.locator(BENCH)
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
    bench = page.locator(BENCH)
    bench.locator("summary", has_text="formats side by side").click()
    row = bench.locator("[data-part=compare] tr", has_text="yaml_xml").first
    row.wait_for()
    assert 'set_timer({"minutes":5' in (row.text_content() or "")
    bench.locator("summary", has_text="Keep it").click()
    bench.get_by_role("button", name="As a test").click()
    wait_for_text(page, "[data-bench] [data-part=keep]", "def test_answer")


def test_a_reading_is_chosen(page: Page) -> None:
    bench = page.locator("[data-bench] >> nth=1")
    assert (bench.text_content() or "").count("Nothing was chosen for you") == 1
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
    saved = json.loads((lab.folder / "views.ipynb").read_text("utf-8"))
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
