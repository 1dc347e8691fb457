"""Robust XML: elements named after parameters, read with the schema at hand, written so that they
read back.

`parse` reads the inside of an element as an object, `read` says in addition the repairs and where
everything is. `parse_without_schema`, `parse_node`, `simplify` and `filter` work on nodes.
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
    from .element import unescape
    from .nodes import (
        filter,
        parse_node,
        parse_nodes,
        parse_without_schema,
        simplify,
        stringify_nodes,
        to_content_string,
    )
    from .parsing import VOID, Reading, parse, read
    from .reader import ElementReader
    from .writer import stringify, write_element

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
    if name not in __all__:
        raise AttributeError(f"module 'toolparse_lab.formats.rxml' has no attribute {name!r}")

    # late: reading calls does without most of it
    from . import element, nodes, parsing, reader, writer

    homes = map(vars, (parsing, nodes, writer, reader, element))
    value = globals()[name] = next(home[name] for home in homes if name in home)
    return value
