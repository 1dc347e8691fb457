"""All of rxml's public names in one place, imported together when the first one is asked for."""

from __future__ import annotations

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
from .stringifier import stringify
from .text import unescape
from .writer import write_element

__all__ = [
    "VOID",
    "ElementReader",
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
