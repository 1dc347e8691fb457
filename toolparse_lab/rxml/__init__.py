"""Robust XML: elements named after parameters, read with the schema at hand, written so that they read back.

`parse` reads the inside of an element as an object, `read` says in addition what was repaired and where everything
stands; `parse_without_schema`, `parse_node`, `simplify` and `filter` work on nodes; `stringify` writes.
"""

from ..errors import (
    RXMLCoercionError,
    RXMLDuplicateStringTagError,
    RXMLError,
    RXMLParseError,
    RXMLStreamError,
    RXMLStringifyError,
)
from .nodes import filter, parse_node, parse_nodes, parse_without_schema, simplify, stringify_nodes, to_content_string
from .parsing import VOID, Reading, parse, read
from .reader import ElementReader, unescape
from .stringify import stringify
from .writer import write_element

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
