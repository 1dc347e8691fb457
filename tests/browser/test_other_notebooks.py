"""The views in other places that show notebooks: marimo, nbconvert's page without a script, and
what GitHub leaves of an output."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import toolparse_lab as tp
from tests.browser.conftest import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser as Chromium
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}]
TEXT = '<tool_call>{"name": "f", "arguments": {"x": "1",}}</tool_call>'
ROWS = [
    {
        "id": "a",
        "input": "What is x?",
        "raw": TEXT,
        "target": [{"name": "f", "arguments": {"x": 1}}],
    },
    {"id": "b", "input": "And y?", "raw": TEXT.replace("1", "two"), "target": []},
]
# What html-pipeline, which GitHub publishes, lets through: no style, no class, no script.
ELEMENTS = [
    "h1", "h2", "h3", "h4", "h5", "h6", "br", "b", "i", "strong", "em", "a", "pre", "code", "img",
    "tt", "div", "ins", "del", "sup", "sub", "p", "ol", "ul", "table", "thead", "tbody", "tfoot",
    "blockquote", "dl", "dt", "dd", "kbd", "q", "samp", "var", "hr", "ruby", "rt", "rp", "li", "tr",
    "td", "th", "s", "strike", "summary", "details", "caption", "figure", "figcaption", "abbr",
    "bdo", "cite", "dfn", "mark", "small", "span", "time", "wbr",
]  # fmt: skip
ATTRIBUTES = {"*": ["title", "align", "colspan", "rowspan", "open"], "a": ["href"]}
MARIMO = ROOT / ".venv-notebooks" / "bin" / "marimo"
NOTEBOOK = """
import marimo

app = marimo.App()

@app.cell
def _():
    import toolparse_lab as tp
    run = tp.Lab({store!r}).open("latest")
    return run, tp

@app.cell
def _(run):
    run.browse()

@app.cell
def _(run):
    run.report()

@app.cell
def _(run):
    run.report().chart("verdicts")

@app.cell
def _(tp):
    tp.workbench({text!r}, "hermes", {tools!r})

if __name__ == "__main__":
    app.run()
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "runs.db"
    with tp.Lab(path) as lab:
        lab.ingest(ROWS, tools=TOOLS, protocol="hermes")
    return path


@pytest.fixture(scope="module")
def outputs(store: Path) -> dict[str, str]:
    """The HTML that a notebook keeps of each view."""
    with tp.Lab(store) as lab:
        run = lab.open("latest")
        return {
            "parse": str(tp.parse(TEXT, "hermes", TOOLS)._repr_mimebundle_()["text/html"]),
            "report": run.report().html(),
            "trials": run.browse().static_html(),
            "frame": shown_frame(run),
        }


def shown_frame(run: Any) -> str:
    return str(run.frame()._repr_html_())


SAID = {
    "parse": ["f ✓ after repair", "coerce.integer-from-string · lossless"],
    "report": ["1 of 2 answers hold the right call", "Success", "What goes wrong"],
    "trials": ["1 of 2 answers are wrong", "Wrong"],
    "frame": ["hermes", "not shown, since no row has a value"],
}


def words_of(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("view", SAID)
def test_github_leaves_all_words_apart(outputs: dict[str, str], view: str) -> None:
    bleach = pytest.importorskip("bleach", reason="it comes with nbconvert")
    without = re.sub(r"<style.*?</style>|<svg.*?</svg>", "", outputs[view], flags=re.DOTALL)
    left = bleach.clean(without, tags=ELEMENTS, attributes=ATTRIBUTES, strip=True)
    text = words_of(re.sub(r"<[^>]+>", "", re.sub(r"<(?:td|th|div|p|li|br)\b[^>]*>", " ", left)))
    for said in SAID[view]:
        assert said in text


def test_nbconvert_needs_no_script(
    chromium: Chromium, outputs: dict[str, str], tmp_path: Path
) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbconvert needs the dev extra")
    nbconvert = pytest.importorskip("nbconvert", reason="nbconvert needs the dev extra")
    book = nbformat.v4.new_notebook()
    for html in outputs.values():
        output = nbformat.v4.new_output("display_data", data={"text/html": html})
        book.cells.append(nbformat.v4.new_code_cell("view", outputs=[output], execution_count=1))
    body, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    file = tmp_path / "book.html"
    file.write_text(body, "utf-8")
    context = chromium.new_context(java_script_enabled=False)
    context.route(re.compile("^https?:"), lambda route: route.abort())
    page = context.new_page()
    page.goto(file.as_uri(), wait_until="domcontentloaded")
    text = words_of(page.inner_text("body"))
    for said in ("after repair", "50 %", "1 of 2 answers are wrong", "What goes wrong"):
        assert said in text
    assert page.locator(".dots").count() == 1
    context.close()


@pytest.fixture
def marimo(chromium: Chromium, store: Path, tmp_path: Path) -> Iterator[Page]:
    """A notebook of every view, as an app of marimo's."""
    if not MARIMO.exists():
        pytest.skip("make notebooks sets marimo up")
    notebook = NOTEBOOK.format(store=str(store), text=TEXT, tools=TOOLS)
    (tmp_path / "views.py").write_text(notebook, "utf-8")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [str(MARIMO), "run", "views.py", "--headless", "--no-token", "--port", str(port)]
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    server = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    address = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(address, timeout=1).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        page = chromium.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        page.goto(address)
        yield page
        page.close()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def test_marimo_shows_every_view_and_answers(marimo: Page) -> None:
    marimo.locator(".item").first.wait_for(timeout=90_000)
    marimo.locator(".item").first.click()
    marimo.locator(".detail .pv").wait_for(timeout=30_000)
    assert "was expected" in marimo.locator(".why").inner_text()
    marimo.locator(".tpr h1").first.wait_for(timeout=60_000)
    marimo.locator(".vega-embed").first.wait_for(timeout=60_000)
    text = marimo.locator("[data-bench] .editor").first
    text.wait_for(timeout=60_000)
    text.fill(TEXT.replace("1", "7"))
    marimo.locator("[data-bench] .tree", has_text="7").first.wait_for(timeout=30_000)
