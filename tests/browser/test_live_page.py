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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import ROOT

pytest.importorskip("voila", reason="the page needs the extra open")

import toolparse_lab as tp

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Chromium
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}]
TEXT = '<tool_call>{"name": "f", "arguments": {"x": "1"}}</tool_call>'
WAIT = 90_000
"""Milliseconds that a kernel may take to start on a busy machine."""


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


@pytest.fixture
def page(chromium: Chromium) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": 1300, "height": 1000})
    page = context.new_page()
    outside: list[str] = []

    def failed(request: Any) -> None:
        outside.append(request.url)
        # The page's own policy stops what Voilà's template asks for.
        assert request.failure == "csp", request.url

    page.on("requestfailed", lambda r: None if "127.0.0.1" in r.url else failed(r))
    page.on(
        "requestfinished",
        lambda r: outside.append(f"!{r.url}") if r.url.startswith("https:") else None,
    )
    yield page
    assert not [url for url in outside if url.startswith("!")]
    context.close()


def test_a_run_is_browsed_and_a_note_is_kept(page: Page, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "toolparse.db") as lab:
        row = {"input": "q", "raw": TEXT, "protocol": "hermes"}
        targets = {
            name: [{"name": "f", "arguments": {"x": x}}] for name, x in (("right", 1), ("wrong", 2))
        }
        rows = [{**row, "id": name, "target": target} for name, target in targets.items()]
        lab.ingest(rows, tools=TOOLS)
    with opened(tmp_path) as address:
        page.goto(address, timeout=WAIT)
        page.wait_for_selector(".tpb-list", timeout=WAIT)
        assert "2 trials" in page.inner_text(".tpb")
        page.focus(".tpb-list")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector(".tpb .tp-text", timeout=WAIT)
        page.screenshot(path=tmp_path / "run.png", full_page=True)
        page.get_by_label("note", exact=True).fill("the target is wrong")
        page.get_by_role("button", name="keep note").click()
        page.wait_for_function(
            "document.querySelector('.tpb-status').textContent === 'kept'", timeout=WAIT
        )
    with tp.Lab(tmp_path / "toolparse.db") as lab:
        notes = lab.open("latest").frame().set_index("case_id")["note"]
    assert notes["wrong"] == "the target is wrong"


def test_a_text_is_edited(page: Page, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "answer.txt").write_text(TEXT)
    words = ("answer.txt", "--protocol", "hermes", "--tools", "tools.json", "--theme", "dark")
    with opened(tmp_path, *words) as address:
        page.goto(address, timeout=WAIT)
        field = page.get_by_label("Raw text")
        field.wait_for(timeout=WAIT)
        field.fill(TEXT.replace('"1"', '"42"'))
        page.wait_for_function(
            "document.querySelector('.tb-view').innerText.includes('42')", timeout=WAIT
        )
        page.screenshot(path=tmp_path / "text.png", full_page=True)
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert max(map(int, re.findall(r"\d+", background)[:3])) < 80, background


def test_nobody_enters_without_the_token(page: Page, tmp_path: Path) -> None:
    with opened(tmp_path, TEXT) as address:
        bare = address.partition("?")[0]
        for path in ("", "voila/api/themes", "api/kernels", "static/x"):
            page.goto(bare + path, timeout=WAIT)
            assert TEXT not in page.content()
            assert page.locator(".tb-text").count() == 0
