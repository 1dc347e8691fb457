"""Wire formats: how a call opens and closes, how its body is read, how calls and results are
written.
"""

from .base import DecodeContext, Decoded, Opening, Protocol

__all__ = ["DecodeContext", "Decoded", "Opening", "Protocol"]
