"""A PostgreSQL server for tests only: `with postgres_url() as url`, None where there is none.

It is the one that TOOLPARSE_TEST_POSTGRES names (an SQLAlchemy URL; whoever sets it owns what is in
there: every table of the `public` schema is dropped), else one that is started on the loopback with
the binaries of this machine.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa


@contextmanager
def postgres_url() -> Iterator[str | None]:
    given = os.environ.get("TOOLPARSE_TEST_POSTGRES")
    if given:
        yield given
        return
    found = [
        shutil.which("postgres"),
        *sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/postgres"))),
    ]
    binaries = [Path(p).resolve().parent for p in found if p]
    if not binaries:
        yield None
        return
    with _served(binaries[-1]) as url:
        yield url


@contextmanager
def _served(binaries: Path) -> Iterator[str]:
    folder = Path(tempfile.mkdtemp(prefix="toolparse-postgres-"))
    user = None
    if os.geteuid() == 0:  # the server does not run as root
        user = "postgres"
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    data = folder / "data"
    server = None
    try:
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", "tester", "--auth=trust", "--encoding=UTF8", "--no-sync"],
            check=True, capture_output=True, user=user, cwd=folder,
        )  # fmt: skip
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "fsync": "off",
        }
        command = [
            str(binaries / "postgres"),
            "-D",
            str(data),
            *(f"--{k}={v}" for k, v in settings.items()),
        ]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, user=user, cwd=folder)
        _wait(port)
        yield f"postgresql+psycopg://tester:planted-password-1@127.0.0.1:{port}/postgres"
    finally:
        if server is not None:
            server.terminate()
            server.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            engine = sa.create_engine(f"postgresql+psycopg://tester@127.0.0.1:{port}/postgres")
            with engine.connect():
                return
        except sa.exc.OperationalError:
            time.sleep(0.1)
        finally:
            engine.dispose()
    raise TimeoutError("the PostgreSQL server does not answer")


def empty(url: str) -> None:
    """Drops every table of the `public` schema."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    engine.dispose()
