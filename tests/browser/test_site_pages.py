"""The documentation site in a browser: its search gives hits, and its pages fit a phone."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

import pytest

from docs import site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = ("index.html", "debugging.html", "api/toolparse_lab.html", "tutorials/01_quickstart.html")
PHONE, DESKTOP = (390, 844), (1280, 900)


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that logs nothing."""

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served; it is built unless a test before this one did so."""
    if not (site.SITE / "search" / "search_index.json").exists():
        script = [sys.executable, str(site.ROOT / "docs" / "site.py")]
        subprocess.run(script, check=True, capture_output=True, timeout=300)
    handler = partial(Quiet, directory=str(site.SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_word_in_the_search_leads_to_its_page(chromium: Browser, address: str) -> None:
    page = chromium.new_page()
    page.goto(f"{address}/index.html")
    page.click("input.md-search__input")
    page.keyboard.type("canary")
    hit = page.locator(".md-search-result__item a[href*='capture.html']").first
    hit.wait_for()
    hit.click()
    page.wait_for_url(lambda url: "/capture.html" in url)
    assert "canary" in page.inner_text("article").lower()
    page.close()


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
