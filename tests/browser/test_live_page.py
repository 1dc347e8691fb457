"""`toolparse open`: a run and a text in the browser, without Jupyter in sight."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import ROOT

pytest.importorskip("tornado", reason="the page needs the extra open")

import toolparse_lab as tp

from .accessibility import serious_faults

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Chromium
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}]
TEXT = '<tool_call>{"name": "f", "arguments": {"x": "1"}}</tool_call>'
WAIT = 90_000
"""Milliseconds that the command may take to start on a busy machine."""


@contextmanager
def opened(folder: Path, *words: str) -> Iterator[str]:
    """The address that `toolparse open` prints; afterwards Ctrl-C has to leave nothing behind."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON"))}
    places = folder / "tmp"
    places.mkdir(exist_ok=True)
    env |= {"HOME": str(folder), "PYTHONPATH": str(ROOT), "TMPDIR": str(places)}
    command = [sys.executable, "-m", "toolparse_lab.cli", "open", *words, "--no-browser"]
    server = subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", line)
        assert address, line + (server.stderr.read() if server.stderr else "")
        yield address.group()
    finally:
        server.send_signal(signal.SIGINT)
        rest = server.communicate(timeout=60)
    assert server.returncode == 130
    assert "Traceback" not in "".join(rest)
    assert list(places.glob("toolparse-open-*")) == []


def until(page: Page, condition: str) -> None:
    """Wait for a condition in JavaScript, which the page's own policy would not evaluate."""
    for _ in range(WAIT // 50):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(condition)


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1300, "height": 1000})
    page = context.new_page()
    outside: list[str] = []

    page.on("request", lambda r: outside.append(r.url))
    yield page
    assert all(url.startswith(("http://127.0.0.1:", "blob:", "data:")) for url in outside)
    context.close()


@dataclass(frozen=True)
class Served:
    """A server of one store: its address, which opens the latest run, and the ids of its runs."""

    address: str
    runs: dict[str, str]
    store: Path

    def visit(self, page: Page, name: str) -> None:
        page.goto(self.address, timeout=WAIT)
        page.goto(f"{self.address.partition('?')[0]}run/{self.runs[name]}", timeout=WAIT)
        page.wait_for_selector(".item", timeout=WAIT)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("runs")
    targets = {
        name: [{"name": "f", "arguments": {"x": x}}] for name, x in (("right", 1), ("wrong", 2))
    }
    graded = [{"input": "q", "raw": TEXT, "id": n, "target": t} for n, t in targets.items()]
    wordy = [{"input": f"{t} " * 9, "raw": t} for t in (TEXT, TEXT.replace('"f"', '"g"'), "No.")]
    texts = [TEXT, TEXT.replace('"f"', '"g"'), TEXT.replace('"f"', '"h"'), "No."]
    several = [
        {"input": f"question {i}", "raw": text, "id": f"case-{i}"} for i, text in enumerate(texts)
    ]
    with tp.Lab(folder / "toolparse.db") as lab:
        runs = {
            name: lab.ingest(rows, tools=TOOLS, protocol="hermes").run_id
            for name, rows in (("graded", graded), ("wordy", wordy), ("several", several))
        }
    with opened(folder, "--theme", "auto") as address:
        yield Served(address, runs, folder / "toolparse.db")


def test_a_run_is_browsed_and_a_note_is_kept(page: Page, served: Served, tmp_path: Path) -> None:
    served.visit(page, "graded")
    assert page.inner_text(".say b") == "1 of 2 answers are wrong"
    # From wherever one is: nothing has the focus yet.
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(".detail .pv.live", timeout=WAIT)
    assert page.inner_text(".why") == "“x” is 1; 2 was expected."
    assert page.locator(".toolparse-raw .k-wrong").all_text_contents() == ["1"]
    page.screenshot(path=tmp_path / "run.png", full_page=True)
    page.get_by_text("Note and verdict by hand").click()
    page.get_by_label("note", exact=True).fill("<b>the target</b> is wrong")
    page.get_by_label("outcome by hand").select_option("correct")
    page.get_by_label("why", exact=True).fill("close enough")
    page.get_by_role("button", name="Keep").click()
    until(page, "document.querySelector('[data-part=said]').textContent === 'kept'")
    page.get_by_text("note: <b>the target</b> is wrong").first.wait_for()
    page.get_by_text("by hand: correct").first.wait_for()
    with tp.Lab(served.store) as lab:
        row = lab.open(served.runs["graded"]).frame().set_index("case_id").loc["wrong"]
    kept = [row[name] for name in ("note", "override", "override_why")]
    assert kept == ["<b>the target</b> is wrong", "correct", "close enough"]


