"""Recorded outputs from elsewhere become a run: they are parsed, scored and debugged like any
other.
"""

from .build import Ingested, ingest
from .shapes import Shape

__all__ = ["Ingested", "Shape", "ingest"]
