"""More than 200 hostile texts in every view, static and live: nothing runs, nothing is asked for, and
all of it is shown.

Several texts share a page, each in its own call, so that one page is opened and not twenty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.evals.test_charts import hostile_charts
from tests.hostile_texts import TEXTS
from tests.render_samples import HOSTILE, example, hostile, several
from toolparse_lab.evals.reports.figures.comparison import compare_arms
from toolparse_lab.views import render_page, render_result, render_side_by_side
from toolparse_lab.views.show import visible

pytest.importorskip("anywidget", reason="the views need the jupyter extra")
pytest.importorskip("litellm", reason="runs need the lab extra")

import toolparse_lab as tp
from toolparse_lab.notebook import CoercionDiff, export_html

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

pytestmark = pytest.mark.browser
AT_ONCE = 24  # texts of a page
FOREIGN = "document.querySelectorAll('script, img, iframe, a, svg, link').length"


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
def watch(chromium: Browser) -> Iterator[Watch]:
    page = chromium.new_page(viewport={"width": 1000, "height": 900})
    yield Watch(page)
    page.close()


def groups() -> Iterator[list[str]]:
    for at in range(0, len(TEXTS), AT_ONCE):
        # No answer comes over a wire with half a character in it.
        yield [t.encode("utf-8", "replace").decode("utf-8") for t in TEXTS[at : at + AT_ONCE]]


def tool(text: str) -> dict[str, Any]:
    """A tool with the text wherever a stranger's tool may have one."""
    properties = {"x": {"type": "integer", "description": text}, text: {"type": "string"}}
    return {
        "name": "f",
        "description": text,
        "parameters": {"type": "object", "properties": properties},
    }


def answer(texts: list[str]) -> str:
    """A call for each text, with it in a value, in a key, around the call and in broken JSON."""
    calls = [
        f"{t}<tool_call>{json.dumps({'name': 'f', 'arguments': {'x': t, t: '5'}})}</tool_call>"
        for t in texts
    ]
    return "\n".join([*calls, f"<tool_call>{{{texts[0]}</tool_call>"])


def two_readings(texts: list[str]) -> tuple[tp.ParseResult, tp.ParseResult]:
    tools = [tool(texts[0])]
    none, lossy = (
        tp.parse(answer(texts), "hermes", tools, {"coerce": policy}) for policy in ("none", "lossy")
    )
    return none, lossy


def test_there_are_more_than_200() -> None:
    assert len(set(TEXTS)) > 200


def test_static_views(watch: Watch, tmp_path: Path) -> None:
    """Without a Content-Security-Policy, so that escaping alone has to hold."""
    body = "".join(render_result(hostile(text)) for text in TEXTS)
    for texts in groups():
        # A row is made alike for every protocol: a few of them, with calls and without.
        comparison = tp.compare(answer(texts), [tool(texts[0])], ["auto", "hermes", "morph_xml"])
        body += comparison._repr_mimebundle_()["text/html"]
        body += render_side_by_side(*two_readings(texts), (texts[0], texts[-1]))
    path = tmp_path / "all.html"
    page = render_page("All", body)
    policy = page[page.index("<meta http-equiv") : page.index(">", page.index("<meta http-equiv"))]
    path.write_text(page.replace(policy + ">", ""), encoding="utf-8", errors="replace")
    watch.open(path)
    watch.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true })")
    watch.check(path)
    assert watch.page.evaluate(FOREIGN) == 0
    shown = watch.page.locator(".toolparse-raw").all_text_contents()
    assert shown[: len(TEXTS)] == [visible(hostile(text).raw) for text in TEXTS]


def test_live_views(watch: Watch, tmp_path: Path) -> None:
    for n, texts in enumerate(groups()):
        tools = [tool(texts[0])]
        result = tp.parse(answer(texts), "hermes", tools)
        view = export_html(result, tmp_path / f"view{n}.html", title=texts[0])
        watch.open(view)
        watch.page.focus(".toolparse-raw")
        for key in "1234":
            watch.page.keyboard.press(key)
        watch.check(view)
        assert watch.page.locator(".toolparse-raw").first.text_content() == visible(result.raw)
        assert watch.page.evaluate(FOREIGN) == 1, "the front end"

        pair = CoercionDiff(*two_readings(texts), (texts[0], texts[-1]))
        side = pair.export_html(tmp_path / f"side{n}.html")
        watch.open(side)
        watch.page.hover(".raw [data-n] >> nth=0")
        watch.page.click("tr[data-n] >> nth=0")
        watch.check(side)

        bench = tp.workbench(answer(texts), "hermes", tools).export_html(tmp_path / f"b{n}.html")
        watch.open(bench)
        watch.page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
        for tab in watch.page.locator("[data-tab]").all():
            tab.click()
        watch.check(bench)


def html_of(shown: Any) -> str:
    """What a notebook stores and draws of an object."""
    if hasattr(shown, "_repr_mimebundle_"):
        bundle = shown._repr_mimebundle_()
        bundle = bundle[0] if isinstance(bundle, tuple) else bundle
        return str(bundle.get("text/html", ""))
    return str(shown._repr_html_())


def test_trials_reports_and_outputs_of_notebooks(watch: Watch, tmp_path: Path) -> None:
    rows = [
        {
            "id": f"c{n}{texts[2]}".replace("\x00", ""),
            "input": texts[0],
            "tools": [tool(texts[-1])],
            "target": [{"name": "f", "arguments": {"x": 1, texts[0]: texts[-1]}}],
            "raw": answer(texts).replace("\x00", ""),
            "model": texts[0].replace("\x00", ""),
            "protocol": "hermes",
            "finish_reason": texts[3].replace("\x00", ""),
            "metadata": {"category": texts[1]},
        }
        for n, texts in enumerate(groups())
    ]
    log = tmp_path / "<img src onerror=window.pwned=1>.jsonl"
    log.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(log)
        report = run.report()
        paths = [report.save(tmp_path / "report.html")]
        for n, trial in enumerate(run.failures()):
            paths.append(trial.as_html(tmp_path / f"trial{n}.html"))
        assert len(paths) > 5
        gate, frame = report.gate(success=0.5), run.frame()
        trial = run.failures()[0]
        outputs = [run.failures(), report, gate, frame, run.calls_df()]
        outputs += [trial, trial.result]
        outputs += [compare_arms(frame, *frame["model"].unique()[:2], on="model")]
        paths.append(tmp_path / "outputs.html")
        body = "".join(html_of(shown) for shown in outputs)
        paths[-1].write_text(f"<!doctype html><meta charset=utf-8>{body}", "utf-8", "replace")
    for path in paths:
        watch.open(path)
        watch.page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
        watch.check(path)


def test_charts(watch: Watch, tmp_path: Path) -> None:
    """With Vega in the page, so that it draws without a network."""
    (_, first), *others = hostile_charts()
    rest = "".join(
        chart.to_html(output_div=f"chart{n}", fullhtml=False, template="standard")
        for n, (_, chart) in enumerate(others)
    )
    # The libraries are in the page already.
    rest = re.sub('<script [^>]*src="https://cdn[^>]*></script>', "", rest)
    path = tmp_path / "charts.html"
    page, end, _ = first.to_html(inline=True).rpartition("</body>")
    path.write_text(f"{page}{rest}{end}", "utf-8")
    watch.open(path)
    for place in ("vis", *(f"chart{n}" for n in range(len(others)))):
        drawn = f"#{place} canvas, #{place} svg"
        watch.page.wait_for_selector(drawn)
        watch.page.hover(drawn)
    watch.check(path)


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
