"""The transparent proxy: it passes every request on as it came, and records what models are asked
and answer.
"""

from .server import Proxy, proxy

__all__ = ["Proxy", "proxy"]
