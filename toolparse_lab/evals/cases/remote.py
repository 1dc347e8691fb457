"""Files that stand elsewhere (`s3://`, `gs://`, `hf://`, `https://`, …), fetched by fsspec."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from ...core.errors import MissingExtra, UnreadableInput

# A letter alone is a drive of Windows; addresses of databases are stores.
_URL = re.compile(r"(?!(?:sqlite|postgres(?:ql)?)\b)[a-z][a-z0-9+.-]+(?:::[a-z0-9+.-]+)*://", re.I)


def is_remote(source: Any) -> bool:
    """Return True for the address of a file that fsspec fetches.

    >>> is_remote("s3://logs/today.jsonl"), is_remote("C://log.jsonl"), is_remote("log.jsonl")
    (True, False, False)
    """
    return isinstance(source, str) and "\n" not in source and _URL.match(source) is not None


def local_path(source: str | Path) -> Path:
    """Return the path of a file, fetched first where it stands elsewhere.

    A file is fetched once for each time that it is asked for, and deleted with the process. Raises
    UnreadableInput, and MissingExtra without fsspec or its package for that place.
    """
    if not is_remote(source):
        return Path(source)
    url = str(source)
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(
            "files that stand elsewhere are fetched by fsspec",
            got=url,
            hint="in a checkout: pip install '.[remote]'",
        ) from None
    name = PurePosixPath(urlsplit(url).path).name or "file"
    target = Path(tempfile.mkdtemp(dir=_folder()), name)
    try:
        with fsspec.open(url, "rb") as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
    except ImportError as e:  # s3fs, gcsfs, huggingface_hub, …
        raise MissingExtra("fsspec needs a package for this place", got=f"{url}: {e}") from None
    except Exception as e:  # each place has errors of its own
        raise UnreadableInput(
            "the file cannot be fetched", got=f"{url}: {type(e).__name__}: {str(e)[:200]}"
        ) from None
    return target


@lru_cache(maxsize=1)
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="toolparse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
