"""Recorded answers of any client as the model's own text: response objects, dicts, stream chunks,
event streams.
"""

from .captured import Captured, CapturedChunk, capture
from .frames import frames_in

__all__ = ["Captured", "CapturedChunk", "capture", "frames_in"]
