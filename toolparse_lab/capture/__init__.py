"""Recorded answers of any client as what the model wrote: response objects, dicts, stream chunks,
event streams."""

from .captured import Captured, CapturedChunk, capture

__all__ = ["Captured", "CapturedChunk", "capture"]
