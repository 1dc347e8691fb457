"""Logs of other tools, known by their keys."""

from .known import PLAIN, ShapeReader, nearest, requests_by_id, shapes, with_shapes
from .shape import CONVERSATION, Log, Shape, ShapedRow

__all__ = [
    "CONVERSATION", "PLAIN", "Log", "Shape", "ShapeReader", "ShapedRow", "nearest",
    "requests_by_id", "shapes", "with_shapes",
]  # fmt: skip
