"""Robust XML: elements named after parameters, read with the schema at hand, written so that they
read back.

`parse` reads the inside of an element as an object, `read` says in addition the repairs and where
everything stands. `parse_without_schema`, `parse_node`, `simplify` and `filter` work on nodes.
`stringify` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.errors import (
    RXMLCoercionError,
    RXMLDuplicateStringTagError,
    RXMLError,
    RXMLParseError,
    RXMLStreamError,
    RXMLStringifyError,
)

if TYPE_CHECKING:
    from .api import (
        VOID,
        ElementReader,
        Reading,
        filter,
        parse,
        parse_node,
        parse_nodes,
        parse_without_schema,
        read,
        simplify,
        stringify,
        stringify_nodes,
        to_content_string,
        unescape,
        write_element,
    )

__all__ = [
    "VOID",
    "ElementReader",
    "RXMLCoercionError",
    "RXMLDuplicateStringTagError",
    "RXMLError",
    "RXMLParseError",
    "RXMLStreamError",
    "RXMLStringifyError",
    "Reading",
    "filter",
    "parse",
    "parse_node",
    "parse_nodes",
    "parse_without_schema",
    "read",
    "simplify",
    "stringify",
    "stringify_nodes",
    "to_content_string",
    "unescape",
    "write_element",
]


def __getattr__(name: str) -> Any:
    # The API loads when its first name is asked for: reading calls does without most of it.
    if name not in __all__:
        raise AttributeError(f"module 'toolparse_lab.formats.rxml' has no attribute {name!r}")

    from . import api  # late: reading calls imports what it needs of this folder by itself

    value = globals()[name] = getattr(api, name)
    return value