def test_a_text_is_edited(page: Page, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "answer.txt").write_text(TEXT)
    words = ("answer.txt", "--protocol", "hermes", "--tools", "tools.json", "--theme", "dark")
    with opened(tmp_path, *words) as address:
        page.goto(address, timeout=WAIT)
        field = page.get_by_label("Raw text")
        field.wait_for(timeout=WAIT)
        field.fill(TEXT.replace('"1"', '"42"'))
        until(page, "document.querySelector('.tree').innerText.includes('x: 42')")
        # The marks follow the text, and the one text is edited.
        assert page.evaluate("[...CSS.highlights.get('tpx-coerced')].map(String)") == ["42"]
        field.press("Home")
        page.keyboard.type("So: ")
        until(page, "document.querySelector('.tree .at').innerText.startsWith('4–')")
        assert field.text_content() == "So: " + TEXT.replace('"1"', '"42"')
        page.screenshot(path=tmp_path / "text.png", full_page=True)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, re.findall(r"\d+", background)[:3])) < 80, background


def test_the_address_says_what_is_seen(page: Page, served: Served) -> None:
    run, address = served.runs["several"], served.address
    page.goto(address, timeout=WAIT)
    page.wait_for_selector(".item", timeout=WAIT)
    assert page.url.endswith(f"/run/{run}"), "the token stays out of the address"
    # Calls of a tool that was not offered are one cause; answers that are fine wait to be asked.
    assert page.locator(".item").count() == 2
    page.get_by_text("show 1 answer").first.click()
    until(page, "document.querySelectorAll('.item').length === 3")
    until(page, "document.querySelector('.item').innerText.includes('question 1')")
    assert page.locator(".item mark").first.text_content() == "g"
    page.get_by_role("button", name="Unknown tool 2").click()
    until(page, "document.querySelectorAll('.item').length === 2")
    page.locator(".item").first.click()
    page.wait_for_selector(".detail .pv")
    assert "case-1" in page.title()
    there = page.url
    page.reload()
    page.wait_for_selector(".detail .pv", timeout=WAIT)
    assert page.url == there
    assert "group=unknown+tool" in there
    assert page.get_by_role("button", name="Unknown tool 2").get_attribute("aria-pressed")
    page.go_back()
    until(page, "!document.querySelector('.opened')")
    page.get_by_role("button", name="Unknown tool 2").click()
    until(page, "document.querySelector('[data-part=shown]').innerText === '4 answers'")
    # Another browser that is sent the link sees the same, once it has the token.
    other = page.context.browser
    assert other is not None
    with other.new_context() as context:
        colleague = context.new_page()
        colleague.goto(address)
        colleague.goto(there)
        colleague.wait_for_selector(".detail .pv", timeout=WAIT)
        assert colleague.title() == "case-1 · unknown · toolparse"


