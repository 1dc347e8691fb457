"""Logs of other tools, known by their keys."""

from .known import PLAIN, requests_by_id, shaped, shapes
from .shape import CONVERSATION, Log, Shape, ShapedRow

__all__ = [
    "CONVERSATION",
    "PLAIN",
    "Log",
    "Shape",
    "ShapedRow",
    "requests_by_id",
    "shaped",
    "shapes",
]
