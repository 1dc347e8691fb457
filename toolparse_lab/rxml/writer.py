"""Writes arguments as elements that read back the same under the same schema."""

from __future__ import annotations

import re

from ..errors import UnwritableCall
from ..values import Value, write_canonical

_NAME = re.compile(r"[^\s<>/=\"'!?&]+\Z")


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def write_element(name: str, value: Value) -> str:
    """`<name>…</name>`; lists as <item> elements, nested values as nested elements. Raises UnwritableCall.

    >>> write_element("f", {"a": 1, "b": ["x"]})
    '<f><a>1</a><b><item>x</item></b></f>'
    """
    out: list[str] = []
    # Pieces of text to write, or (name, value) pairs to take apart; a stack, so that depth costs no recursion.
    stack: list[str | tuple[str, Value]] = [(name, value)]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            out.append(top)
            continue
        key, node = top
        if not _NAME.match(key):
            raise UnwritableCall("this name cannot be an element's", got=key)
        out.append(f"<{key}>")
        stack.append(f"</{key}>")
        if isinstance(node, dict):
            stack.extend((k, v) for k, v in reversed(node.items()))
        elif isinstance(node, list):
            stack.extend(("item", v) for v in reversed(node))
        elif isinstance(node, str):
            out.append(escape(node))
        else:
            out.append(write_canonical(node))
    return "".join(out)
