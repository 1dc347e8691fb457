"""The tool-call middleware: pure functions over messages, tools and results. Parts are its view of an answer."""

from ..parts import PartStream, failures_of, parts_of

__all__ = ["PartStream", "failures_of", "parts_of"]