def test_keys_from_wherever_one_is(page: Page, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "toolparse.db") as lab:
        texts = [TEXT.replace('"f"', '"g"'), "<tool_call>{", TEXT]
        rows = [{"input": "q", "raw": text, "protocol": "hermes", "id": text} for text in texts]
        lab.ingest(rows, tools=TOOLS)
    with opened(tmp_path) as address:
        page.goto(address, timeout=WAIT)
        page.wait_for_selector(".item", timeout=WAIT)
        focused = "document.activeElement"
        page.keyboard.press("/")
        assert page.evaluate(f"{focused}.getAttribute('aria-label')") == "Search"
        # In a field a key is a letter.
        page.keyboard.type("w?")
        assert page.evaluate(f"{focused}.value") == "w?"
        until(page, "document.body.innerText.includes('No answer holds “w?”')")
        page.get_by_role("button", name="Clear filters").click()
        until(page, "document.querySelectorAll('.item').length === 2")
        page.keyboard.press("n")
        page.wait_for_selector(".detail .pv")
        first = page.url
        page.keyboard.press("n")
        until(page, f"location.href !== {json.dumps(first)}")
        page.keyboard.press("p")
        until(page, f"location.href === {json.dumps(first)}")
        page.keyboard.press("]")
        until(page, f"location.href !== {json.dumps(first)}")
        page.keyboard.press("[")
        until(page, f"location.href === {json.dumps(first)}")
        page.keyboard.press("w")
        page.wait_for_selector("[data-bench] .editor")
        until(page, f"{focused}.getAttribute('aria-label') === 'Raw text'")
        # In the text a key is a letter too.
        page.keyboard.type("n2")
        until(page, "document.querySelector('[data-bench]').innerText.includes('Text changed')")
        page.keyboard.press("Escape")
        page.keyboard.press("2")
        until(
            page, "document.querySelector('[data-tab][aria-selected=true]').dataset.tab !== 'raw'"
        )
        page.keyboard.press("u")
        until(page, "document.querySelector('[data-bench]').innerText.includes('Text as recorded')")
        # The next failure comes on the workbench too, as it was recorded.
        here, text = page.url, page.text_content(".editor")
        page.keyboard.press("n")
        until(page, f"document.querySelector('.editor').textContent !== {json.dumps(text)}")
        assert page.url != here
        assert page.text_content(".editor") in texts
        page.keyboard.press("1")
        page.keyboard.press("e")
        until(page, f"{focused}.getAttribute('aria-label') === 'Raw text'")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        assert page.get_by_role("dialog", name="Keys").is_visible()
        page.keyboard.press("Escape")
        assert not page.get_by_role("dialog", name="Keys").is_visible()
        page.keyboard.press("Escape")
        until(page, "!document.querySelector('[data-bench]')")
        page.keyboard.press("Escape")
        until(page, "!document.querySelector('.opened')")
    # The server has ended: what is seen stays.
    page.keyboard.press("n")
    page.get_by_role("alert").wait_for()
    assert "`toolparse open` has ended" in page.get_by_role("alert").inner_text()
    assert page.locator(".item").count() == 2


def test_nobody_enters_without_the_token(page: Page, served: Served) -> None:
    bare = served.address.partition("?")[0]
    for path in ("", "first", "first?token=wrong", "answer", "reading", "front/screens.js", "x"):
        answer = page.request.get(bare + path)
        assert answer.status == 403, path
        assert TEXT not in answer.text()
    # A name of a foreign site that leads here, with the token or without.
    answer = page.request.get(served.address, headers={"Host": "example.org"})
    assert answer.status == 403


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.exhaustive(3)  # each scheme and each width once
def test_the_page_follows_the_system_and_fits(
    chromium: Chromium, served: Served, scheme: Any, width: int
) -> None:
    with chromium.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 844}
    ) as context:
        page = context.new_page()
        served.visit(page, "wordy")
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
        assert (light > 200) == (scheme == "light"), colour
        # The list is on the first screen, whatever its width.
        assert page.locator(".item").first.bounding_box()["y"] < (330 if width > 760 else 360)  # type: ignore[index]
        height = page.evaluate("document.documentElement.scrollHeight")
        assert height == 844 if width > 760 else height < 2_500
        for selector, key in ((".item", "n"), (".detail .pv", "w"), (".editor", "")):
            page.wait_for_selector(selector)
            assert serious_faults(page) == [], selector
            assert page.evaluate("document.documentElement.scrollWidth") <= width, selector
            if key:
                page.keyboard.press(key)
