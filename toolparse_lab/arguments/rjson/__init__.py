"""Robust JSON.

`repair` reads damaged JSON and says, its changes as edits. It never invents a value.

`parse`, `transform` and `stringify` are the relaxed dialect: comments, trailing commas, single
quotes, bare words.
"""

from typing import TYPE_CHECKING, Any

from .repair import Repaired, repair

if TYPE_CHECKING:
    from .relaxed import parse, stringify, transform

__all__ = ["Repaired", "parse", "repair", "stringify", "transform"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'toolparse_lab.arguments.rjson' has no attribute {name!r}")

    from . import relaxed  # late: reading calls, and so start-up, never needs it

    value = globals()[name] = getattr(relaxed, name)
    return value
