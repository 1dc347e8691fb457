"""A file that is replaced as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .remote import is_remote, written


def replace_file(path: str | os.PathLike[str], pieces: Iterable[str]) -> Path:
    """Write pieces of text (UTF-8, line breaks as they are) into a file and return its path. It may
    be the address of a place that fsspec reaches.

    Whatever goes wrong, what is there stays as it was, and no other file is left. Raises OSError,
    and whatever `pieces` raises.
    """
    if is_remote(path):
        with written(str(path)) as own:
            replace_file(own, pieces)
        return Path(path)
    file = Path(path)
    # In the same folder, since a move between file systems is a copy that may break off.
    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as f:
            f.writelines(pieces)
        # A temporary file is its owner's alone; the new one is as open as the old.
        Path(temporary).chmod(file.stat().st_mode & 0o777 if file.exists() else 0o644)
        Path(temporary).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    return file
