"""Files that stand elsewhere (`s3://`, `gs://`, `hf://`, `https://`, …), by fsspec."""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from .errors import MissingExtra, StoreError, UnreadableInput

# A letter alone is a drive of Windows; addresses of databases are stores.
_URL = re.compile(r"(?!(?:sqlite|postgres(?:ql)?)\b)[a-z][a-z0-9+.-]+(?:::[a-z0-9+.-]+)*://", re.I)

_UNFETCHED = "the file cannot be fetched"


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
    target = _own_path(str(source))
    url = str(source)
    with (
        _of_place(url, _UNFETCHED, UnreadableInput),
        opened(url) as file,
        target.open("wb") as copy,
    ):
        shutil.copyfileobj(file, copy)
    return target


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """Open a file that stands elsewhere to read bytes of it. Raises as `local_path`."""
    with _of_place(url, _UNFETCHED, UnreadableInput):
        file = _fsspec(url).open(url, "rb").open()
    try:
        yield file
    finally:
        file.close()


def remote_files(url: str, ending: str) -> list[str]:
    """Return the addresses that a pattern, a folder or a file stands for, sorted: of a folder those
    of its files with an ending. Raises as `local_path`.
    """
    with _of_place(url, "the files cannot be listed", UnreadableInput):
        place, path = _fsspec(url).core.url_to_fs(url)
        if any(sign in url for sign in "*?["):
            found = place.glob(path)
        else:
            found = [path] if place.isfile(path) else place.find(path)
            found = [name for name in found if name == path or name.endswith(ending)]
        return sorted(map(place.unstrip_protocol, found))


@contextmanager
def written(target: str | Path) -> Iterator[Path]:
    """Give the path of a file to write, which is then put where it is to stand. Raises StoreError
    where it cannot be put there, and MissingExtra.
    """
    if not is_remote(target):
        yield Path(target)
        return
    url = str(target)
    path = _own_path(url)
    yield path
    with _of_place(url, "the file cannot be put there", StoreError):
        place, name = _fsspec(url).core.url_to_fs(url)
        place.put_file(str(path), name)
    path.unlink()


def _fsspec(url: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(
            "files that stand elsewhere are reached by fsspec",
            got=url,
            hint="in a checkout: pip install '.[remote]'",
        ) from None
    return fsspec


@contextmanager
def _of_place(url: str, message: str, error: type[UnreadableInput | StoreError]) -> Iterator[None]:
    # Each place has errors of its own.
    try:
        yield
    except (MissingExtra, UnreadableInput, StoreError):
        raise
    except ImportError as e:  # s3fs, gcsfs, huggingface_hub, …
        raise MissingExtra("fsspec needs a package for this place", got=f"{url}: {e}") from None
    except Exception as e:
        raise error(message, got=f"{url}: {type(e).__name__}: {str(e)[:200]}") from None


def _own_path(url: str) -> Path:
    name = PurePosixPath(urlsplit(url).path).name or "file"
    return Path(tempfile.mkdtemp(dir=_folder()), name)


@lru_cache(maxsize=1)
def _folder() -> str:
    folder = tempfile.mkdtemp(prefix="toolparse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
