"""Whatever a caller names a protocol by, as the object that reads and writes: the door for ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from ..formats.auto import AUTO
from ..formats.base import Protocol
from ..formats.registry import protocol_of
from .foreign.protocol import ForeignProtocol, adapt

AnyProtocol: TypeAlias = Protocol | ForeignProtocol
"""A protocol of ours, or somebody else's object behind our names."""


def any_protocol(x: Any) -> AnyProtocol:
    """Return the protocol of an id, an alias, 'auto', an object of one's own or a factory of one.

    Raises UnknownProtocol.
    """
    if isinstance(x, str):
        return AUTO if x == "auto" else protocol_of(x)
    return adapt(x) or protocol_of(x)


def is_native(x: Any) -> bool:
    """Return True if a caller means the provider's own tool calling."""
    return isinstance(x, str) and x == "native"


def listed_names(x: Any) -> list[Any]:
    """Return the names or protocols that a caller gave, as a list: one alone may stand for
    itself.
    """
    if isinstance(x, str) or not isinstance(x, Iterable):
        return [x]
    # A mapping of methods is a protocol, though one can iterate over it.
    return [x] if adapt(x) is not None else list(x)
