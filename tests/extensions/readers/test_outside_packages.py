"""Readers fetched from an index on loopback: which file, how it is checked, what is kept, and every
way in which that can go wrong.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.outside_tree import NEW, OLD
from tests.replay_server import Answer, Asked, ReplayServer, json_answer
from tests.tables import each_case
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions, SetupError, UnknownName
from toolparse_lab.extensions.readers import packages, reader


def sdist(version: str, files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in {**files, "vllm/big.py": "x", "setup.py": "raise SystemExit"}.items():
            member = tarfile.TarInfo(f"vllm-{version}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        escape = tarfile.TarInfo(f"vllm-{version}/vllm/tool_parsers/../../../../out.py")
        archive.addfile(escape, io.BytesIO())
    return buffer.getvalue()


def wheel(files: dict[str, str], filler: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr("vllm/_C.so", "x" * filler)
    return buffer.getvalue()


FILES = {
    "vllm-1.0.tar.gz": sdist("1.0", OLD),
    "vllm-2.0-py3-none-any.whl": wheel(NEW, 10),
    "vllm-2.0.tar.gz": sdist("2.0", NEW) + b"\0" * 100_000,
    "vllm-3.0.tar.gz": b"no archive",
    "vllm-4.0.tar.gz": sdist("4.0", {"vllm/other.py": ""}),
    "vllm-5.0.tar.gz": sdist("5.0", {**OLD, "vllm/entrypoints/openai/tool_parsers/__init__.py": "1/0"}),
    "vllm-6.0.tar.gz": sdist("6.0", OLD),
}  # fmt: skip
WRONG = "vllm-6.0.tar.gz"  # its digest on the index is another file's


def index_answer(asked: Asked) -> Answer:
    """A simple index: JSON under /json, HTML under /html, JSON with a login under /private."""
    kind, _, rest = asked.path.strip("/").partition("/")
    login = base64.b64encode(b"me:pass word").decode()
    if kind == "private" and asked.by_name.get("authorization") != f"Basic {login}":
        return Answer([b"no"], 401, {"Content-Type": "text/plain"})
    if rest.startswith("files/"):
        body = FILES[rest.removeprefix("files/")]
        return Answer([body], headers={"Content-Type": "application/octet-stream"})
    if rest != "vllm":
        return Answer([b"nothing"], 404, {"Content-Type": "text/plain"})
    digests = {name: hashlib.sha256(body).hexdigest() for name, body in FILES.items()}
    digests[WRONG] = digests["vllm-1.0.tar.gz"]
    if kind == "html":
        links = [f'<a href="/html/files/{n}#sha256={d}">{n}</a>' for n, d in digests.items()]
        return Answer([b"<html>", *map(str.encode, links)], headers={"Content-Type": "text/html"})
    rows = [
        {"filename": n, "url": f"/{kind}/files/{n}", "hashes": {"sha256": d}, "size": len(FILES[n])}
        for n, d in digests.items()
    ]
    return json_answer(
        {"files": [*rows, {"filename": "vllm-7.0.tar.gz", "url": "x", "hashes": {}}]}
    )


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with ReplayServer(index_answer) as server:
        yield server.url.removeprefix("http://")


@pytest.fixture
def index(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{host}/json/")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TOOLPARSE_CACHE", str(tmp_path / "cache"))

    # The trees need no package, so that no environment is made.
    def link_python() -> None:
        python = Path(packages.python_of_readers())
        python.parent.mkdir(parents=True, exist_ok=True)
        if not python.exists():
            python.symlink_to(sys.executable)

    monkeypatch.setattr(packages, "_make_environment", link_python)
    return host


def test_add_use_list_and_remove(index: str, tmp_path: Path) -> None:
    added = packages.add_reader("vllm==1.0")
    assert (added.package, added.version, added.parsers) == ("vllm", "1.0", ("brackets", "broken"))
    assert added.sha256 == hashlib.sha256(FILES["vllm-1.0.tar.gz"]).hexdigest()
    assert packages.add_reader("vllm==1.0") == added
    kept = {p.name for p in Path(added.folder).rglob("*") if p.is_file() and p.suffix != ".pyc"}
    # What the parsers need and no more; nothing outside the folder.
    assert kept == {"reader.json", "protocol.py", "__init__.py", "serving_chat.py"}
    assert not list(tmp_path.rglob("out.py"))

    tools = [{"name": "f", "parameters": {"type": "object"}}]
    assert tp.parse("[f {}]", reader("vllm==1.0:brackets"), tools).calls[0].name == "f"
    # The smaller of two files.
    assert packages.add_reader("vllm==2.0").file == "vllm-2.0-py3-none-any.whl"
    assert list(map(str, packages.readers_added())) == ["vllm==1.0", "vllm==2.0"]
    assert str(packages.remove_reader("vllm==1.0")) == "vllm==1.0"
    with pytest.raises(SetupError, match="was not added"):
        packages.remove_reader("vllm==1.0")
    packages.remove_reader("vllm==2.0")
    assert not packages.cache_folder().exists()


@pytest.mark.parametrize("address", ["http://{}/html", "http://me:pass%20word@{}/private"])
def test_other_indexes(index: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", address.format(index))
    assert packages.add_reader("vllm==1.0").version == "1.0"


def test_an_index_in_a_folder(index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "simple" / "vllm"
    folder.mkdir(parents=True)
    name = "vllm-1.0.tar.gz"
    (folder / name).write_bytes(FILES[name])
    digest = hashlib.sha256(FILES[name]).hexdigest()
    (folder / "index.html").write_text(f'<a href="{name}#sha256={digest}">{name}</a>', "utf-8")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", folder.parent.as_uri())
    # An index that is down does not hide the one that has it.
    assert packages.add_reader("vllm==1.0").file == name
    with pytest.raises(SetupError, match="no version 9"):
        packages.add_reader("vllm==9")


@each_case
def test_what_cannot_be_added(index: str, spec: str, code: str) -> None:
    with pytest.raises(SetupError) as error:
        packages.add_reader(spec)
    assert error.value.code == code
    assert packages.readers_added() == ()
    assert not [p for p in packages.cache_folder().glob("*") if p.name.startswith(".adding")]


def test_no_network_and_a_wrong_password(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in (f"http://me:secret@{index}/private", "http://me:secret@127.0.0.1:9", "ftp://x"):
        monkeypatch.setenv("PIP_INDEX_URL", address)
        with pytest.raises(SetupError) as error:
            packages.add_reader("vllm==1.0")
        assert error.value.code == "index-unreachable"
        assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "no-space"), (errno.EACCES, "cache-unusable")]
)
def test_a_disk_that_takes_nothing(
    index: str, number: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, *_: Any, **__: Any) -> Any:
        raise OSError(number, "no")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(SetupError) as error:
            packages.add_reader("vllm==1.0")
    assert error.value.code == code
    assert packages.readers_added() == ()


@pytest.mark.parametrize("spec", ["vllm", "vllm==", "vllm>=1", "vllm==../x", "vllm==1/2", ""])
def test_a_spec_is_a_package_and_its_version(spec: str) -> None:
    with pytest.raises(BadOptions):
        packages.spec_of(spec)


def test_a_package_that_nobody_knows() -> None:
    with pytest.raises(UnknownName, match="did you mean vllm"):
        packages.spec_of("vlm==1.0")


def test_a_damaged_record_is_no_reader(index: str) -> None:
    added = packages.add_reader("vllm==1.0")
    Path(added.folder, "reader.json").write_text("{", "utf-8")
    assert packages.readers_added() == ()
    assert packages.add_reader("vllm==1.0") == added


def test_an_environment_that_cannot_be_made(index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(packages, "ENVIRONMENT", ("no such requirement !",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLPARSE_CACHE", str(packages.cache_folder() / "none"))
        patch.setattr("shutil.which", lambda name: None)
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(SetupError) as error:
            packages._make_environment()
    assert error.value.code == "environment-failed"


def test_the_command(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reader", "add", "vllm==1.0"]) == 0
    assert capsys.readouterr().out == "vllm==1.0: brackets, broken\n"
    assert main(["reader", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["version"] == "1.0"
    assert main(["reader", "remove", "vllm==1.0"]) == 0
    assert main(["reader", "list"]) == 0
    assert "no reader was added" in capsys.readouterr().err
    for words in (["add"], ["remove"], ["list", "vllm==1.0"], ["add", "vllm"]):
        assert main(["reader", *words]) == 2
