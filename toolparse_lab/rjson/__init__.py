"""Robust JSON. `repair` reads damaged JSON and says, as edits, what it changed; it never invents a value."""

from .repair import Repaired, repair

__all__ = ["Repaired", "repair"]
