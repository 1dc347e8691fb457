"""What axe-core finds in every view, in light and dark: nothing serious."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.browser.accessibility import serious_faults
from tests.render_samples import several

pytest.importorskip("anywidget", reason="the views need the jupyter extra")
pytest.importorskip("litellm", reason="runs need the lab extra")

import toolparse_lab as tp
from tests.browser.test_browser import TEXTS, host, rows
from tests.notebook.test_widgets_bench import AMBIGUOUS, PLOT, TEXT, TOOL
from toolparse_lab.experiments.run import Run
from toolparse_lab.notebook import CoercionDiff, export_html
from toolparse_lab.views import render_page, render_result

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
Scheme = Literal["light", "dark"]


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> Scheme:
    chosen: Scheme = request.param
    return chosen


@pytest.fixture
def page(chromium: Browser, scheme: Scheme) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": 1200, "height": 900}, color_scheme=scheme)
    yield page
    page.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    with tp.Lab(tmp_path_factory.mktemp("store") / "runs.db") as lab:
        yield lab.ingest(rows([TEXTS[i // 4 % 3] for i in range(12)]))


@pytest.mark.exhaustive(2)
def test_the_parse_view(page: Page, tmp_path: Path) -> None:
    page.goto(export_html(several(), tmp_path / "view.html").as_uri())
    page.focus(".toolparse-raw")
    for stage in "1234":
        page.keyboard.press(stage)
        page.wait_for_timeout(150)
        assert serious_faults(page) == [], f"stage {stage}"


@pytest.fixture
def diff() -> CoercionDiff:
    """Rows of every look: a repair, lossless and lossy coercion, and values that differ."""
    text = (
        '<tool_call>{"name": "f", "arguments": '
        '{"days": "7", "on": "yes", "limit": [2], "city": "Oslo",}}</tool_call>'
    )
    kinds = {"days": "integer", "on": "boolean", "limit": "integer", "city": "string"}
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": properties}}]
    readings = [tp.parse(text, "hermes", tools, {"coerce": policy}) for policy in ("none", "lossy")]
    return CoercionDiff(readings[0], readings[1], ("none", "lossy"))


@pytest.mark.exhaustive(2)
def test_two_readings_side_by_side(diff: CoercionDiff, page: Page, tmp_path: Path) -> None:
    page.goto(diff.export_html(tmp_path / "diff.html").as_uri())
    assert page.locator("tr[data-n]").count() == len(diff.rows) > 3
    assert serious_faults(page) == []
    page.locator("tr[data-n]").nth(1).click()
    assert page.locator(".raw .lit").count() == 1
    assert serious_faults(page) == []


@pytest.mark.exhaustive(2, 1)
def test_two_readings_without_the_widget(diff: CoercionDiff, page: Page, tmp_path: Path) -> None:
    path = tmp_path / "static.html"
    path.write_text(render_page("Two readings", diff.static_html()), encoding="utf-8")
    page.goto(path.as_uri())
    assert serious_faults(page) == []


@pytest.mark.exhaustive(2)
def test_the_static_view(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "static.html"
    path.write_text(render_page("Answers", render_result(several())), encoding="utf-8")
    page.goto(path.as_uri())
    assert serious_faults(page) == []


@pytest.mark.parametrize(("text", "tool"), [(TEXT, TOOL), (AMBIGUOUS, PLOT)])
@pytest.mark.exhaustive(3)
def test_the_workbench(text: str, tool: dict[str, Any], page: Page, tmp_path: Path) -> None:
    bench = tp.workbench(text, "hermes", [tool])
    page.goto(bench.export_html(tmp_path / "bench.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    for tab in page.locator("[data-tab]").all():
        tab.click()
        assert serious_faults(page) == []


@pytest.mark.exhaustive(2, 1)
def test_the_browser_of_trials(run: Run, page: Page, tmp_path: Path) -> None:
    host(page, run.browse(), tmp_path)
    assert serious_faults(page, "#view") == []
    page.locator(".item").first.click()
    page.wait_for_timeout(300)
    assert serious_faults(page, "#view") == []


@pytest.mark.exhaustive(2)
def test_the_report(run: Run, page: Page, tmp_path: Path) -> None:
    page.goto(run.report().save(tmp_path / "report.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    assert serious_faults(page) == []


@pytest.mark.exhaustive(2, 1)
def test_one_trial(run: Run, page: Page, tmp_path: Path) -> None:
    page.goto(run.failures()[0].as_html(tmp_path / "trial.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    assert serious_faults(page) == []
