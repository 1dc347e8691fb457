"""One standalone HTML document: it asks the network for nothing and may run nothing but what it was built with."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files

from .show import visible


@cache
def page_css() -> str:
    return files(__package__).joinpath("page.css").read_text("utf-8")


def render_page(title: str, body_html: str, *, css: str = "", module: str = "") -> str:
    """A whole document around `body_html`, which must be escaped already; `title` is escaped here.

    `css` is added to the page's own. `module` is the source of the one ES module the page may run: the Content-
    Security-Policy allows exactly that text, by its hash, and no script at all when it is empty.
    """
    for kind, source in (("css", css), ("module", module)):
        if "</s" in source.lower() or "<!--" in source:
            raise ValueError(f"{kind} would end its own element")
    policy = ["default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'"]
    script = ""
    if module:
        digest = base64.b64encode(hashlib.sha256(module.encode()).digest()).decode()
        policy.append(f"script-src 'sha256-{digest}'")
        script = f'<script type="module">{module}</script>'
    shown = escape(visible(title))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape("; ".join(policy))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{shown}</title>\n<style>{page_css()}{css}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{shown}</h1>\n{body_html}\n</main>\n{script}\n</body>\n</html>\n"
    )
