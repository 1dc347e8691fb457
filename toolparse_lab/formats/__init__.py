"""Wire formats: how a call opens and closes, how its body is read, how calls and results are
written.
"""

from .base import Decoded, Opening, Protocol, Reading

__all__ = ["Decoded", "Opening", "Protocol", "Reading"]
