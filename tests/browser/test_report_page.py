"""Reports in a real browser: hostile text stays text, a phone shows everything, a keyboard reaches
it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.accessibility import CONTRAST
from tests.browser.test_hostile_pages import Watch
from tests.evals.test_report_order import trials
from tests.render_samples import HOSTILE
from toolparse_lab import parse
from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.frames.recorded import trials_frame
from toolparse_lab.evals.reports.figures.comparison import compare_arms
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.evals.reports.figures.view import RunView
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.runner.exchange.types import Completion

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="default-src [^"]*">')
CUT_OFF = """() => [...document.querySelectorAll('body *')].filter(e => {
  const scrolls = n => n && n !== document.body &&
    (/(auto|scroll)/.test(getComputedStyle(n).overflowX) || scrolls(n.parentElement));
  const hidden = getComputedStyle(e).position === 'absolute' || e.closest('svg');
  return !hidden && !scrolls(e) && e.getBoundingClientRect().right > innerWidth + 1;
}).map(e => e.outerHTML.slice(0, 120))"""


def hostile_trials() -> Iterator[Trial]:
    """Evil in every place where text of models, cases and providers goes."""
    for n, evil in enumerate(HOSTILE.values()):
        tool = ToolSpec(
            f"f{n}", evil, json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}})
        )
        call = json.dumps({"name": tool.name, "arguments": {"a": evil}})
        texts = (f"<tool_call>{call}</tool_call>", evil, f"{evil}<tool_call>{evil}", "")
        for k, raw in enumerate(texts):
            for arm in ("hermes", evil):
                case = Case(
                    f"{k} {evil}",
                    evil,
                    (tool,),
                    [{"name": evil, "arguments": {"a": evil}}],
                    {"category": evil},
                )
                failed = k == 3
                completion = Completion(
                    key=f"{n}{k}{arm}", raw=raw, status="error" if failed else "ok",
                    finish_reason="stop", error_kind="timeout" if failed else None,
                    error_message=evil if failed else None,
                )  # fmt: skip
                result = None if failed else parse(raw, "hermes", (tool,))
                yield Trial.of(
                    case,
                    completion,
                    result,
                    run_id=evil,
                    model=evil,
                    arm=arm,
                    prompt_protocol="hermes",
                )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    frame = trials_frame(hostile_trials())
    report = Report(
        RunView(frame, stops=[HOSTILE["onerror"]]),
        ["model", "arm"],
        title=HOSTILE["script"],
        baseline="hermes",
    )
    evil = next(a for a in frame["arm"].unique() if a != "hermes")
    made = {
        "report": report.save(folder / "report.html", gate=report.gate(success=0.5)),
        "comparison": compare_arms(frame, "hermes", evil, on="arm").save(
            folder / "comparison.html"
        ),
    }
    for path in made.values():  # escaping alone has to hold
        text = path.read_text("utf-8")
        assert len(POLICY.findall(text)) == 1
        path.write_text(POLICY.sub("", text), "utf-8")
    return made


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": 375, "height": 800})
    yield page
    page.close()


OF_A_NOTEBOOK = """<style>
.jp-RenderedHTMLCommon table { table-layout: fixed; }
.jp-RenderedHTMLCommon td, :not(.jp-RenderedMarkdown).jp-RenderedHTMLCommon th { text-align: right; padding: 0.5em; }
.jp-RenderedHTMLCommon dt { float: left; width: 20%; }
</style>"""


def test_a_notebook_s_own_looks_of_tables_are_not_ours(page: Page) -> None:
    page.set_viewport_size({"width": 900, "height": 800})
    report = Report(trials_frame(trials(["m", "n"], ["a", "b"])), ["model", "arm"])
    page.set_content(f'{OF_A_NOTEBOOK}<div class="jp-RenderedHTMLCommon">{report.html()}</div>')
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")

    def looks(selector: str, name: str) -> set[str]:
        script = "([s, n]) => [...document.querySelectorAll(s)].map(e => getComputedStyle(e)[n])"
        return set(page.evaluate(script, [selector, name]))

    assert looks(".rows, .heat", "tableLayout") == {"auto"}
    assert looks("tbody th", "textAlign") == {"left"}
    assert looks("td.r", "textAlign") == {"right"}
    # A name is not broken letter by letter.
    lines = "[...document.querySelectorAll('.facts dt')].map(e => e.getClientRects()[0].height)"
    assert set(page.evaluate(lines)) == {20}


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_the_switch_turns_the_theme_that_is_seen(
    theme: str, page: Page, pages: dict[str, Path]
) -> None:
    text = pages["comparison"].read_text("utf-8")
    page.set_content(text.replace("<html", f'<html data-theme="{theme}"', 1))
    grounds = []
    for _ in range(2):
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.locator("label.tab").click()
    dark, light = "rgb(20, 23, 26)", "rgb(255, 255, 255)"
    assert grounds == ([dark, light] if theme == "dark" else [light, dark])


@pytest.mark.parametrize("name", ["report", "comparison"])
def test_hostile_text_stays_text(name: str, page: Page, pages: dict[str, Path]) -> None:
    watch = Watch(page)
    watch.open(pages[name])
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    watch.check(pages[name])
    assert (
        page.evaluate(
            "document.querySelectorAll("
            "'script, img, iframe, a:not([href^=\"#\"]), link, form, object').length"
        )
        == 0
    )
    assert HOSTILE["script"][:20] in page.inner_text("body")


@pytest.mark.parametrize("name", ["report", "comparison"])
def test_nothing_is_cut_off(name: str, page: Page, pages: dict[str, Path]) -> None:
    page.goto(pages[name].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for width in (375, 320, 900, 1200):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT_OFF) == [], width


def test_a_dot_stands_at_its_share_of_the_scale(page: Page, pages: dict[str, Path]) -> None:
    page.goto(pages["report"].as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    middle = "e => { const r = e.getBoundingClientRect(); return r.left + r.width / 2; }"
    ticks, dots, shares = (
        page.eval_on_selector_all(f".dots {names}", f"es => es.map({what})")
        for names, what in ((".sc span", middle), (".ax b", middle), (".r", "e => e.textContent"))
    )
    labels = page.locator(".dots .sc span").all_inner_texts()
    values = [float(text.strip(" %")) for text in labels]
    for left, right, low, high in zip(ticks, ticks[1:], values, values[1:], strict=False):
        assert (right - left) / (ticks[-1] - ticks[0]) == pytest.approx(
            (high - low) / (values[-1] - values[0]), abs=0.005
        )
    for at, share in zip(dots, shares, strict=True):
        part = (at - ticks[0]) / (ticks[-1] - ticks[0])
        here = values[0] + part * (values[-1] - values[0])
        assert here == pytest.approx(float(share.strip(" <>%")), abs=1.5)


def test_a_keyboard_follows_a_number_to_a_failure(page: Page, pages: dict[str, Path]) -> None:
    def tab_to(tag: str, text: str = "") -> None:
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate(
                "([tag, text]) => document.activeElement.tagName === tag"
                " && document.activeElement.textContent.includes(text)",
                [tag, text],
            ):
                return
        raise AssertionError(f"no {tag} {text} within 30 steps")

    page.goto(pages["report"].as_uri())
    tab_to("A", "fail")
    page.keyboard.press("Enter")
    # The cell is open, and its first failure comes next.
    tab_to("SUMMARY")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")
    shown = "document.activeElement.parentElement.querySelector('.trial').offsetHeight"
    assert page.evaluate(shown) > 20


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report with a matrix of seven models and seven arms."""
    names = [f"provider/model-name-{n}" for n in range(7)]
    frame = trials_frame(trials(names, [f"protocol_{n}" for n in range(7)], cases=2))
    path = tmp_path_factory.mktemp("wide") / "report.html"
    return Report(frame, ["model", "arm"]).save(path).as_uri()


@pytest.mark.parametrize(("width", "media"), [(718, "print"), (900, "screen"), (375, "screen")])
def test_no_column_of_a_wide_matrix_is_lost(width: int, media: Any, page: Page, wide: str) -> None:
    page.emulate_media(media=media)
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(wide)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    places = page.evaluate(
        "[...document.querySelectorAll('.heat td')].map(e => e.getBoundingClientRect().right)"
    )
    assert len(places) == 49
    if media == "screen":
        # What does not fit is a matter of scrolling, and the row and its label stay one.
        assert (
            page.evaluate(
                "getComputedStyle(document.querySelector('.heat').parentElement).overflowX"
            )
            == "auto"
        )
        # The rate leads to the failures behind it, which are then open.
        page.click(".heat a >> nth=-1")
        assert page.evaluate("document.querySelector(':target').offsetHeight") > 20
    else:
        assert max(places) <= width


def test_text_can_be_read_in_light_and_dark(page: Page, pages: dict[str, Path]) -> None:
    page.goto(pages["report"].as_uri())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST, "body") > 7
