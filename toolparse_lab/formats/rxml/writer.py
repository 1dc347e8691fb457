"""Writes arguments as elements that read back the same under the same schema."""

from __future__ import annotations

import re
from typing import TypeAlias

from ...core.errors import UnwritableCall
from ...core.values import Value, write_canonical

# How it works. What is written must read back the same under the same schema, whatever the reader's
# rules for lists are. A list of two or more plain items is written as its element again and again;
# where that would not come back as a list, its items are wrapped in <item>. A name that could not
# be an element's makes the call unwritable; there is no escape for names in XML.

_NAME = re.compile(r"(?![-.,:;&|+*(){}\[\]])[^\s<>/=\"'!?&]+\Z")
# The ampersand comes first, for the others bring more of them.
SPECIAL = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;"))

_Todo: TypeAlias = str | tuple[str, Value, bool]
"""A piece of text to write, or (name, value, repeats) to take apart."""


def escape(text: str, entities: tuple[tuple[str, str], ...] = SPECIAL) -> str:
    # `&` must come first among the entities.
    for character, entity in entities:
        if character in text:  # replacing one by one is many times faster than str.translate
            text = text.replace(character, entity)

    return text


def write_element(name: str, value: Value) -> str:
    """Return `<name>…</name>`, nested values as nested elements.

    An empty object is `<name/>`. Raises UnwritableCall.

    A list repeats its element. If that would not read back (one item, none, lists in lists), its
    items are <item> elements.

    >>> write_element("f", {"a": [1, 2], "b": ["x"], "c": {}})
    '<f><a>1</a><a>2</a><b><item>x</item></b><c/></f>'
    """
    out: list[str] = []
    stack: list[_Todo] = [(name, value, False)]  # a stack, so that depth costs no recursion
    while stack:
        # A string is ready to be written; everything else is taken apart once more.
        top = stack.pop()
        if isinstance(top, str):
            out.append(top)
        else:
            _take_apart(stack, *top)

    return "".join(out)


def _take_apart(stack: list[_Todo], key: str, node: Value, repeats: bool) -> None:
    if not _NAME.match(key):
        raise UnwritableCall("this name cannot be an element's", got=key)

    if repeats and _reads_back_repeated(node):
        stack.extend((key, item, False) for item in reversed(node))
    elif isinstance(node, dict) and not node:
        stack.append(f"<{key}/>")
    else:
        # In reverse: what goes on the stack last is written first.
        stack.append(f"</{key}>")
        _put_inside(stack, node)
        stack.append(f"<{key}>")


def _reads_back_repeated(node: Value) -> bool:
    # One element alone reads as the value itself, and a list in a list as more of the outer
    # one.
    if not isinstance(node, list) or len(node) < 2:
        return False
    return not any(isinstance(item, list) for item in node)


def _put_inside(stack: list[_Todo], node: Value) -> None:
    if isinstance(node, dict):
        stack.extend((key, member, True) for key, member in reversed(node.items()))
    elif isinstance(node, list):
        stack.extend(("item", item, False) for item in reversed(node))
    elif isinstance(node, str):
        stack.append(escape(node))
    else:
        stack.append(write_canonical(node))
