"""Robust XML: elements named after parameters, read with the schema at hand, written so that they read back."""

from .reader import ElementReader
from .writer import write_element

__all__ = ["ElementReader", "write_element"]
