"""Robust XML: elements named after parameters, read with the schema at hand, written so that they
read back.

`parse` reads the inside of an element as an object, `read` says in addition the repairs and where
everything is. `parse_without_schema`, `parse_node`, `simplify` and `filter` work on nodes.
`stringify` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import (
    RXMLCoercionError,
    RXMLDuplicateStringTagError,
    RXMLError,
    RXMLParseError,
    RXMLStreamError,
    RXMLStringifyError,
)
from ...core.late import late_names

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
    from .parsing import VOID, ParsedXML, parse, read
    from .reader import ElementReader
    from .stream import stream_nodes
    from .writer import stringify, write_element

__all__ = [
    "VOID",
    "ElementReader",
    "ParsedXML",
    "RXMLCoercionError",
    "RXMLDuplicateStringTagError",
    "RXMLError",
    "RXMLParseError",
    "RXMLStreamError",
    "RXMLStringifyError",
    "filter",
    "parse",
    "parse_node",
    "parse_nodes",
    "parse_without_schema",
    "read",
    "simplify",
    "stream_nodes",
    "stringify",
    "stringify_nodes",
    "to_content_string",
    "unescape",
    "write_element",
]


if not TYPE_CHECKING:
    __getattr__ = late_names(
        __name__,
        {
            "element": "unescape",
            "nodes": "filter parse_node parse_nodes parse_without_schema simplify stringify_nodes "
            "to_content_string",
            "parsing": "VOID ParsedXML parse read",
            "reader": "ElementReader",
            "stream": "stream_nodes",
            "writer": "stringify write_element",
        },
    )
