"""One standalone HTML document: it asks the network for nothing and may run nothing but its own
fields.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from markupsafe import Markup

from .templating import render


@cache
def page_css() -> str:
    """Return the style sheet of every page."""
    return files(__package__).joinpath("page.css").read_text("utf-8")


def render_page(title: str, body_html: str, *, css: str = "", module: str = "") -> str:
    """Return a whole document around `body_html`, which must be escaped already.

    `title` is escaped here.

    `css` is added to the page's own. `module` is the source of the one ES module the page may run:
    the Content-Security-Policy allows exactly that text, by its hash, and no script at all when it
    is empty. Raises ValueError for a source that would end its own element.
    """
    for kind, source in (("css", css), ("module", module)):
        if "</s" in source.lower() or "<!--" in source:
            raise ValueError(f"{kind} would end its own element")
    policy = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if module:
        digest = base64.b64encode(hashlib.sha256(module.encode()).digest()).decode()
        policy.append(f"script-src 'sha256-{digest}'")
    return render(
        "views/templates/page.html",
        policy="; ".join(policy),
        title=title,
        # The sources are ours and end no element, as checked above; the body is HTML by contract.
        css=Markup(page_css() + css),  # noqa: S704
        body=Markup(body_html),  # noqa: S704
        module=Markup(module),  # noqa: S704
    )
