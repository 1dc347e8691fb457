"""The gateway: an OpenAI-compatible endpoint that gives tool calls to a model behind another one.

A request comes in through the HTTP server of the embedded model's endpoint
(`runner/local/gate.py`), is read here, asked by the litellm bridge, and answered in OpenAI's shape,
whole or streamed. Anything that passes can be recorded in a lab's store.
"""

from .server import Gateway, serve, serve_local_with_tools

__all__ = ["Gateway", "serve", "serve_local_with_tools"]
