"""The type of the stand-ins for a protocol, and the shape of another's protocol object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from typing import Protocol as Shape

from .base import Protocol


class ProtocolObject(Shape):
    """A protocol object of your own, with the methods of an AI SDK's in snake case.

    Reading a text needs this one alone.
    """

    @property
    def parse_generated_text(self) -> Callable[..., Any]:
        """Reads a whole answer."""


class CamelProtocolObject(Shape):
    """The same in camel case."""

    @property
    def parseGeneratedText(self) -> Callable[..., Any]:  # noqa: N802 - their spelling
        """Reads a whole answer."""


AnyProtocolObject: TypeAlias = (
    ProtocolObject | CamelProtocolObject | Mapping[str, Callable[..., Any]]
)
ProtocolLike: TypeAlias = (
    str | Protocol | AnyProtocolObject | Callable[[], Protocol | AnyProtocolObject]
)
"""An id, an alias, 'auto', a Protocol, a protocol object of your own, or a function that makes
one."""
