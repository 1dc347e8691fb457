"""HTML from templates: the one place of jinja2.

A template lies in the folder `templates` of the room that uses it and is named by its path within
the package, such as "views/templates/result.html". jinja2 loads when the first page is rendered,
and a template is compiled when it is first used.

Three rules hold for every template of this package:

- A value is written visible and escaped, whatever it is and wherever it stands. Only `Markup` is
  written as it is, and only HTML that was escaped piece by piece, or that is our own, is made one.
- A line break is layout for whoever reads the template, as in JSX: with the white space around it,
  it is one space between two words, and nothing beside a tag or an expression.
- `{{ style.NAME }}` is that constant of `style`, put in when the template is compiled: a page
  repeats these thousands of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..core.values.printable import counted
from .cells import escaped
from .style import constant

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["Markup", "escaped", "macro", "render"]

# A break at either end of a piece of text is beside an expression, one behind ">" or before "<"
# beside a tag.
_LINE_BREAK = re.compile(r"(?P<after>\A|(?<=>))?\s*\n\s*(?P<before>\Z|(?=<))?")
_STYLE = re.compile(r"\{\{ style\.([A-Z]+) \}\}")


def render(name: str, **values: Any) -> str:
    """Return the HTML of a template with these values.

    Raises jinja2.UndefinedError for a value that the template uses and does not get.
    """
    return _environment().get_template(name).render(values)


def macro(template: str, name: str, *values: Any) -> Markup:
    """Return the HTML of one macro of a template."""
    html: Markup = getattr(_environment().get_template(template).module, name)(*values)
    return html


@cache
def _environment() -> Environment:
    """Return the one environment of jinja2, which also keeps the compiled templates."""
    # Imported here because it takes tens of milliseconds, and who only parses, or prints to a
    # terminal, renders no template.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from jinja2.ext import Extension
    from jinja2.lexer import Token, TokenStream

    class Layout(Extension):
        """Puts the constants of `style` in, and takes the line breaks out of a template's text."""

        def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
            """Return a template's source with the constants of `style` put in."""
            return _STYLE.sub(lambda match: constant(match[1]), source)

        def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
            """Return the tokens of a template, those of its text without line breaks."""
            for token in stream:
                if token.type == "data":
                    text = _LINE_BREAK.sub(_joint, token.value)
                    yield Token(token.lineno, token.type, text)
                else:
                    yield token

    environment = Environment(
        autoescape=True,
        # Autoescape alone would show no hidden character, and would trust any object that has a
        # method `__html__`.
        finalize=_finalized,
        undefined=StrictUndefined,
        loader=PackageLoader("toolparse_lab", "."),
        auto_reload=False,  # the files of an installed package do not change
        extensions=[Layout],
    )
    environment.globals["counted"] = counted
    return environment


def _joint(line_break: re.Match[str]) -> str:
    """Return the stand-in that a line break of a template stands for.

    See the rules above.
    """
    if line_break["after"] is not None or line_break["before"] is not None:
        return ""
    return " "


def _finalized(value: object) -> Markup:
    """Return a value as a template writes it. No subclass of Markup is trusted."""
    if type(value) is Markup:
        return value
    return escaped(value)
