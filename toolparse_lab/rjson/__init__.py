"""Robust JSON. `repair` reads damaged JSON and says, as edits, what it changed; it never invents a value.

`parse`, `transform` and `stringify` are the relaxed dialect: comments, trailing commas, single quotes, bare words.
"""

from .relaxed import parse, stringify, transform
from .repair import Repaired, repair

__all__ = ["Repaired", "parse", "repair", "stringify", "transform"]
