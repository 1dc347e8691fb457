"""The parse view in JupyterLab itself: two-way links, keys that stay in the view, both themes, no
foreign request.

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

from toolparse_lab.notebook import export_html

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
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    )


@pytest.fixture(scope="module")
def page(chromium: Browser, lab: Lab) -> Iterator[Page]:
    """The notebook, run: its widgets are on the page."""
    (lab.folder / "parse.ipynb").write_text(notebook(), encoding="utf-8")
    page = chromium.new_page(viewport={"width": 1400, "height": 1000})
    page.goto(lab.notebook_url("parse.ipynb"))
    page.wait_for_function(
        "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === "
        "'idle'",
        timeout=90_000,
    )
    # Awaiting the command would wait for ever if a dialog opened.
    page.evaluate("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_selector(
        ".jp-Cell:nth-of-type(4) .toolparse-raw, .toolparse-raw >> nth=5", timeout=90_000
    )
    page.wait_for_selector(f'{VIEW} .tree [data-p="/city"]', timeout=60_000)
    page.evaluate("document.querySelector('.tpx.widget').scrollIntoView({block: 'center'})")
    yield page
    page.close()


def lit_text(page: Page) -> str:
    return "".join(page.locator(f"{FIRST} [open] > .raw .lit").all_text_contents())


def lit_rows(page: Page) -> list[str | None]:
    return [r.get_attribute("data-p") for r in page.locator(f"{FIRST} .tree .lit").all()]


def away(page: Page) -> None:
    page.locator(f"{FIRST} .pv-h >> nth=1").hover()


ROW = f'{FIRST} .tree [data-p="/a"]'


def test_hovering_the_tree_lights_exactly_the_character(page: Page) -> None:
    away(page)
    page.hover(ROW)
    assert lit_text(page) == "1"
    before = page.locator(f"{FIRST} .toolparse-raw").evaluate(
        "pane => { const lit = pane.querySelector('.lit'); const range = document.createRange();"
        " range.setStart(pane, 0); range.setEndBefore(lit); return range.toString(); }"
    )
    assert before == EXAMPLE[: EXAMPLE.index('1"')]
    away(page)
    assert lit_text(page) == ""


def test_hovering_the_text_lights_exactly_the_argument(page: Page) -> None:
    away(page)
    page.locator(f"{FIRST} .toolparse-raw .k-coerced").hover()
    assert lit_rows(page) == ["/a"]
    assert lit_text(page) == "1"
    away(page)
    assert lit_rows(page) == []


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


CONTRAST = """(selector) => {
    const channels = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const element = document.querySelector(selector);
    const ink = channels(getComputedStyle(element).color);
    let ground = null;
    for (let e = element; e; e = e.parentElement) {
        const colour = channels(getComputedStyle(e).backgroundColor);
        if (colour.length === 3) { ground = colour; break; }
    }
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
}"""


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
