"""Recorded outputs from elsewhere become a run: they are parsed, scored and debugged like any
other.
"""

from .build import Ingested, ingest

__all__ = ["Ingested", "ingest"]
