"""Elements of pages and components, which may have the name of a tool."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.toolspec import ToolSpec
from ...core.types import ToolCall
from .attempts import parameter_names

_VOID = re.compile(r"area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr")
ELEMENTS = frozenset(
    (
        f"{_VOID.pattern}|a|abbr|article|aside|b|blockquote|body|button|canvas|caption|code|dd"
        "|details|dialog|div|dl|dt|em|fieldset|figcaption|figure|footer|form|h1|h2|h3|h4|h5|h6"
        "|head|header|html|i|iframe|label|legend|li|main|nav|ol|option|p|pre|section|select|small"
        "|span|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead"
        "|title|tr|u|ul|video"
    ).split("|")
)
# Of a fence: `xml` is not among them, since calls are written in it.
PAGE_FENCE = re.compile(r"`{3,}[ \t]*(?:x?html?|jsx|tsx|vue|svelte|astro|mdx)\b", re.IGNORECASE)
_FOLDS = ("details", "summary")
# An element, a fragment of JSX, or its end. Attributes may hold arrows and braces.
_TAG = re.compile(
    r"<(?P<end>/)?(?P<name>[A-Za-z][\w.-]{0,63})?"
    r"(?:\s(?:[^<>\"'{}=]|=>|=|\"[^\"]*\"|'[^']*'|\{[^{}]*\})*?)?(?P<whole>/)?>"
)


def _is_element(name: str) -> bool:
    # A fragment, or a component, whose name begins with a capital letter as no format's tag does.
    return not name or name in ELEMENTS or (name[0].isupper() and not name.isupper())


def evidence_of_page(before: str) -> str:
    """Return the evidence that an element after this text is one of a page or a component, '' for
    none. `details` counts for none, as people fold plain text with it.

    >>> evidence_of_page("<div>\\n  <h1>A</h1>\\n  "), evidence_of_page("<p>Now I call it.</p>\\n")
    ('page', 'beside-element')
    """
    if ">" not in before:
        return ""
    is_open: list[str] = []
    end = -1
    for tag in _TAG.finditer(before):
        name = tag["name"] or ""
        if not _is_element(name) or name in _FOLDS:
            continue
        end = tag.end()
        if tag["end"]:
            if name in is_open:
                del is_open[len(is_open) - 1 - is_open[::-1].index(name) :]
        elif not tag["whole"] and not _VOID.fullmatch(name):
            is_open.append(name)
    if is_open:
        return "page"
    return "beside-element" if end >= 0 and not before[end:].strip() else ""


def begins_with_element(after: str) -> bool:
    """Return True if the next thing in a text is an element of a page, or the end of one."""
    tag = _TAG.match(after.lstrip())
    name = tag["name"] or "" if tag is not None else "-"
    return _is_element(name) and name not in _FOLDS


def may_be_page(name: str, arguments: Mapping[str, object]) -> bool:
    """Return True if a call and some of its arguments are called like elements."""
    return name in ELEMENTS and not ELEMENTS.isdisjoint(arguments)


def says_page(call: ToolCall, tool: ToolSpec | None) -> bool:
    """Return True if what was read as a call is a part of a page: its name is that of an element,
    and text or elements are in it that are no parameters of its tool.
    """
    if call.name not in ELEMENTS or tool is None or call.status != "ok":
        return False
    names = parameter_names([tool])
    others = [name for name in call.arguments if name not in names]
    loose = any(problem.code == "decode.loose-text" for problem in call.problems)
    return loose or not ELEMENTS.isdisjoint(others)
