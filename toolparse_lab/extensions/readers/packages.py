"""Released parsers on disk: `add_reader` fetches them, nothing else does.

The part of a package that its parsers need comes from the index that pip or uv is set to, by its
simple API, is checked against the index's SHA-256 and kept in the cache folder, next to one
environment with what parsers import.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import netrc
import os
import shlex
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any

from ...core.errors import BadOptions, SetupError, UnknownName, near
from .process import Launch, OutsideParser, worker_command

CACHE = "TOOLPARSE_CACHE"
"""The environment variable that names the cache folder."""
ENVIRONMENT = ("pydantic>=2.9", "openai>=1.99", "regex", "partial-json-parser", "orjson", "msgspec")
"""What the parsers import: some 80 MB, and neither torch nor transformers."""
_PYPI = "https://pypi.org/simple"
_SECONDS = 60.0
_PIECE = 1 << 20
_MOST_PART = 64 << 20  # bytes of code that are unpacked, and of a page of the index
_SIMPLE = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
_SHOWN = 40  # versions
_MOST_OUTPUT = 1_500


@dataclass(frozen=True, slots=True)
class Package:
    """A package with parsers in it, and the part of it that they need.

    folders, files: below the package. A file named `protocol.py` is always taken.
    """

    name: str
    engine: str
    folders: tuple[str, ...]
    files: tuple[str, ...]

    def needs(self, path: PurePosixPath) -> bool:
        text = path.as_posix()
        return path.suffix == ".py" and (
            text.startswith(self.folders) or text in self.files or path.name == "protocol.py"
        )


PACKAGES = {
    "vllm": Package(
        "vllm",
        "vllm",
        ("tool_parsers/", "parser/", "reasoning/", "entrypoints/openai/tool_parsers/"),
        ("envs.py", "exceptions.py", "entrypoints/openai/serving_chat.py",
         "entrypoints/openai/chat_completion/serving.py"),
    ),
    "sglang": Package(
        "sglang", "sglang", ("srt/function_call/", "srt/parser/"), ("srt/environ.py",)
    ),
    "transformers": Package("transformers", "hf", ("utils/chat_parsing/",), ()),
}  # fmt: skip
"""By the name on the index."""


@dataclass(frozen=True, slots=True)
class AddedReader:
    """A released package whose parsers can be used.

    parsers: the names after the colon. file, sha256: what was fetched, as the index named it.
    """

    package: str
    version: str
    parsers: tuple[str, ...]
    file: str
    sha256: str
    folder: str

    def __str__(self) -> str:
        return f"{self.package}=={self.version}"


def cache_folder() -> Path:
    """Return the folder in which added readers are kept."""
    if chosen := os.environ.get(CACHE):
        return Path(chosen, "readers")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "toolparse", "readers")


def readers_added() -> tuple[AddedReader, ...]:
    """Return the readers that were added, by package, the newest version last."""
    found = []
    for record in cache_folder().glob("*/reader.json"):
        # Of a folder that somebody damaged there is no reader.
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            row = json.loads(record.read_text("utf-8"))
            row["parsers"] = tuple(row["parsers"])
            found.append(AddedReader(**row, folder=str(record.parent)))
    return tuple(sorted(found, key=lambda one: (one.package, _version_key(one.version))))


def _version_key(version: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((1, int(p), "") if p.isdigit() else (0, 0, p) for p in version.split("."))


def spec_of(text: str) -> tuple[Package, str]:
    """Return the package and the version of `vllm==0.33.0`. Raises BadOptions and UnknownName."""
    name, equal, version = str(text).strip().partition("==")
    # A version becomes a folder's name.
    if not equal or not version.replace(".", "").replace("+", "").replace("-", "").isalnum():
        raise BadOptions(
            "a reader is a package and its exact version", got=text, expected="such as vllm==0.33.0"
        )
    name = name.strip().lower()
    if name not in PACKAGES:
        raise UnknownName(
            "no parsers of this package can be read",
            got=name,
            expected=", ".join(PACKAGES),
            hint=near(name, PACKAGES) or "any other parser: reader(command=[…])",
            code="unknown-reader",
        )
    return PACKAGES[name], version.strip()


def reader_added(package: str, version: str = "") -> AddedReader:
    """Return an added reader, the newest of its package without a version.

    Raises SetupError, which names the command that adds it.
    """
    added = [one for one in readers_added() if one.package == package]
    fitting = [one for one in added if version in ("", one.version)]
    if not fitting:
        raise SetupError(
            f"the reader {package}{f'=={version}' if version else ''} was not added",
            got=", ".join(map(str, readers_added())) or "none was added yet",
            hint=f"toolparse reader add {package}=={version or 'VERSION'}",
            code="reader-not-added",
        )
    return fitting[-1]


def python_of_readers() -> str:
    name = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    return str(cache_folder() / "environment" / name)


def remove_reader(text: str) -> AddedReader:
    """Remove a reader from the disk, and the environment with the last one.

    Raises SetupError for one that was not added.
    """
    package, version = spec_of(text)
    added = reader_added(package.name, version)
    shutil.rmtree(added.folder, ignore_errors=True)
    if not readers_added():
        shutil.rmtree(cache_folder(), ignore_errors=True)
    return added


def add_reader(text: str) -> AddedReader:
    """Fetch the parsers of a package, such as `vllm==0.33.0`, and return what was added.

    Code of the package runs once here, in a process of its own, for the names of its parsers. What
    was added before comes back as it is. Raises SetupError with a code: `index-unreachable`,
    `no-such-package`, `no-such-version`, `damaged-download`, `no-space`, `cache-unusable`,
    `environment-failed`, `reader-not-started`.
    """
    package, version = spec_of(text)
    with contextlib.suppress(SetupError):
        if Path(python_of_readers()).exists():
            return reader_added(package.name, version)
    root = cache_folder()
    with _disk_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".adding-", dir=root) as name:
            part = Path(name, "part")
            link = _link_of(package.name, version)
            file = Path(name, "file")
            link.fetch(file)
            _unpack(package, link.filename, file, part)
            file.unlink()
            _make_environment()
            record = {
                "package": package.name,
                "version": version,
                "parsers": parser_names(package, part, python_of_readers()),
                "file": link.filename,
                "sha256": link.sha256,
            }
            (part / "reader.json").write_text(json.dumps(record, indent=1), "utf-8")
            folder = root / f"{package.name}-{version}"
            shutil.rmtree(folder, ignore_errors=True)
            # Of two that add the same at once, one is as good as the other.
            with contextlib.suppress(FileExistsError):
                part.replace(folder)
    return reader_added(package.name, version)


def parser_names(package: Package, tree: Path, python: str) -> list[str]:
    """Return the names of the parsers in a tree. Raises SetupError if its code cannot be loaded."""
    settings = {"engine": package.engine, "tree": str(tree), "parser": "", "reasoning": ""}
    launch = Launch(package.name, "", worker_command(python), tuple(settings.items()))
    parser = OutsideParser(launch)
    try:
        return parser.names()
    finally:
        parser.close()


@contextlib.contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        full = e.errno in (errno.ENOSPC, errno.EDQUOT)
        raise SetupError(
            "the disk is full" if full else "the cache folder cannot be used",
            got=f"{root}: {e.strerror or e}",
            expected="a folder that can be written, with 200 MB of space",
            hint=f"make room, or name another folder in {CACHE}",
            code="no-space" if full else "cache-unusable",
        ) from e


# The index


@dataclass(frozen=True, slots=True)
class _Link:
    filename: str
    url: str
    sha256: str
    size: int | None

    def fetch(self, to: Path) -> None:
        digest = hashlib.sha256()
        with _opened(self.url) as source, to.open("wb") as out:
            while piece := _piece_of(source, self.url):
                digest.update(piece)
                out.write(piece)
        if digest.hexdigest() != self.sha256:
            raise SetupError(
                f"{self.filename} is not the file that the index describes",
                got=f"sha256 {digest.hexdigest()}",
                expected=f"sha256 {self.sha256}",
                hint="try again; if it stays so, ask whoever runs the index",
                code="damaged-download",
            )


def _piece_of(source: Any, url: str) -> bytes:
    try:
        piece: bytes = source.read(_PIECE)
    except (OSError, ValueError) as e:
        raise _unreachable(url, e) from e
    return piece


def index_urls() -> list[str]:
    """Return the addresses of the indexes by the settings of uv or pip, the main one first."""
    environ = os.environ
    main = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    more = f"{environ.get('UV_INDEX', '')} {environ.get('UV_EXTRA_INDEX_URL', '')}".split()
    if not main and not more:
        settings = _pip_settings()
        main = settings.get("index-url")
        more = settings.get("extra-index-url", "").split()
    # uv allows a name before the address.
    urls = [url.rpartition("=")[2] if "://" in url.partition("=")[2] else url for url in more]
    return [url.rstrip("/") for url in (main or _PYPI, *urls)]


def _pip_settings() -> dict[str, str]:
    # pip itself knows its files and their order. Its variables say the same where it is absent.
    out: dict[str, str] = {}
    command = [sys.executable, "-m", "pip", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    for line in done.stdout.splitlines() if done.returncode == 0 else ():
        name, _, value = line.partition("=")
        with contextlib.suppress(ValueError, IndexError):
            # Later lines are those of the environment, which go before files.
            out[name.rpartition(".")[2].strip()] = shlex.split(value)[0].strip()
    for name in ("index-url", "extra-index-url", "cert"):
        if chosen := os.environ.get("PIP_" + name.upper().replace("-", "_")):
            out[name] = chosen
    return out


def _link_of(name: str, version: str) -> _Link:
    versions: set[str] = set()
    seen = False
    failures: list[SetupError] = []
    for index in index_urls():
        page = f"{index}/{name}/"
        try:
            links = list(_links_on(page))
        except SetupError as e:
            if e.code != "no-such-package":
                failures.append(e)
            continue
        seen = True
        fitting = [one for one in links if _version_of(one.filename, name) == version]
        versions |= {v for one in links if (v := _version_of(one.filename, name))}
        if fitting:
            # Either holds the code, and a wheel may be ten times as large for what is compiled.
            return min(
                fitting,
                key=lambda one: (one.size is None, one.size or 0, one.filename.endswith(".whl")),
            )
    if failures and not versions:
        raise failures[0]
    if not seen:
        raise SetupError(
            "the index has no such package",
            got=name,
            expected=", ".join(map(_shown, index_urls())),
            hint="add an index that has it: PIP_INDEX_URL, or pip config",
            code="no-such-package",
        )
    newest = sorted(versions, key=_version_key, reverse=True)[:_SHOWN]
    raise SetupError(
        f"no version {version} of {name} that can be read is on the index",
        got=version,
        expected=", ".join(newest),
        hint=near(version, versions),
        code="no-such-version",
    )


def _version_of(filename: str, name: str) -> str:
    # "" for a file that is neither a source archive nor a wheel of the package.
    head, _, rest = filename.partition("-")
    if head.lower().replace("_", "-") != name:
        return ""
    if rest.endswith(".tar.gz"):
        return rest.removesuffix(".tar.gz")
    return rest.partition("-")[0] if rest.endswith(".whl") else ""


class _Anchors(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, Any]] = []  # as the index has them in JSON

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        url, _, fragment = (dict(attrs).get("href") or "").partition("#")
        if tag == "a" and url:
            filename = urllib.parse.unquote(url.partition("?")[0].rpartition("/")[2])
            digest = urllib.parse.parse_qs(fragment).get("sha256", [""])[0]
            self.rows.append({"filename": filename, "url": url, "hashes": {"sha256": digest}})


def _links_on(page: str) -> Iterator[_Link]:
    with _opened(page) as source:
        body = source.read(_MOST_PART)
        address = source.url
    if body.lstrip()[:1] == b"{":
        rows = json.loads(body).get("files", ())
    else:
        anchors = _Anchors()
        anchors.feed(body.decode("utf-8", "replace"))
        rows = anchors.rows
    for row in rows:
        digest = (row.get("hashes") or {}).get("sha256", "")
        # A file without a digest cannot be checked, so it is not there.
        if digest:
            url = _with_login(urllib.parse.urljoin(address, row["url"]), page)
            yield _Link(row["filename"], url, digest, row.get("size"))


def _with_login(url: str, page: str) -> str:
    # Files on the host of the index are asked for with its login.
    of_page, parts = urllib.parse.urlsplit(page), urllib.parse.urlsplit(url)
    if "@" in of_page.netloc and of_page.hostname == parts.hostname and "@" not in parts.netloc:
        login = of_page.netloc.rpartition("@")[0]
        return parts._replace(netloc=f"{login}@{parts.netloc}").geturl()
    return url


def _opened(url: str) -> Any:
    # Raises SetupError. Logins are sent in a header, since urllib takes none in an address.
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        path = Path(urllib.request.url2pathname(parts.path))
        if path.is_dir():
            url = (path / "index.html").as_uri()
    elif parts.scheme not in ("http", "https"):
        raise _unreachable(url, ValueError("not an address of http, https or file"))
    login, _, host = parts.netloc.rpartition("@")
    request = urllib.request.Request(  # noqa: S310 - the schemes were looked at
        parts._replace(netloc=host).geturl() if login else url, headers={"Accept": _SIMPLE}
    )
    if not login:
        with contextlib.suppress(OSError, netrc.NetrcParseError):
            known = netrc.netrc().authenticators(parts.hostname or "")
            login = f"{known[0]}:{known[2]}" if known else ""
    if login and parts.scheme != "file":
        plain = urllib.parse.unquote(login).encode()
        request.add_unredirected_header(
            "Authorization", "Basic " + base64.b64encode(plain).decode()
        )
    cert = os.environ.get("SSL_CERT_FILE") or os.environ.get("PIP_CERT")
    try:
        context = ssl.create_default_context(cafile=cert if cert and Path(cert).is_file() else None)
        return urllib.request.urlopen(request, timeout=_SECONDS, context=context)  # noqa: S310
    except (OSError, ValueError) as e:
        status = None
        if isinstance(e, urllib.error.HTTPError):
            e.close()
            status = e.code
        if status == 404 or isinstance(getattr(e, "reason", e), FileNotFoundError):
            raise SetupError(
                "the index has no such page", got=_shown(url), code="no-such-package"
            ) from None
        raise _unreachable(url, e) from e


def _unreachable(url: str, e: Exception) -> SetupError:
    return SetupError(
        "the package index cannot be reached",
        got=f"{_shown(url)}: {getattr(e, 'reason', None) or e}",
        expected="the index that pip or uv is set to",
        hint="check the network and PIP_INDEX_URL; readers that were added work offline",
        code="index-unreachable",
    )


def _shown(url: str) -> str:
    # Without its login and query.
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


# The part


def _unpack(package: Package, filename: str, file: Path, to: Path) -> None:
    count = total = 0
    try:
        for path, opened in _members(filename, file):
            inner = _inside(package, path)
            if inner is None or not package.needs(inner):
                continue
            with opened() as source:
                content = source.read()
            total += len(content)
            if total > _MOST_PART:
                raise ValueError(f"more than {_MOST_PART} bytes of code")
            place = to / package.name / inner
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            count += 1
    except (tarfile.TarError, zipfile.BadZipFile, ValueError, EOFError) as e:
        raise SetupError(
            f"{filename} cannot be unpacked", got=str(e), code="damaged-download"
        ) from e
    if not count:
        raise SetupError(
            f"{filename} holds no parsers",
            got="no file of the known folders",
            expected=", ".join((*package.folders, *package.files)),
            hint="another version may have them",
            code="no-such-version",
        )


def _members(filename: str, file: Path) -> Iterator[tuple[PurePosixPath, Any]]:
    if filename.endswith(".whl"):
        with zipfile.ZipFile(file) as wheel:
            for name in wheel.namelist():
                yield PurePosixPath(name), partial(wheel.open, name)
        return
    with tarfile.open(file) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            yield PurePosixPath(member.name), partial(archive.extractfile, member)


def _inside(package: Package, path: PurePosixPath) -> PurePosixPath | None:
    # The path below the package, None for what is elsewhere.
    parts = path.parts
    if ".." in parts or path.is_absolute():
        return None
    for depth in range(min(3, len(parts))):
        above = parts[1:depth]
        if parts[depth] == package.name and all(part in ("src", "python") for part in above):
            return PurePosixPath(*parts[depth + 1 :])
    return None


def _make_environment() -> None:
    # An environment of its own, so that no package of the caller changes what a parser reads.
    python = Path(python_of_readers())
    folder = cache_folder() / "environment"
    ready = folder / "ready"
    wanted = "\n".join(ENVIRONMENT)
    if python.exists() and ready.is_file() and ready.read_text("utf-8") == wanted:
        return
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    commands = [[sys.executable, "-m", "venv", "--clear", str(folder)], [*pip, *ENVIRONMENT]]
    if uv := shutil.which("uv"):
        commands = [
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), *ENVIRONMENT],
        ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise SetupError(
                "the environment of the readers cannot be made",
                got=(done.stderr or done.stdout).strip()[-_MOST_OUTPUT:],
                expected=", ".join(ENVIRONMENT),
                hint=shlex.join(command),
                code="environment-failed",
            )
    ready.write_text(wanted, "utf-8")


def installed_version(python: str, package: Package) -> tuple[str, str]:
    """Return the version of a package in an interpreter, and the folder that it is in.

    Raises SetupError if there is no such interpreter, or no such package in it.
    """
    code = (
        "import sys, json, importlib.metadata as m; d = m.distribution(sys.argv[1]); "
        "print(json.dumps([d.version, str(d.locate_file(''))]))"
    )
    try:
        done = subprocess.run(  # noqa: S603
            [python, "-I", "-c", code, package.name],
            capture_output=True, text=True, check=False, timeout=_SECONDS,
        )  # fmt: skip
        version, folder = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as e:
        raise SetupError(
            f"{package.name} is not installed for this interpreter",
            got=f"{python}: {e if isinstance(e, OSError) else 'no such package'}",
            expected="the path of a Python in whose environment it is installed",
            code="reader-not-installed",
        ) from e
    return str(version), str(folder)
