"""A request and its response as they passed by, in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

End: TypeAlias = Literal["whole", "cut", "caller", "unreachable"]
"""How a response ended: whole, cut off by the server, left by the caller, or it never began."""


@dataclass(frozen=True, slots=True)
class Passed:
    """One exchange as it will be recorded.

    Attributes:
        app: the application that asked, by the name that its operator gave it.
        created: when the request came, ISO time.
        path: of the request, without its query. It says which API this is.
        request, response: the bodies, decompressed, with the bytes that passed.
        pieces: of the response, (seconds since the request, bytes) each.
        fidelity: `wire` for bytes that passed, `sdk` for what a client made of them.
        facts: method, query, headers and whatever else is known, as JSON.
    """

    app: str
    created: str
    path: str
    request: bytes = b""
    response: bytes = b""
    status: int | None = None
    pieces: tuple[tuple[float, int], ...] = ()
    seconds: float = 0.0
    end: End = "whole"
    fidelity: Literal["wire", "sdk"] = "wire"
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of both bodies."""
        return len(self.request) + len(self.response)
