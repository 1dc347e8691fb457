"""The documentation site: it builds offline, from this checkout alone, without a link that leads
nowhere; in a browser its search gives hits, and its pages fit a phone."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

import pytest

from scripts import doctest_fences, site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CONFIG = (site.ROOT / "mkdocs.yml").read_text("utf-8")
PAGES = ("index.html", "debugging.html", "api/toolparse_lab.html", "tutorials/01_quickstart.html")
PHONE, DESKTOP = (390, 844), (1280, 900)


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="session")
def built() -> subprocess.CompletedProcess[str]:
    """How the site was built, once for the session, in which tests of a browser come last: it takes ten
    seconds."""
    script = [sys.executable, str(site.ROOT / "scripts" / "site.py")]
    return subprocess.run(script, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def address(built: subprocess.CompletedProcess[str]) -> Iterator[str]:
    """Where the site is served."""
    assert built.returncode == 0
    handler = partial(Quiet, directory=str(site.SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.slow
def test_the_site(built: subprocess.CompletedProcess[str]) -> None:
    assert built.returncode == 0, built.stdout + built.stderr
    pages = {page.relative_to(site.PAGES).as_posix() for page in site.PAGES.rglob("*.md")}
    assert {page for page in pages if f" {page}\n" not in CONFIG} == set(), "not in mkdocs.yml"
    assert all((site.SITE / page).with_suffix(".html").exists() for page in pages)
    assert (site.SITE / "search" / "search_index.json").stat().st_size > 100_000
    assert all(page in (site.SITE / "llms.txt").read_text("utf-8") for page in pages)
    for page in site.SITE.rglob("*.html"):
        text = page.read_text("utf-8")
        assert 'src="http' not in text, page
        # A fence of Markdown that was not recognised; what a model wrote is in no paragraph.
        assert re.search(r"<(?:p|li)>[^<]*```", text) is None, page
        assert '<link rel="stylesheet" href="http' not in text, page
    for module in site.API:
        text = (site.SITE / "api" / f"{module}.html").read_text("utf-8")
        names = site.exported(module)
        assert names
        assert [name for name in names if f'id="{module}.{name}"' not in text] == []


def test_links_of_the_checkout_become_links_of_the_site() -> None:
    readme = site.ROOT / "README.md"
    text = "[a](docs/reference/cli.md#x) [b](notebooks/01_quickstart.ipynb) [c](tests/test_site.py)"
    assert site._LINK.sub(lambda m: site._linked(m, readme), text) == (
        "[a](reference/cli.md#x) [b](tutorials/01_quickstart.md) c"
    )


def test_examples_are_fenced() -> None:
    assert doctest.testmod(importlib.import_module(doctest_fences.__name__)).failed == 0


@pytest.mark.slow
@pytest.mark.browser
def test_a_word_in_the_search_leads_to_its_page(chromium: Browser, address: str) -> None:
    page = chromium.new_page()
    page.goto(f"{address}/index.html")
    page.click("input.md-search__input")
    page.keyboard.type("canary")
    hit = page.locator(".md-search-result__item a[href*='running.html']").first
    hit.wait_for()
    hit.click()
    page.wait_for_url(lambda url: "/running.html" in url)
    assert "canary" in page.inner_text("article").lower()
    page.close()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(
    ("size", "scheme"), [(PHONE, "dark"), (DESKTOP, "light")], ids=["phone-dark", "desktop-light"]
)
def test_pages_fit_and_ask_no_other_host(
    chromium: Browser, address: str, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    width, height = size
    view = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = view.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    for name in PAGES:
        page.goto(f"{address}/{name}")
        page.wait_for_load_state("networkidle")
        wanted = "slate" if scheme == "dark" else "default"
        assert page.get_attribute("body", "data-md-color-scheme") == wanted
        across = page.evaluate("document.documentElement.scrollWidth")
        assert across <= width, f"{name} is {across} pixels wide"
    view.close()
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert faults == []
