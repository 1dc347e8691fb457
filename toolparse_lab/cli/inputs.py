"""Files that verbs read: a text as it was written, tools as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..errors import BadToolSpec, UnreadableInput


def read_text(name: str) -> str:
    """A text as it was written, whatever bytes it holds; `-` is standard input."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as e:
        raise UnreadableInput(f"{name}: {e.strerror or e}") from None
    # Bytes that are no UTF-8 become lone surrogates, which the parser takes as they are.
    return content.decode("utf-8", "surrogateescape")


def read_tools(name: str | None) -> Any:
    """The tools of a JSON file, None for no file; raises BadToolSpec and UnreadableInput."""
    if name is None:
        return None
    try:
        return json.loads(read_text(name))
    except ValueError as e:
        raise BadToolSpec(
            "the tools file is no JSON", got=f"{name}: {e}", expected="a list of tools"
        ) from None
