"""Parsers of vLLM, SGLang and transformers by name: released code, in processes of its own.

`reader` makes one to pass where a protocol is; `stream_diff` sets two of them beside each other
over recorded answers, whole and in chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...core.late import late_names

if TYPE_CHECKING:
    from .packages import add_reader, readers_added, remove_reader
    from .released import reader
    from .streams import StreamDiff, stream_diff

__all__ = [
    "VERBS", "StreamDiff", "add_reader", "reader", "readers_added", "remove_reader", "stream_diff",
]  # fmt: skip

VERBS: Mapping[str, tuple[str, str]] = {
    "reader": ("verbs", "fetch the parsers of a release of vLLM, SGLang or transformers")
}

if not TYPE_CHECKING:
    __getattr__ = late_names(
        __name__,
        {
            "packages": "add_reader readers_added remove_reader",
            "released": "reader",
            "streams": "StreamDiff stream_diff",
        },
    )
