"""Writes arguments as elements that read back the same under the same schema."""

from __future__ import annotations

import re

from ..errors import UnwritableCall
from ..values import Value, write_canonical

_NAME = re.compile(r"(?![-.,:;&|+*(){}\[\]])[^\s<>/=\"'!?&]+\Z")
# The ampersand comes first, for the others bring more of them.
SPECIAL = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;"))


def escape(text: str, entities: tuple[tuple[str, str], ...] = SPECIAL) -> str:
    """Text with the five characters that mean something in XML as entities, or with others replaced in order."""
    for character, entity in entities:
        if character in text:  # replacing one by one is many times faster than str.translate
            text = text.replace(character, entity)
    return text


def write_element(name: str, value: Value) -> str:
    """`<name>…</name>`, nested values as nested elements, an empty object as `<name/>`. Raises UnwritableCall.

    A list repeats its element; where that would not read back (one item, none, lists in lists), its items are
    <item> elements.

    >>> write_element("f", {"a": [1, 2], "b": ["x"], "c": {}})
    '<f><a>1</a><a>2</a><b><item>x</item></b><c/></f>'
    """
    out: list[str] = []
    # Pieces of text to write, or (name, value, repeats) to take apart; a stack, so that depth costs no recursion.
    stack: list[str | tuple[str, Value, bool]] = [(name, value, False)]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            out.append(top)
            continue
        key, node, repeats = top
        if not _NAME.match(key):
            raise UnwritableCall("this name cannot be an element's", got=key)
        if isinstance(node, dict) and not node:
            out.append(f"<{key}/>")
            continue
        if repeats and isinstance(node, list) and len(node) > 1 and not any(isinstance(v, list) for v in node):
            stack.extend((key, v, False) for v in reversed(node))
            continue
        out.append(f"<{key}>")
        stack.append(f"</{key}>")
        if isinstance(node, dict):
            stack.extend((k, v, True) for k, v in reversed(node.items()))
        elif isinstance(node, list):
            stack.extend(("item", v, False) for v in reversed(node))
        elif isinstance(node, str):
            out.append(escape(node))
        else:
            out.append(write_canonical(node))
    return "".join(out)
