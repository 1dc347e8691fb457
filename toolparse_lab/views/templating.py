"""HTML from templates, the one place of jinja2, and whole pages.

A template is in the folder `templates` of the room that uses it and is named by its path within
the package, such as "views/templates/result.html". jinja2 loads when the first page is rendered,
and a template is compiled when it is first used.

Two rules apply to every template of this package:

- A value is written visible and escaped, whatever it is and wherever it is. Only `Markup` is
  written as it is, and only HTML that was escaped piece by piece, or that is our own, is made one.
- A line break is layout for whoever reads the template, as in JSX: with the white space around it,
  it is one space between two words, and nothing next to a tag or an expression.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..core.values.printable import counted
from .cells import escaped
from .words import word_of

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Markup", "escaped", "macro", "render", "render_page"]

# A break at either end of a piece of text is next to an expression, one after ">" or before "<"
# next to a tag.
_LINE_BREAK = re.compile(r"(?P<after>\A|(?<=>))?\s*\n\s*(?P<before>\Z|(?=<))?")


def render(name: str, **values: Any) -> str:
    """Return the HTML of a template. Raises jinja2.UndefinedError for a value that it lacks."""
    return _environment().get_template(name).render(values)


def macro(template: str, name: str, *values: Any) -> Markup:
    """Return the HTML of one macro of a template."""
    html: Markup = getattr(_environment().get_template(template).module, name)(*values)
    return html


@cache
def _environment() -> Environment:
    # Imported here because it takes tens of milliseconds, and who only parses, or prints to a
    # terminal, renders no template.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from jinja2.ext import Extension
    from jinja2.lexer import Token, TokenStream

    class Layout(Extension):
        """Takes the line breaks out of a template's text."""

        def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
            for token in stream:
                if token.type == "data":
                    text = _LINE_BREAK.sub(
                        # See the rules above.
                        lambda m: " " if m["after"] is None and m["before"] is None else "",
                        token.value,
                    )
                    yield Token(token.lineno, token.type, text)
                else:
                    yield token

    environment = Environment(
        autoescape=True,
        # Autoescape alone would show no hidden character, and would trust any object that has a
        # method `__html__`. No subclass of Markup is trusted.
        finalize=lambda value: value if type(value) is Markup else escaped(value),
        undefined=StrictUndefined,
        loader=PackageLoader("toolparse_lab", "."),
        auto_reload=False,  # the files of an installed package do not change
        extensions=[Layout],
    )
    environment.globals["counted"] = counted
    environment.globals["word"] = word_of
    return environment


@cache
def style_sheet() -> str:
    """Return the one style sheet of all screens, without its comments and line breaks."""
    text = files(__package__).joinpath("style.css").read_text("utf-8")
    return re.sub(r"\s*\n\s*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def render_page(
    title: str, body_html: str, about: str = "", *, answers: str = "", module: str = ""
) -> str:
    """Return a whole HTML document that asks the network for nothing.

    body_html: escaped already; `title` and `about`, which stands beside it, are escaped here.
    answers: the address of the answers that it is about, where they are served. module: the source
    of the one ES module the page may run: the Content-Security-Policy allows exactly that text, by
    its hash, and no script at all when it is empty. Raises ValueError for a source that would end
    its own element.
    """
    if "</s" in module.lower() or "<!--" in module:
        raise ValueError("module would end its own element")
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
        about=about,
        answers=answers,
        # The sources are ours and end no element, as checked above; the body is HTML by contract.
        css=Markup(style_sheet()),  # noqa: S704
        body=Markup(body_html),  # noqa: S704
        module=Markup(module),  # noqa: S704
    )
