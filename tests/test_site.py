"""The documentation site builds offline, from this checkout alone, without a link that leads
nowhere."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys

import pytest

from docs import doctest_fences, site

CONFIG = (site.ROOT / "mkdocs.yml").read_text("utf-8")


# One test, because its pieces look at one site, which takes ten seconds to build.
@pytest.mark.slow
def test_the_site() -> None:
    script = [sys.executable, str(site.ROOT / "docs" / "site.py")]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {page.relative_to(site.PAGES).as_posix() for page in site.PAGES.rglob("*.md")}
    assert {page for page in pages if f" {page}\n" not in CONFIG} == set(), "not in mkdocs.yml"
    assert all((site.SITE / page).with_suffix(".html").exists() for page in pages)
    assert (site.SITE / "search" / "search_index.json").stat().st_size > 100_000
    assert all(page in (site.SITE / "llms.txt").read_text("utf-8") for page in pages)
    for address, target in site.REDIRECTS.items():
        successor, _, anchor = target.partition("#")
        assert target in (site.SITE / f"{address.partition('#')[0]}.html").read_text("utf-8")
        assert not anchor or f'id="{anchor}"' in (site.SITE / successor).read_text("utf-8"), target
    for page in site.SITE.rglob("*.html"):
        text = page.read_text("utf-8")
        assert 'src="http' not in text, page
        # A fence that was not recognised. A model may have written one, which evidence quotes.
        words = re.sub(
            r'<pre.*?</pre>|<div class="toolparse-blame".*?</table>', "", text, flags=re.DOTALL
        )
        assert "```" not in words, page
        assert '<link rel="stylesheet" href="http' not in text, page
    for module in site.API:
        text = (site.SITE / "api" / f"{module}.html").read_text("utf-8")
        names = site.exported(module)
        assert names
        assert [name for name in names if f'id="{module}.{name}"' not in text] == []


def test_links_of_the_checkout_become_links_of_the_site() -> None:
    readme = site.ROOT / "README.md"
    text = "[a](docs/cli.md#x) [b](notebooks/01_quickstart.ipynb) [c](tests/test_site.py)"
    assert site._LINK.sub(lambda m: site._linked(m, readme), text) == (
        "[a](cli.md#x) [b](tutorials/01_quickstart.md) c"
    )


def test_examples_are_fenced() -> None:
    assert doctest.testmod(importlib.import_module(doctest_fences.__name__)).failed == 0
