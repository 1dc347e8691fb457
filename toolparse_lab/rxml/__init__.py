"""Robust XML: elements named after parameters, read with the schema at hand, written so that they read back.

`parse` reads the inside of an element as an object, `read` says in addition what was repaired and where everything
stands; `parse_without_schema`, `parse_node`, `simplify` and `filter` work on nodes; `stringify` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import (
    RXMLCoercionError,
    RXMLDuplicateStringTagError,
    RXMLError,
    RXMLParseError,
    RXMLStreamError,
    RXMLStringifyError,
)

if TYPE_CHECKING:
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

_PARSING = frozenset(("VOID", "Reading", "parse", "read"))
_NODES = frozenset(
    (
        "filter", "parse_node", "parse_nodes", "parse_without_schema", "simplify", "stringify_nodes",
        "to_content_string",
    )
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Everything is imported when it is first asked for."""
    module: Any
    if name in _PARSING:
        from . import parsing as module
    elif name in _NODES:
        from . import nodes as module
    elif name == "ElementReader":
        from . import reader as module
    elif name == "stringify":
        from . import stringifier as module
    elif name == "unescape":
        from . import text as module
    elif name == "write_element":
        from . import writer as module
    else:
        raise AttributeError(f"module 'toolparse_lab.rxml' has no attribute {name!r}")
    value = globals()[name] = getattr(module, name)
    return value


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
