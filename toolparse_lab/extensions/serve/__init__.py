"""Serve models: tool calling before an endpoint, requests that pass and are recorded, the embedded
model, and our parser in vLLM and SGLang.

`from toolparse_lab.extensions.serve import serve, serve_local, proxy, Recorder`. Each is an HTTP
server on a thread of its own, apart from `Recorder`, a callback of litellm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...core.late import late_names

if TYPE_CHECKING:
    from .gateway import Gateway, serve
    from .litellm_recorder import Recorder, recorder
    from .local import LocalServer, serve_local
    from .pass_through import Proxy, proxy
    from .run_recorder import RunRecorder
else:
    __getattr__ = late_names(
        __name__,
        {
            "gateway": "Gateway serve",
            "litellm_recorder": "Recorder recorder",
            "local": "LocalServer serve_local",
            "pass_through": "Proxy proxy",
            "run_recorder": "RunRecorder",
        },
    )

__all__ = [
    "Gateway", "LocalServer", "Proxy", "Recorder", "RunRecorder", "proxy", "recorder", "serve",
    "serve_local",
]  # fmt: skip

VERBS: Mapping[str, tuple[str, str]] = {
    "serve": (
        "verbs",
        "put tool calling in front of an endpoint, record what passes to it, or serve the embedded "
        "model",
    )
}
